"""Health: busy is not dead, loading is no penalty, and one trial call decides about a broken backend."""

from __future__ import annotations

from router.engines.api import Loading, Ready, Sick
from router.fleet.health import Health, State
from router.fleet.ledger import Outcome


def health(*, up: bool = True) -> Health:
    made = Health(down_after=3, break_after=2, retry_after_s=10.0)
    if up:
        made.probed(Ready(), traffic_flows=False)
    return made


def test_nothing_is_sent_before_the_first_answer() -> None:
    assert not health(up=False).available(0.0)


def test_a_backend_that_never_answered_is_down_at_the_first_miss() -> None:
    made = health(up=False)
    made.probed(None, traffic_flows=False)
    assert made.state is State.DOWN
    assert not made.hopeful


def test_several_misses_in_a_row_take_it_down() -> None:
    made = health()
    made.probed(None, traffic_flows=False)
    made.probed(Sick("500"), traffic_flows=False)
    assert made.available(0.0)
    made.probed(None, traffic_flows=False)
    assert made.state is State.DOWN


def test_one_good_probe_starts_the_count_anew() -> None:
    made = health()
    for _ in range(5):
        made.probed(None, traffic_flows=False)
        made.probed(None, traffic_flows=False)
        made.probed(Ready(), traffic_flows=False)
    assert made.available(0.0)


def test_flowing_traffic_outweighs_any_number_of_missed_probes() -> None:
    made = health()
    for _ in range(50):
        made.probed(None, traffic_flows=True)
    assert made.available(0.0)


def test_misses_with_traffic_between_them_are_not_in_a_row() -> None:
    made = health()
    for _ in range(5):
        made.probed(None, traffic_flows=False)
        made.probed(None, traffic_flows=False)
        made.probed(None, traffic_flows=True)
    assert made.available(0.0)


def test_a_loading_backend_gets_no_calls_but_is_worth_waiting_for() -> None:
    made = health()
    made.probed(Loading(), traffic_flows=False)
    assert not made.available(0.0)
    assert made.hopeful
    made.probed(Ready(), traffic_flows=False)
    assert made.available(0.0)


def test_a_refused_connection_takes_it_down_until_a_probe_succeeds() -> None:
    made = health()
    made.refused("connection refused")
    assert not made.available(0.0)
    made.probed(Ready(), traffic_flows=False)
    assert made.available(0.0)


def test_calls_that_fail_in_a_row_break_it_though_probes_are_fine() -> None:
    made = health()
    made.ended(Outcome.FAILED, 1.0, trial=False)
    made.ended(Outcome.FAILED, 2.0, trial=False)
    made.probed(Ready(), traffic_flows=False)
    assert made.state is State.BROKEN
    assert not made.available(11.9)


def test_after_the_pause_exactly_one_trial_call_may_go() -> None:
    made = health()
    for _ in range(2):
        made.ended(Outcome.FAILED, 0.0, trial=False)
    assert made.available(10.0)
    assert made.dispatched()
    assert not made.available(10.0)


def test_a_trial_that_succeeds_lets_all_calls_back() -> None:
    made = health()
    for _ in range(2):
        made.ended(Outcome.FAILED, 0.0, trial=False)
    made.ended(Outcome.COMPLETED, 12.0, trial=made.dispatched())
    assert made.state is State.UP
    made.ended(Outcome.FAILED, 13.0, trial=False)
    assert made.state is State.UP


def test_a_trial_that_fails_starts_the_pause_anew() -> None:
    made = health()
    for _ in range(2):
        made.ended(Outcome.FAILED, 0.0, trial=False)
    made.ended(Outcome.FAILED, 12.0, trial=made.dispatched())
    assert not made.available(21.0)
    assert made.available(22.0)


def test_a_trial_whose_client_left_frees_the_trial_for_the_next_call() -> None:
    made = health()
    for _ in range(2):
        made.ended(Outcome.FAILED, 0.0, trial=False)
    made.ended(Outcome.IGNORED, 12.0, trial=made.dispatched())
    assert made.available(12.0)


def test_client_errors_never_break_a_backend() -> None:
    made = health()
    for _ in range(40):
        made.ended(Outcome.IGNORED, 1.0, trial=False)
    assert made.available(1.0)


def test_failures_between_successes_do_not_add_up() -> None:
    made = health()
    for _ in range(20):
        made.ended(Outcome.FAILED, 1.0, trial=False)
        made.ended(Outcome.COMPLETED, 1.0, trial=False)
    assert made.available(1.0)


def test_a_stream_from_before_does_not_bring_back_a_server_that_refuses_connections() -> None:
    made = health()
    made.refused("connection refused")
    made.ended(Outcome.COMPLETED, 1.0, trial=False)
    states = [made.state]
    made.probed(Ready(), traffic_flows=False)
    assert [*states, made.state] == [State.DOWN, State.UP]
