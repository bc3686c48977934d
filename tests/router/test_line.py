"""The line: who waits, in what order, until when - on a real fleet, with time as an argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import policies
from classifiers.api import CallClass
from policies.api import Ask, Decision, Dispatch, Lane, Policy, View, Wait
from policies.least_loaded import LeastLoaded
from router.applicant import Applicant, Placed
from router.engines.api import Loading
from router.errors import NoBackend, Overloaded, PolicyFailed, RouterError, UnknownModel
from router.fleet.fleet import Fleet
from router.fleet.ledger import Outcome
from router.line import Line
from tests.router.builders import applicant, fleet_of

DESK = {"name": "desk", "lane": "latency", "max_inflight": 1}
RACK = {"name": "rack", "lane": "throughput", "max_inflight": 2}


def line_for(fleet: Fleet, policy: Policy | None = None, **options: Any) -> Line:
    made = Line(
        fleet,
        policy if policy is not None else policies.build("workload_aware", {}),
        **{"max_waiting": 100, "ageing_s": 30.0, "chance": lambda: 0.0, **options},
    )
    fleet.on_change = made.pump
    return made


class Results:
    """Collects what waiting applicants are told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[Applicant, Placed | RouterError]] = []

    def listen(self, waiting: Applicant) -> Applicant:
        waiting.granted = lambda result: self.told.append((waiting, result))
        return waiting

    @property
    def placed(self) -> list[Applicant]:
        return [who for who, result in self.told if isinstance(result, Placed)]


def occupy(line: Line, count: int, now_s: float = 0.0, **options: Any) -> list[Placed]:
    taken = [line.apply(applicant(arrived_s=now_s, **options), now_s) for _ in range(count)]
    assert all(taken)
    return [placed for placed in taken if placed is not None]


def test_a_call_with_room_is_placed_at_once_and_its_lease_is_open() -> None:
    fleet = fleet_of(DESK, RACK)
    placed = line_for(fleet).apply(applicant(), 0.0)
    assert placed is not None
    assert placed.backend.name == "desk"
    assert placed.backend.account.own == 1


def test_spill_over_when_the_preferred_lane_is_full() -> None:
    line = line_for(fleet_of(DESK, RACK))
    names = [placed.backend.name for placed in occupy(line, 3)]
    assert names == ["desk", "rack", "rack"]


def test_without_room_anywhere_a_call_waits_until_a_lease_ends() -> None:
    line, results = line_for(fleet_of(DESK)), Results()
    [first] = occupy(line, 1)
    waiting = results.listen(applicant())
    assert line.apply(waiting, 1.0) is None
    assert len(line) == 1
    first.lease.close(Outcome.COMPLETED, 2.0)
    assert results.placed == [waiting]
    assert len(line) == 0


def test_classes_are_served_in_order_and_within_a_class_the_first_first() -> None:
    line, results = line_for(fleet_of(DESK)), Results()
    [held] = occupy(line, 1)
    batch, hop, chat_1, chat_2 = (
        results.listen(applicant(call_class, arrived_s=float(number)))
        for number, call_class in enumerate(
            (CallClass.THROUGHPUT, CallClass.MIXED, CallClass.TTFT, CallClass.TTFT), start=1
        )
    )
    for waiting in (batch, hop, chat_1, chat_2):
        assert line.apply(waiting, 5.0) is None
    for number, expected in enumerate((chat_1, chat_2, hop, batch)):
        held.lease.close(Outcome.COMPLETED, 6.0 + number)
        who, result = results.told[-1]
        assert who is expected
        assert isinstance(result, Placed)
        held = result


def test_a_call_that_waited_long_enough_overtakes_a_higher_class() -> None:
    line, results = line_for(fleet_of(DESK), ageing_s=20.0), Results()
    [held] = occupy(line, 1)
    old_batch = results.listen(applicant(CallClass.THROUGHPUT, arrived_s=0.0))
    fresh_chat = results.listen(applicant(CallClass.TTFT, arrived_s=21.0))
    line.apply(old_batch, 0.0)
    line.apply(fresh_chat, 21.0)
    held.lease.close(Outcome.COMPLETED, 21.0)
    assert results.placed == [old_batch]


def test_a_newcomer_does_not_overtake_those_who_wait() -> None:
    fleet = fleet_of(DESK)
    line, results = line_for(fleet), Results()
    [held] = occupy(line, 1)
    first = results.listen(applicant(arrived_s=1.0))
    line.apply(first, 1.0)
    fleet.on_change = lambda now_s: None  # room appears, but nobody was told yet
    held.lease.close(Outcome.COMPLETED, 2.0)
    second = results.listen(applicant(arrived_s=2.0))
    assert line.apply(second, 2.0) is None
    assert results.placed == [first]


