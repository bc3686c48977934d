"""What calls were: by their tags, or by what their clients did afterwards."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from classifiers.api import CallClass
from classifiers.arrival import Arrival
from router import models
from router.learning.labels import LEAST_WEAK, MOST_WEAK, Label, counted, labels
from router.learning.lines import read
from tests.router.learning.makers import line, tagged, write

STREAM: dict[str, Any] = {"stream": True, "class": "ttft"}


def labelled(folder: Path, *given: dict[str, Any]) -> list[Label | None]:
    return labels(read([write(folder / "d", given)], models.VECTOR).lines)


def first(folder: Path, *given: dict[str, Any]) -> tuple[str, float, str] | None:
    """Class, weight and sign of the first call."""
    found = labelled(folder, *given)[0]
    return None if found is None else (str(found.call_class), found.weight, found.sign)


def continuing(time_s: float, gap_s: float, **given: Any) -> dict[str, Any]:
    """A call that goes on from an answer which ended `gap_s` before."""
    arrival = {"calls": 1, "continues": 1, "since_continued_s": gap_s, **given.pop("arrival", {})}
    return line(time_s, arrival=arrival, **given)


def test_a_tag_counts_as_much_as_it_is_sure(tmp_path: Path) -> None:
    assert first(tmp_path, tagged("mixed")) == ("mixed", 1.0, "header")
    assert first(tmp_path, tagged("ttft", confidence=0.8)) == ("ttft", 0.8, "header")
    assert first(tmp_path, tagged("ttft", source="rule", reasons=["rule_1"])) == ("ttft", 1.0, "rule")


def test_a_tag_that_nobody_is_sure_of_is_none(tmp_path: Path) -> None:
    assert first(tmp_path, tagged("mixed", confidence=0.0)) is None


def test_a_class_that_a_key_was_held_to_says_nothing(tmp_path: Path) -> None:
    assert first(tmp_path, tagged("mixed", reasons=["class_header", "held_by_key"])) is None


def test_a_hop_that_the_router_took_for_the_last_one_is_no_tag_of_its_caller(tmp_path: Path) -> None:
    """It had named its pipeline, and no class."""
    reasons = ["pipeline_header", "streamed_at_last"]
    assert first(tmp_path, tagged("ttft", confidence=0.85, reasons=reasons)) is None


@pytest.mark.parametrize("source", ["model", "builtin", "default"])
def test_what_a_model_said_is_no_label(tmp_path: Path, source: str) -> None:
    assert first(tmp_path, line(source=source)) is None


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({**STREAM, "outcome": "client_gone", "left": "before_first_token"}, ("ttft", 0.3, "left_before_first_token")),
        ({**STREAM, "outcome": "client_gone", "left": "during_answer"}, ("ttft", 0.3, "left_during_answer")),
        ({"outcome": "client_gone", "left": "before_answer"}, None),
        (STREAM, ("ttft", 0.1, "read_at_once")),
        ({**STREAM, "stalls": 2}, None),
        ({**STREAM, "outcome": "backend_error"}, None),
        ({"complete_s": 45.0}, ("throughput", 0.2, "waited_long")),
        ({"complete_s": 29.0}, None),
        ({"complete_s": 45.0, "outcome": "client_gone", "left": "before_answer"}, None),
    ],
)
def test_what_a_call_alone_tells(
    tmp_path: Path, given: dict[str, Any], expected: tuple[str, float, str] | None
) -> None:
    assert first(tmp_path, line(**given)) == expected


def test_results_of_tools_that_come_back_at_once_make_a_hop(tmp_path: Path) -> None:
    back = continuing(1.5, 0.5, arrival={"appended_tool_results": 1})
    assert first(tmp_path, line(0.0, complete_s=1.0), back) == ("mixed", 0.5, "tool_result_at_once")


def test_a_stream_whose_tool_call_is_answered_at_once_is_a_hop_although_it_was_read(tmp_path: Path) -> None:
    back = continuing(1.2, 0.2, arrival={"appended_tool_results": 2})
    assert first(tmp_path, line(0.0, complete_s=1.0, **STREAM), back) == ("mixed", 0.4, "tool_result_at_once")


def test_nobody_types_the_next_question_in_a_second(tmp_path: Path) -> None:
    back = continuing(2.0, 1.0, arrival={"appended_user": 1})
    assert first(tmp_path, line(0.0, complete_s=1.0), back) == ("mixed", 0.3, "continued_at_once")


def test_a_stream_that_is_answered_after_a_while_was_read(tmp_path: Path) -> None:
    back = continuing(31.0, 30.0, arrival={"appended_user": 1})
    assert first(tmp_path, line(0.0, complete_s=1.0, **STREAM), back) == ("ttft", MOST_WEAK, "read_and_answered")


def test_a_next_row_that_follows_at_once_makes_a_batch(tmp_path: Path) -> None:
    row = line(1.1, arrival={"calls": 1, "since_program_answer_s": 0.1, "template_share": 1.0})
    assert first(tmp_path, line(0.0, complete_s=1.0), row) == ("throughput", 0.4, "next_row_at_once")
    late = line(11.0, arrival={"calls": 1, "since_program_answer_s": 10.0, "template_share": 1.0})
    assert first(tmp_path, line(0.0, complete_s=1.0), late) is None
    other = line(1.1, arrival={"calls": 1, "since_program_answer_s": 0.1, "template_share": 0.1})
    assert first(tmp_path, line(0.0, complete_s=1.0), other) is None


def test_what_is_looked_for_is_what_the_router_writes() -> None:
    looked_for = {"continues", "since_continued_s", "appended_tool_results", "appended_user", "calls"}
    looked_for |= {"since_program_answer_s", "template_share", "start_share"}
    assert looked_for <= {each.name for each in fields(Arrival)}


def test_signs_that_contradict_each_other_cancel(tmp_path: Path) -> None:
    row = line(1.1, arrival={"calls": 1, "since_program_answer_s": 0.1, "template_share": 1.0})
    assert first(tmp_path, line(0.0, complete_s=1.0, **STREAM), row) == ("throughput", 0.1, "next_row_streamed")
    assert LEAST_WEAK < 0.1 < MOST_WEAK


def test_the_answer_that_is_gone_on_from_is_found_among_parallel_ones_of_that_client(tmp_path: Path) -> None:
    found = labelled(
        tmp_path,
        line(0.0, complete_s=4.0, id="other"),
        line(0.5, complete_s=2.5, id="this"),
        line(0.6, complete_s=2.4, id="same instant, another client", client="c2"),
        continuing(3.4, 0.4, arrival={"appended_tool_results": 1}),
    )
    assert [label is not None for label in found] == [False, True, False, False]


def test_an_answer_that_is_not_in_the_log_is_not_guessed(tmp_path: Path) -> None:
    back = continuing(9.0, 0.5, arrival={"appended_tool_results": 1})
    assert first(tmp_path, line(0.0, complete_s=1.0), back) is None


def test_labels_are_counted_by_sign_and_class(tmp_path: Path) -> None:
    found = labelled(tmp_path, tagged("ttft"), tagged("ttft", 1.0), tagged("mixed", 2.0), line(3.0, complete_s=45.0))
    assert counted(found) == {
        ("header", CallClass.TTFT): 2,
        ("header", CallClass.MIXED): 1,
        ("waited_long", CallClass.THROUGHPUT): 1,
    }
