"""What callers say of their pipelines, as far as it makes sense."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.api import Features
from classifiers.tags import NO_TAGS, Tags, tags_of

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def said(session_id: str = "", **headers: str) -> Tags:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return tags_of(Features(surface="openai_chat", headers=named, session_id=session_id))


def test_a_call_that_says_nothing_has_no_tags() -> None:
    assert said(user_agent="node", accept="*/*") is NO_TAGS


def test_all_that_our_headers_say_is_read() -> None:
    tags = said(
        x_twolane_pipeline=" p-1 ",
        x_twolane_hop="Final",
        x_twolane_hops_left="3",
        x_twolane_deadline_ms="2500",
        x_twolane_slo_ttft_ms="300",
        x_llm_d_slo_tpot_ms="40.5",
    )
    assert tags == Tags(
        task="x-twolane-pipeline=p-1", hop="final", hops_left=3, deadline_s=2.5, ttft_s=0.3, tpot_s=0.0405
    )


@pytest.mark.parametrize("value", ["", "-1", "soon", "1e3", "nan", "inf", "٣", "1.2.3", "9" * 40, "0"])
def test_a_deadline_that_is_no_number_above_zero_is_none(value: str) -> None:
    assert said(x_twolane_deadline_ms=value).deadline_s is None


def test_a_deadline_of_a_million_years_is_a_week() -> None:
    assert said(x_twolane_deadline_ms="999999999999999").deadline_s == 7 * 86_400


@pytest.mark.parametrize("value", ["-1", "many", "1.5", "٣", "9" * 5000])
def test_hops_that_are_no_whole_number_are_not_known(value: str) -> None:
    assert said(x_twolane_hops_left=value).hops_left is None


def test_an_own_header_names_the_task_and_a_session_beside_it_stays_the_session() -> None:
    tags = said(x_twolane_pipeline="p", x_claude_code_session_id="s", traceparent=f"00-{TRACE}-00f067aa0ba902b7-01")
    assert (tags.task, tags.session, tags.trace) == ("x-twolane-pipeline=p", "x-claude-code-session-id=s", "")


def test_baggage_names_the_task_among_other_members() -> None:
    assert said(baggage="userId=alice, twolane.pipeline=p%201;prop=1 , x=y").task == "twolane.pipeline=p%201"
    assert said(baggage="userId=alice").task == ""
    assert said(baggage=",=;,,=").task == ""


def test_a_trace_stands_for_a_task_where_nothing_better_is_said() -> None:
    assert said(traceparent=f"00-{TRACE}-00f067aa0ba902b7-01").trace == f"traceparent={TRACE}"
    assert said("session_id=s", traceparent=f"00-{TRACE}-00f067aa0ba902b7-01").trace == ""


@pytest.mark.parametrize(
    "value", ["", "00", f"00-{'0' * 32}-00f067aa0ba902b7-01", f"00-{TRACE[:-1]}-00f067aa0ba902b7-01"]
)
def test_a_broken_trace_is_none(value: str) -> None:
    assert said(traceparent=value).trace == ""


def test_the_operators_own_session_header_comes_first() -> None:
    features = Features(surface="openai_chat", headers={"x-mine": "1", "x-session-id": "2"})
    assert tags_of(features, ("x-mine",)).session == "x-mine=1"


def test_the_session_of_the_body_counts_where_no_header_names_one() -> None:
    assert said("session_id=s").session == "session_id=s"
    assert said("session_id=s", x_twolane_hop="internal").session == "session_id=s"


@given(
    st.dictionaries(
        st.sampled_from(
            sorted(
                [
                    "x-twolane-pipeline",
                    "x-twolane-hop",
                    "x-twolane-hops-left",
                    "x-twolane-deadline-ms",
                    "baggage",
                    "traceparent",
                    "x-slo-ttft-ms",
                ]
            )
        ),
        st.text(max_size=60),
    )
)
def test_whatever_stands_in_the_headers_is_read_without_an_error(headers: dict[str, str]) -> None:
    tags = tags_of(Features(surface="openai_chat", headers=headers))
    assert tags.hop in ("", "internal", "final")
    assert tags.deadline_s is None or 0 < tags.deadline_s <= 7 * 86_400