def test_a_higher_class_takes_a_reserved_slot_past_a_waiting_lower_one() -> None:
    line, results = line_for(fleet_of({**DESK, "max_inflight": 2}, RACK)), Results()
    reserve = {Lane.LATENCY: 1}
    occupy(line, 3, call_class=CallClass.THROUGHPUT, lanes=(Lane.THROUGHPUT, Lane.LATENCY), keep_free=reserve)
    batch = results.listen(applicant(CallClass.THROUGHPUT, lanes=(Lane.THROUGHPUT, Lane.LATENCY), keep_free=reserve))
    assert line.apply(batch, 1.0) is None
    chat = line.apply(applicant(arrived_s=1.0), 1.0)
    assert chat is not None
    assert chat.backend.name == "desk"


def test_a_call_that_leaves_is_gone_at_once() -> None:
    line, results = line_for(fleet_of(DESK)), Results()
    [held] = occupy(line, 1)
    first, second = (results.listen(applicant()) for _ in range(2))
    line.apply(first, 1.0)
    line.apply(second, 1.0)
    assert line.leave(first)
    assert not line.leave(first)
    held.lease.close(Outcome.COMPLETED, 2.0)
    assert results.placed == [second]


def test_a_full_line_turns_calls_away_with_a_time_to_come_back() -> None:
    line = line_for(fleet_of(DESK), max_waiting=1)
    occupy(line, 1)
    line.apply(applicant(), 1.0)
    with pytest.raises(Overloaded) as caught:
        line.apply(applicant(), 1.0)
    assert caught.value.retry_after_s is not None
    assert len(line) == 1


def test_an_unknown_model_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(UnknownModel, match="known: m"):
        line_for(fleet_of(DESK)).apply(applicant(model="nope"), 0.0)


def test_an_unknown_model_is_refused_even_while_others_wait() -> None:
    line = line_for(fleet_of(DESK))
    occupy(line, 1)
    line.apply(applicant(), 1.0)
    with pytest.raises(UnknownModel):
        line.apply(applicant(model="nope"), 1.0)


def test_no_backend_up_names_each_and_why() -> None:
    fleet = fleet_of(DESK)
    fleet.refused(fleet.backends()[0], "connection refused")
    with pytest.raises(NoBackend, match=r"desk is down \(connection refused\)"):
        line_for(fleet).apply(applicant(), 0.0)


def test_a_loading_backend_is_waited_for() -> None:
    fleet = fleet_of(DESK)
    line, results = line_for(fleet), Results()
    backend = fleet.backends()[0]
    fleet.probed(backend, Loading(), None, since_s=0.0, now_s=0.0)
    waiting = results.listen(applicant())
    assert line.apply(waiting, 1.0) is None
    from router.engines.api import Ready

    fleet.probed(backend, Ready(), None, since_s=1.0, now_s=2.0)
    assert results.placed == [waiting]


def test_those_who_wait_hear_at_once_that_the_last_backend_went_down() -> None:
    fleet = fleet_of(DESK)
    line, results = line_for(fleet), Results()
    [held] = occupy(line, 1)
    line.apply(results.listen(applicant()), 1.0)
    fleet.refused(held.backend, "connection refused")
    held.lease.close(Outcome.FAILED, 2.0)
    assert isinstance(results.told[0][1], NoBackend)


def test_backends_that_failed_the_call_are_not_tried_again() -> None:
    line = line_for(fleet_of(DESK, RACK))
    placed = line.apply(applicant(tried={"desk"}), 0.0)
    assert placed is not None
    assert placed.backend.name == "rack"
    with pytest.raises(NoBackend, match="tried: desk, rack"):
        line.apply(applicant(tried={"desk", "rack"}), 0.0)


def test_a_long_prompt_goes_where_it_fits_and_anywhere_if_it_fits_nowhere() -> None:
    small, large = {**DESK, "context_tokens": 1000}, {**RACK, "context_tokens": 8000}
    line = line_for(fleet_of(small, large))
    fits = line.apply(applicant(prompt_tokens=2000), 0.0)
    assert fits is not None
    assert fits.backend.name == "rack"
    nowhere = line.apply(applicant(prompt_tokens=20_000), 0.0)
    assert nowhere is not None


def test_a_size_in_another_lane_or_on_a_dead_backend_helps_nobody() -> None:
    small, large = {**DESK, "context_tokens": 1000}, {**RACK, "context_tokens": 8000}
    fleet = fleet_of(small, large)
    line = line_for(fleet)
    own_lane = line.apply(applicant(prompt_tokens=2000, lanes=(Lane.LATENCY,)), 0.0)
    assert own_lane is not None
    assert own_lane.backend.name == "desk"
    own_lane.lease.close(Outcome.COMPLETED, 0.0)
    fleet.refused(fleet.backends()[1], "gone")
    alive = line.apply(applicant(prompt_tokens=2000), 0.0)
    assert alive is not None
    assert alive.backend.name == "desk"


def test_calls_without_a_slot_never_wait() -> None:
    line = line_for(fleet_of(DESK))
    occupy(line, 1)
    placed = line.apply(applicant(occupies_slot=False, surface="tokenize"), 0.0)
    assert placed is not None
    assert placed.backend.account.own == 1


def test_a_call_without_a_model_goes_to_any_backend() -> None:
    assert line_for(fleet_of(DESK)).apply(applicant(model=None), 0.0) is not None


