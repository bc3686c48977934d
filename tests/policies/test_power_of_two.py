"""Two are drawn, the less full one is taken."""

from __future__ import annotations

from collections import Counter

from policies.api import Dispatch, View
from policies.power_of_two import PowerOfTwo
from tests.policies.makers import ask, desk, rack


def taken(*views: View, draws: int = 400) -> Counter[str]:
    found: Counter[str] = Counter()
    for number in range(draws):
        decision = PowerOfTwo().decide(ask(), views, now_s=0.0, chance=number / draws)
        assert isinstance(decision, Dispatch)
        found[decision.backend] += 1
    return found


def test_the_fullest_of_several_is_never_taken() -> None:
    assert "full" not in taken(desk("a"), desk("b"), desk("full", own=1))


def test_each_of_equals_has_its_turn() -> None:
    counts = taken(desk("a"), desk("b"), desk("c"), desk("d"))

    assert min(counts.values()) > 60


def test_one_alone_is_taken() -> None:
    assert taken(rack()) == {"rack": 400}
