"""The ledger counts open leases, and each lease closes once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.api import CallClass
from router.fleet.ledger import Lease, Ledger, Outcome


def ledger_and_ends() -> tuple[Ledger, list[Lease]]:
    ends: list[Lease] = []
    return Ledger(lambda lease, now_s: ends.append(lease)), ends


def test_an_open_lease_counts_for_its_backend_and_class() -> None:
    ledger, _ = ledger_and_ends()
    ledger.open("desk", CallClass.TTFT, 1.0)
    ledger.open("desk", CallClass.THROUGHPUT, 1.0)
    account = ledger.account("desk")
    assert (account.own, account.dispatched) == (2, 2)
    assert account.by_class == {CallClass.TTFT: 1, CallClass.MIXED: 0, CallClass.THROUGHPUT: 1}
    assert len(ledger) == 2


def test_the_count_is_right_before_anybody_hears_of_the_end() -> None:
    seen: list[int] = []
    ledger = Ledger(lambda lease, now_s: seen.append(lease.account.own))
    ledger.open("desk", CallClass.TTFT, 1.0).close(Outcome.COMPLETED, 2.0)
    assert seen == [0]


def test_closing_twice_is_refused_and_counts_nothing() -> None:
    ledger, ends = ledger_and_ends()
    lease = ledger.open("desk", CallClass.TTFT, 1.0)
    lease.close(Outcome.IGNORED, 2.0)
    with pytest.raises(RuntimeError, match="closed again"):
        lease.close(Outcome.FAILED, 3.0)
    assert ledger.account("desk").own == 0
    assert len(ends) == 1


def test_a_call_without_a_slot_is_open_but_takes_no_room() -> None:
    ledger, _ = ledger_and_ends()
    lease = ledger.open("desk", CallClass.MIXED, 1.0, slot=False)
    assert (len(ledger), ledger.account("desk").own) == (1, 0)
    lease.close(Outcome.COMPLETED, 2.0)
    assert (len(ledger), ledger.account("desk").own) == (0, 0)


def test_the_peak_is_the_most_since_it_was_last_taken() -> None:
    ledger, _ = ledger_and_ends()
    leases = [ledger.open("desk", CallClass.TTFT, 1.0) for _ in range(3)]
    for lease in leases[1:]:
        lease.close(Outcome.COMPLETED, 2.0)
    account = ledger.account("desk")
    assert account.take_peak() == 3
    assert account.take_peak() == 1


def test_an_account_with_open_leases_is_not_forgotten() -> None:
    ledger, _ = ledger_and_ends()
    lease = ledger.open("desk", CallClass.TTFT, 1.0)
    ledger.forget("desk")
    assert ledger.account("desk").own == 1
    lease.close(Outcome.COMPLETED, 2.0)
    ledger.forget("desk")
    assert ledger.account("desk").dispatched == 0


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(CallClass), st.booleans())), st.randoms())
def test_whatever_the_order_all_counts_end_at_zero(calls: list[tuple[str, CallClass, bool]], rng: object) -> None:
    ledger, ends = ledger_and_ends()
    leases = [ledger.open(name, call_class, 0.0, slot=slot) for name, call_class, slot in calls]
    rng.shuffle(leases)  # type: ignore[attr-defined]
    for lease in leases:
        lease.close(Outcome.COMPLETED, 1.0)
        assert all(count >= 0 for count in lease.account.by_class.values())
    assert len(ledger) == 0
    assert len(ends) == len(calls)
    assert {ledger.account(name).own for name in ("a", "b")} == {0}