def test_an_alias_goes_only_to_the_backends_it_names_under_their_own_names() -> None:
    fleet = fleet_of(DESK, RACK, models={"chat": {"rack": "m"}})
    placed = line_for(fleet).apply(applicant(model="chat"), 0.0)
    assert placed is not None
    assert (placed.backend.name, placed.model) == ("rack", "m")


def test_the_time_to_come_back_grows_with_the_line_and_shrinks_with_the_pace() -> None:
    line = line_for(fleet_of(DESK))
    occupy(line, 1)
    short = line.retry_after_s(CallClass.TTFT)
    for _ in range(50):
        line.apply(applicant(), 1.0)
    for number in range(200):
        line.slot_ended(0.1 * number)
    assert short == 1.0
    assert 4.0 < line.retry_after_s(CallClass.TTFT) < 7.0


def test_nobody_is_turned_away_for_the_pace_of_times_at_which_nobody_waited() -> None:
    line = line_for(fleet_of(DESK))
    for minute in range(120):
        [held] = occupy(line, 1, now_s=60.0 * minute)
        line.slot_ended(60.0 * minute + 2.0)
        held.lease.close(Outcome.COMPLETED, 60.0 * minute + 2.0)
    now_s = 7200.0
    occupy(line, 1, now_s=now_s)
    for _ in range(3):
        assert line.apply(applicant(arrived_s=now_s), now_s) is None
    assert line.retry_after_s(CallClass.TTFT) <= 5.0


def test_nobody_is_turned_away_for_those_who_wait_for_another_server() -> None:
    fleet = fleet_of(DESK | {"models": ["a"]}, RACK | {"models": ["b"], "max_inflight": 1})
    line = line_for(fleet, max_waiting=1000)
    occupy(line, 1, model="a")
    occupy(line, 1, model="b")
    for _ in range(100):
        line.apply(applicant(model="a"), 0.0)
    for second in range(60):
        line.slot_ended(float(second))
    with pytest.raises(Overloaded):
        line.apply(applicant(model="a"), 60.0)
    assert line.apply(applicant(model="b"), 60.0) is None


def test_a_call_with_other_lanes_does_not_stand_behind_those_that_may_not_go_where_it_may() -> None:
    fleet = fleet_of(DESK, RACK)
    line = line_for(fleet, policy=LeastLoaded())
    occupy(line, 1, lanes=(Lane.LATENCY,))
    for _ in range(3):
        assert line.apply(applicant(lanes=(Lane.LATENCY,)), 1.0) is None
    placed = line.apply(applicant(lanes=(Lane.THROUGHPUT,)), 1.0)
    assert placed is not None
    assert placed.backend.name == "rack"


def test_a_policy_that_fails_on_one_call_fails_that_call_alone() -> None:
    class Odd:
        def decide(self, ask: Ask, views: Sequence[View], *, now_s: float, chance: float) -> Decision:
            if ask.client == "odd" and now_s > 0.0:
                raise ZeroDivisionError
            return Dispatch(views[0].name, "x") if views[0].own < 1 else Wait("full")

    fleet, results = fleet_of(DESK), Results()
    line = line_for(fleet, policy=Odd())
    [held] = occupy(line, 1)
    for client in ("odd", "good"):
        assert line.apply(results.listen(applicant(client=client)), 0.0) is None
    held.lease.close(Outcome.COMPLETED, 1.0)
    failed, placed = [result for _, result in results.told]
    assert isinstance(failed, PolicyFailed)
    assert isinstance(placed, Placed)
    assert len(line) == 0


def test_what_a_client_takes_out_of_the_line_is_not_held_against_it() -> None:
    line = line_for(fleet_of(DESK))
    occupy(line, 1)
    several = [applicant(client="script") for _ in range(50)]
    for each in several:
        line.apply(each, 0.0)
    for each in several:
        line.leave(each)
    again = applicant(client="script")
    line.apply(again, 1.0)
    assert again.entry is not None
    assert again.entry.lead_s == 0.0


def test_dismissing_tells_everybody_and_empties_the_line() -> None:
    line, results = line_for(fleet_of(DESK)), Results()
    occupy(line, 1)
    for _ in range(3):
        line.apply(results.listen(applicant()), 1.0)
    line.dismiss(NoBackend("over"))
    assert len(results.told) == 3
    assert len(line) == 0


def test_a_change_costs_one_decision_for_each_group_not_for_each_call() -> None:
    fleet = fleet_of(DESK)
    line = line_for(fleet, max_waiting=10_000)
    [held] = occupy(line, 1)
    for _ in range(5_000):
        line.apply(applicant(CallClass.THROUGHPUT), 1.0)

    decisions = 0
    policy = line.policy

    class Counting:
        def decide(self, *args: Any, **rest: Any) -> Any:
            nonlocal decisions
            decisions += 1
            return policy.decide(*args, **rest)

    line.policy = Counting()
    held.lease.close(Outcome.COMPLETED, 2.0)
    assert decisions <= 5  # one gets the place, and a few more are asked in vain
    assert len(line) == 4_999
