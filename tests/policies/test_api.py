"""What a view says of itself."""

from __future__ import annotations

from tests.policies.makers import desk, rack


def test_what_is_in_flight_is_ours_and_that_of_others() -> None:
    assert desk(own=1, foreign=0.5).in_flight == 1.5


def test_free_is_what_the_cap_leaves_and_boundless_without_one() -> None:
    assert desk(cap=4, own=1, foreign=0.5).free == 2.5
    assert rack(own=1000).free == float("inf")
