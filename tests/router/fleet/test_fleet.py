"""The fleet: what a probe and the traffic together say of a backend."""

from __future__ import annotations

import pytest

from classifiers.api import CallClass
from router.fleet.health import State
from router.fleet.ledger import Outcome
from tests.router.builders import fleet_of


@pytest.mark.parametrize(
    ("token_each_s", "state"), [(0.5, State.UP), (3.0, State.UP), (5.0, State.UP), (1e9, State.DOWN)]
)
def test_a_stream_is_life_also_where_its_tokens_come_seconds_apart(token_each_s: float, state: State) -> None:
    fleet = fleet_of({"name": "a"})
    (backend,) = fleet.backends()
    next_token_s = token_each_s
    for number in range(1, 30):  # a probe every two seconds, refused at once
        now_s = 2.0 * number
        while next_token_s <= now_s:
            backend.account.last_progress_s = next_token_s
            next_token_s += token_each_s
        fleet.probed(backend, None, None, since_s=now_s, now_s=now_s + 0.01)
    assert backend.health.state is state


def test_a_call_without_a_slot_is_neither_a_trial_nor_a_proof_of_health_but_may_be_one_of_failure() -> None:
    fleet = fleet_of({"name": "a"}, health={"break_after": 2, "retry_after": 1.0})
    (backend,) = fleet.backends()

    def call(outcome: Outcome, now_s: float, *, slot: bool) -> bool:
        lease = fleet.lease(backend, CallClass.TTFT, now_s, slot=slot)
        lease.close(outcome, now_s)
        return lease.trial

    call(Outcome.FAILED, 1.0, slot=True)
    call(Outcome.COMPLETED, 1.0, slot=False)
    call(Outcome.FAILED, 1.0, slot=False)
    assert fleet.states() == {"a": State.BROKEN}
    assert not call(Outcome.COMPLETED, 3.0, slot=False)
    assert fleet.states() == {"a": State.BROKEN}
    assert call(Outcome.COMPLETED, 3.0, slot=True)
    assert fleet.states() == {"a": State.UP}
