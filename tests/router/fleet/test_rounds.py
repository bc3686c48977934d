"""How soon a backend is asked again that is not up."""

from __future__ import annotations

from router.fleet.health import State
from router.fleet.rounds import next_pause_s


def test_a_backend_that_stays_down_is_asked_less_and_less_often() -> None:
    pauses = [next_pause_s(2.0, State.UP, State.DOWN)]
    while pauses[-1] < 2.0:
        pauses.append(next_pause_s(pauses[-1], State.DOWN, State.DOWN))
    assert pauses[0] == 0.25
    assert pauses == sorted(pauses)
    assert 8 < sum(pauses) < 15, "quick for some seconds, as after a restart"


def test_what_changes_or_is_loading_is_asked_soon_again() -> None:
    assert next_pause_s(1.9, State.DOWN, State.BROKEN) == 0.25
    assert next_pause_s(0.25, State.LOADING, State.LOADING) == 0.25
    assert next_pause_s(0.0, State.UP, State.UP) == 0.25, "up at once, but not recognised"
