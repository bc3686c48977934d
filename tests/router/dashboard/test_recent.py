"""The tail of decisions, and the spread of their times."""

from __future__ import annotations

import orjson

from router.dashboard.recent import EDGES_S, TAIL, Recent, failed, histogram
from router.observe.steps import at_once
from tests.router.dashboard.calls import ended, judged


def test_the_tail_is_bounded_and_a_reader_sees_what_it_missed() -> None:
    recent = Recent()
    for number in range(TAIL + 50):
        recent.add(ended(request_id=f"r{number}"), judged(), (), float(number))
    assert recent.last == TAIL + 50
    assert len(recent.after(0)) == TAIL
    assert [call["id"] for call in recent.after(TAIL + 48)] == [f"r{TAIL + 48}", f"r{TAIL + 49}"]
    assert recent.after(TAIL + 50) == []
    assert recent.after(10**9) == []


def test_the_whole_tail_is_what_came_until_it_was_asked_for() -> None:
    recent = Recent()
    recent.add(ended(request_id="r1"), judged(), (), 1.0)
    steps = recent.all()
    next(steps)
    recent.add(ended(request_id="r2"), judged(), (), 2.0)
    assert [call["id"] for call in at_once(steps)] == ["r1"]
    assert at_once(recent.all()) == recent.after(0)


def test_a_call_tells_its_class_its_reasons_its_place_and_what_it_missed_and_no_header_or_address() -> None:
    recent = Recent()
    recent.add(ended(ttft_s=0.9, key="editor"), judged(), ("ttft",), 5.0)
    [call] = recent.after(0)
    assert (call["class"], call["backend"], call["placement"], call["key"]) == (
        "ttft",
        "desk",
        "preferred_lane",
        "editor",
    )
    assert call["reasons"] == ("class_header",)
    assert call["missed"] == ("ttft",)
    written = orjson.dumps(call)
    assert b"s3cret" not in written
    assert b"10.0.0.7" not in written


def test_only_the_wrong_of_router_and_backends_counts_as_failed() -> None:
    blameless = {"completed", "client_gone", "refused", "denied", "limited", "backend_4xx"}
    assert not any(failed(ended(outcome=outcome)) for outcome in blameless)
    assert all(failed(ended(outcome=outcome)) for outcome in ("rejected", "backend_error", "router_error"))


def test_a_histogram_counts_each_time_once_and_names_its_percentiles() -> None:
    times = [0.1] * 90 + [1.0] * 10 + [1000.0, 0.0]
    found = histogram(times)
    assert found["calls"] == sum(found["counts"]) == 102
    assert found["counts"][-1] == 1, "beyond all edges"
    assert len(found["counts"]) == len(EDGES_S) + 1
    assert (found["p50_s"], found["p95_s"]) == (0.1, 1.0)
    assert histogram([]) == {"counts": [0] * (len(EDGES_S) + 1), "calls": 0}
