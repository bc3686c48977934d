"""Clients in virtual time, over a few calls of our own."""

from __future__ import annotations

import gzip
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest

from bench.judgement.replay import replay
from bench.judgement.texts import Wordings, job, newest_text, turns
from bench.judgement.virtual import Replayed, Send, Speed, Wait, play
from classifiers.api import CallClass
from classifiers.arrival import Arrival

CHAT = "/v1/chat/completions"
STEADY = Speed(prefill_per_s=1e9, decode_per_s=10.0, overhead_s=1.0, noise=0.0)


def record(workload: str, source: str, number: int, messages: list[dict[str, Any]], **rest: Any) -> dict[str, Any]:
    return {
        "id": f"{source}{number}",
        "source": source,
        "group": f"{source}:{number}",
        "workload": workload,
        "path": CHAT,
        "headers": {"User-Agent": f"agent/{number % 3}", "X-Request-Id": str(number)},
        "body": {"model": f"m{number % 2}", "stream": number % 2 == 0, "messages": messages},
        "reference_output_chars": 80,
        **rest,
    }


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": text}


def fruit_row(number: int) -> dict[str, Any]:
    return record(
        "throughput", "fruit", number, [said(f"Name the colour of this fruit. apple pear {number} fig lemon")]
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder like that of TWOLANE_DATA."""
    rows = {
        "ttft": [record("ttft", "talk", number, [said(f"hello {number}")]) for number in range(12)],
        "throughput": [fruit_row(number) for number in range(12)],
        "mixed": [
            record("mixed", "steps", number, [said(f"do {number}"), said("ran", "assistant"), said(f"out {number}")])
            for number in range(12)
        ],
    }
    (tmp_path / "prompts").mkdir()
    for name, lines in rows.items():
        with gzip.open(tmp_path / "prompts" / f"{name}.jsonl.gz", "wb") as file:
            file.writelines(orjson.dumps(line) + b"\n" for line in lines)
    (tmp_path / "agent_sessions").mkdir()
    first = [said("find it")]
    calls = [
        {"call_kind": "tool_hop", "path": CHAT, "body": {"messages": first}},
        {"call_kind": "final", "path": CHAT, "body": {"messages": [*first, said("ls", "assistant"), said("x.py")]}},
    ]
    session = {"source": "agent", "group": "agent:1", "headers": {}, "calls": calls}
    with gzip.open(tmp_path / "agent_sessions" / "agent.jsonl.gz", "wb") as file:
        file.write(orjson.dumps(session))
    return tmp_path / "prompts"


def arrival(row: Replayed) -> Arrival:
    assert row.row.features.arrival is not None
    return row.row.features.arrival


def test_every_labelled_call_is_sent_by_some_client_with_its_own_label(data: Path) -> None:
    rows = list(replay(data))
    assert {(each.row.label, each.row.group) for each in rows} >= {
        (CallClass(label), f"{source}:{number}")
        for label, source in (("ttft", "talk"), ("throughput", "fruit"), ("mixed", "steps"))
        for number in range(12)
    }
    assert all(each.row.features.marks is not None for each in rows)


def test_a_seed_gives_the_same_rows_and_another_one_others(data: Path) -> None:
    def seen(seed: int) -> list[tuple[str, float, Arrival]]:
        return [(each.row.group, each.at_s, arrival(each)) for each in replay(data, seed=seed)]

    assert seen(1) == seen(1)
    assert seen(1) != seen(2)


def test_hops_of_a_session_are_seen_to_continue_each_other(data: Path) -> None:
    hops = [each for each in replay(data) if each.row.source == "agent"]
    assert [arrival(hop).continues for hop in hops] == [False, True]
    assert [hop.row.kind for hop in hops] == ["tool_hop", "final"]
    assert [hop.position for hop in hops] == [0, 1]


def send(text: str, **rest: Any) -> Send:
    return Send(
        path=CHAT,
        headers={},
        body={"messages": [said(text)], "stream": True},
        label=CallClass.TTFT,
        source="s",
        group="g",
        **rest,
    )


def test_an_actor_waits_for_its_answer_and_others_do_not() -> None:
    def one() -> Any:
        yield send("a", output_tokens=50)
        yield Wait(2.0)
        yield send("b")

    def other() -> Any:
        yield send("c", leave_after_s=0.5)

    first, beside, second = play(1, [(0.0, one()), (3.0, other())], STEADY, Random(1))
    assert (first.at_s, beside.at_s) == (0.0, 3.0)
    assert second.at_s == pytest.approx(8.0, abs=0.2)
    assert arrival(first) == Arrival()
    assert (arrival(beside).parallel, arrival(second).parallel) == (1, 0)
    assert arrival(second).since_answer_s == pytest.approx(2.0)
    # The one beside had left before its first token; the last stream that ended was read.
    assert (arrival(second).read_last, arrival(second).left_share) == (True, 0.5)


def test_rows_of_a_job_have_one_wording_and_one_envelope() -> None:
    instructions = ("Name the colour of this fruit, please.", "Which colour has the fruit below? Say it.")
    fruits = ("an apple from the tree", "two pears in a bowl", "lemons", "the ripe fig", "a plum", "dark cherries")
    rows = [
        record("throughput", "fruit", number, [said(f"{instructions[number % 2]} {fruit}")])
        for number, fruit in enumerate(fruits)
    ]
    made = job(rows, rows[0], Wordings(rows), 9, Random(3))
    texts = [each.body["messages"][-1]["content"] for each in made]
    assert all(text.startswith(instructions[0]) for text in texts)
    assert len(set(texts)) == 9
    assert {each.body["model"] for each in made} == {"m0"}
    assert {each.headers["user-agent"] for each in made} == {"agent/0"}
    assert newest_text(rows[1]) == f"{instructions[1]} {fruits[1]}"


def test_the_turns_on_the_way_to_a_call_end_before_each_answer() -> None:
    messages = [said("s", "system"), said("a"), said("b", "assistant"), said("c"), said("d", "assistant"), said("e")]
    bodies = turns(record("ttft", "talk", 1, messages), 9)
    assert [[message["content"] for message in body["messages"]] for body in bodies] == [
        ["s", "a"],
        ["s", "a", "b", "c"],
        ["s", "a", "b", "c", "d", "e"],
    ]
    assert len(turns(record("ttft", "talk", 1, messages), 2)) == 2
