"""The fleet: what a probe and the traffic together say of a backend."""

from __future__ import annotations

from dataclasses import replace

import pytest

from classifiers.api import CallClass
from router.engines.api import Identity, Load, Ready
from router.fleet.evidence import Answered
from router.fleet.health import State
from router.fleet.ledger import Outcome
from tests.policies.makers import ask
from tests.router.builders import fleet_of, settings


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


def test_a_call_without_a_slot_is_neither_a_trial_nor_a_proof_of_anything() -> None:
    fleet = fleet_of({"name": "a"}, health={"break_after": 2, "retry_after": 1.0})
    (backend,) = fleet.backends()

    def call(outcome: Outcome, now_s: float, *, slot: bool) -> bool:
        lease = fleet.lease(backend, CallClass.TTFT, now_s, slot=slot)
        lease.close(outcome, now_s)
        return lease.trial

    call(Outcome.FAILED, 1.0, slot=True)
    call(Outcome.COMPLETED, 1.0, slot=False)
    call(Outcome.FAILED, 1.0, slot=False)
    assert fleet.states() == {"a": State.UP}
    call(Outcome.FAILED, 1.0, slot=True)
    assert fleet.states() == {"a": State.BROKEN}
    call(Outcome.FAILED, 1.9, slot=False)
    assert not call(Outcome.COMPLETED, 3.0, slot=False)
    assert fleet.states() == {"a": State.BROKEN}
    assert call(Outcome.COMPLETED, 3.0, slot=True)
    assert fleet.states() == {"a": State.UP}


def test_an_answer_of_the_server_that_was_there_before_teaches_nothing_of_the_new_one() -> None:
    fleet = fleet_of({"name": "a"})
    (backend,) = fleet.backends()
    lease = fleet.lease(backend, CallClass.TTFT, 1.0, slot=True, ask=ask())
    fleet.apply(settings({"name": "a", "url": "http://127.0.0.1:9999"}))
    (new,) = fleet.backends()
    assert new is not backend
    lease.first_token(2.0)
    lease.close(Outcome.COMPLETED, 3.0, Answered(3.0, 10, 0, 20))
    assert (new.pacer.pace.seen, new.account.own, len(new.work)) == (0, 0, 0)


def test_a_view_is_the_same_until_something_happens_there() -> None:
    fleet = fleet_of({"name": "a"})
    (backend,) = fleet.backends()
    idle = backend.view(1.0)
    assert backend.view(1_000.0) is idle
    lease = fleet.lease(backend, CallClass.TTFT, 1.0, slot=True, ask=ask())
    sent = backend.view(1.0)
    assert (sent.own, sent.work.prefilling, sent.work.decoding) == (1, 1, 0)
    assert backend.view(1.05) is sent
    assert backend.view(1.2) is not sent, "the work that is left has become less"
    lease.first_token(1.3)
    assert backend.view(1.3).work.decoding == 1
    lease.close(Outcome.COMPLETED, 3.0, Answered(3.0, 10, 0, 20))
    assert (backend.view(3.0).own, backend.view(3.0).pace.seen) == (0, 1)


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.IGNORED])
def test_only_whole_answers_teach(outcome: Outcome) -> None:
    fleet = fleet_of({"name": "a"})
    (backend,) = fleet.backends()
    lease = fleet.lease(backend, CallClass.TTFT, 1.0, slot=True, ask=ask())
    lease.first_token(2.0)
    lease.close(outcome, 3.0, Answered(3.0, 10, 0, 20))
    assert (backend.pacer.pace.seen, len(backend.work)) == (0, 0)


def test_prompts_of_long_ago_are_not_in_the_view_of_a_backend_that_has_been_idle_since() -> None:
    fleet = fleet_of({"name": "a"})
    (backend,) = fleet.backends()
    long = ask()
    long.features.prompt_tokens = 8_000
    lease = fleet.lease(backend, CallClass.TTFT, 1.0, slot=True, ask=long)
    lease.first_token(3.0)
    lease.close(Outcome.COMPLETED, 3.0, Answered(3.0, 8_000, 0, 1))
    assert backend.view(3.0).work.prefill_0_1 > 0.2
    assert backend.view(63.0).work.prefill_0_1 < 0.01
    assert backend.view(1_000.0) is backend.view(63.0)


def test_a_server_at_another_address_does_not_answer_for_the_one_before() -> None:
    fleet = fleet_of({"name": "a"}, health={"break_after": 1})
    lease = fleet.lease(fleet.backends()[0], CallClass.TTFT, 1.0, slot=True)
    fleet.apply(settings({"name": "a", "url": "http://127.0.0.1:9999"}, health={"break_after": 1}))
    (new,) = fleet.backends()
    fleet.probed(new, Ready(), None, since_s=1.0, now_s=1.0)

    assert new.account.own == 0
    lease.close(Outcome.FAILED, 2.0)
    assert fleet.states() == {"a": State.UP}
    assert len(fleet.ledger) == 0


def test_what_an_engine_makes_of_one_of_our_calls_is_not_taken_for_calls_of_others() -> None:
    fleet = fleet_of({"name": "a", "engine": "vllm"})
    (backend,) = fleet.backends()
    asked = ask()
    asked = replace(asked, features=replace(asked.features, prompts=64))
    lease = fleet.lease(backend, CallClass.THROUGHPUT, 0.0, slot=True, ask=asked)
    fleet.probed(backend, Ready(), Load(running=60.0, waiting=4.0), since_s=1.0, now_s=1.0)

    assert backend.view(1.0).foreign == 0.0
    lease.close(Outcome.COMPLETED, 2.0)
    assert backend.account.requests == 0


def test_long_names_of_models_are_not_remembered() -> None:
    fleet = fleet_of({"name": "a", "engine": "openai", "models": None})
    fleet.identified(fleet.backends()[0], Identity(engine="openai"))

    for number in range(50):
        assert fleet.candidates(f"{number}" + "x" * 1_000_000, "openai_chat")

    assert sum(len(model or "") for model, _ in fleet._lookups) < 100_000
