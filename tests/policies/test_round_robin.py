"""Shares by turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from policies.api import Decision, Dispatch, View
from policies.round_robin import RoundRobin
from tests.policies.makers import ask, desk, rack


def decide(views: Sequence[View]) -> Decision:
    return RoundRobin().decide(ask(), views, now_s=1.0, chance=0.5)


def run(views: list[View], calls: int, others_between: int = 0) -> Counter[str]:
    """How many calls each backend gets; after each, the first gets some of another model."""
    taken: Counter[str] = Counter()
    for _ in range(calls):
        decision = decide(views)
        assert isinstance(decision, Dispatch)
        assert decision.reason == "in_turn"
        taken[decision.backend] += 1
        views = [replace(view, dispatched=view.dispatched + (view.name == decision.backend)) for view in views]
        views[0] = replace(views[0], dispatched=views[0].dispatched + others_between)
    return taken


@pytest.mark.parametrize("calls", [7, 40, 400])
@pytest.mark.parametrize("others_between", [0, 1, 2, 3])
def test_each_share_stays_close_to_its_due(calls: int, others_between: int) -> None:
    taken = run([desk("a"), desk("b"), desk("c", weight=2.0)], calls, others_between)

    for name, due in (("a", calls / 4), ("b", calls / 4), ("c", calls / 2)):
        assert taken[name] == pytest.approx(due, abs=3)


def test_load_does_not_change_the_shares() -> None:
    busy_and_idle = [desk("a", cap=8, own=7), desk("b", cap=8)]

    assert run(busy_and_idle, 100) == pytest.approx({"a": 50, "b": 50}, abs=3)


def test_a_backend_that_comes_back_is_not_flooded_with_what_it_missed() -> None:
    taken = run([desk("a", dispatched=10_000), desk("back", dispatched=10)], 100)

    assert taken["back"] == pytest.approx(50, abs=3)


def test_a_full_backend_is_passed_over() -> None:
    assert run([desk("a", own=2), desk("b"), rack(cap=4, own=4)], 20) == {"b": 20}
