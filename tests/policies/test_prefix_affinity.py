"""Conversations that stay where they were."""

from __future__ import annotations

from policies.api import Dispatch
from policies.prefix_affinity import PrefixAffinity
from tests.policies.makers import ask, desk, rack


def test_a_conversation_returns_to_its_backend_in_whatever_lane() -> None:
    views = [desk(), rack(own=4)]

    assert PrefixAffinity().decide(ask(home="rack"), views, now_s=1.0, chance=0.0) == Dispatch("rack", "affinity")


def test_a_backend_that_is_much_fuller_loses_its_conversations() -> None:
    views = [desk("home", cap=4, own=3), desk("other", cap=4)]

    assert PrefixAffinity().decide(ask(home="home"), views, now_s=1.0, chance=0.0) == Dispatch("other", "least_loaded")
    assert PrefixAffinity(max_load_gap=0.8).decide(ask(home="home"), views, now_s=1.0, chance=0.0) == Dispatch(
        "home", "affinity"
    )


def test_a_full_home_is_not_waited_for() -> None:
    views = [desk("home", own=2), desk("other", own=1)]

    assert PrefixAffinity(max_load_gap=9).decide(ask(home="home"), views, now_s=1.0, chance=0.0) == Dispatch(
        "other", "least_loaded"
    )


def test_a_new_conversation_goes_to_the_least_full_backend() -> None:
    views = [desk("a", own=1), desk("b")]

    assert PrefixAffinity().decide(ask(), views, now_s=1.0, chance=0.0) == Dispatch("b", "least_loaded")
