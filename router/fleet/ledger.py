"""The ledger: all open leases, and so the truth about how many of our calls each backend works on.

A lease is opened in the same turn of the event loop in which the decision was taken and closed exactly once:

    completed   the backend did its work
    ignored     says nothing about the backend: the client left, or sent what no backend could serve (4xx)
    failed      the backend did not do its work
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from classifiers.api import CallClass
from router.fleet.evidence import NOTHING_SEEN, Answered
from router.fleet.running import Running


class Outcome(StrEnum):
    COMPLETED = "completed"
    IGNORED = "ignored"
    FAILED = "failed"


class Account:
    """What the ledger knows of one backend. Only the ledger writes it."""

    __slots__ = ("by_class", "dispatched", "last_progress_s", "own", "peak_requests", "requests")

    def __init__(self) -> None:
        self.own = 0
        self.by_class: dict[CallClass, int] = dict.fromkeys(CallClass, 0)
        self.dispatched = 0
        self.requests = 0
        """That the engine makes of these calls: one of each prompt and of each answer beside others."""
        self.peak_requests = 0
        """Most of them since the last `take_peak`."""
        self.last_progress_s = float("-inf")
        """When a byte of an answer last came from this backend."""

    def take_peak(self) -> int:
        peak, self.peak_requests = self.peak_requests, self.requests
        return peak


class Lease:
    """One of our calls on one backend, from dispatch to its end."""

    __slots__ = (
        "_ledger",
        "account",
        "answered",
        "backend",
        "call_class",
        "closed",
        "first_s",
        "occupies_slot",
        "opened_s",
        "requests",
        "running",
        "trial",
    )

    def __init__(
        self,
        ledger: Ledger,
        account: Account,
        backend: str,
        call_class: CallClass,
        opened_s: float,
        *,
        slot: bool,
        requests: int,
    ) -> None:
        self._ledger = ledger
        self.account = account
        self.backend = backend
        self.call_class = call_class
        self.opened_s = opened_s
        self.occupies_slot = slot
        self.requests = requests
        self.trial = False
        """The one call that finds out whether a backend that was taken out works again."""
        self.running: Running | None = None
        """What it still needs there; None: it takes no slot, or nobody knows."""
        self.first_s: float | None = None
        """When its first token came."""
        self.answered = NOTHING_SEEN
        self.closed: Outcome | None = None

    def __repr__(self) -> str:
        return f"<Lease {self.call_class} on {self.backend}: {self.closed or 'open'}>"

    def first_token(self, now_s: float) -> None:
        """The first token of its stream came."""
        if self.first_s is None and self.closed is None:
            self.first_s = now_s
            self._ledger._began(self, now_s)

    def close(self, outcome: Outcome, now_s: float, answered: Answered = NOTHING_SEEN) -> None:
        """End it. A second time is a bug in the caller: raises `RuntimeError`."""
        if self.closed is not None:
            raise RuntimeError(f"{self!r} closed again as {outcome}")
        self.closed = outcome
        self.answered = answered
        self._ledger._close(self, now_s)
        if self.running is not None:
            self.running.count = None  # it keeps the watch, which keeps this lease


class Ledger:
    """Owner of all leases. `on_close` is told of each end after the counts are right again, `on_first` of each first
    token.
    """

    def __init__(
        self,
        on_close: Callable[[Lease, float], None],
        on_first: Callable[[Lease, float], None] = lambda lease, now_s: None,
    ) -> None:
        self._on_close = on_close
        self._began = on_first
        self._open: set[Lease] = set()
        self._accounts: dict[str, Account] = {}

    def __repr__(self) -> str:
        per_backend = ", ".join(f"{name} {account.own}" for name, account in self._accounts.items())
        return f"<Ledger {len(self._open)} open: {per_backend}>"

    def __len__(self) -> int:
        return len(self._open)

    def account(self, backend: str) -> Account:
        account = self._accounts.get(backend)
        if account is None:
            account = self._accounts[backend] = Account()
        return account

    def begin_anew(self, backend: str) -> Account:
        """Another server is behind the name; open leases stay with the account of the one before."""
        account = self._accounts[backend] = Account()
        return account

    def forget(self, backend: str) -> None:
        """Drop the account of a backend that is gone for good and has no open lease."""
        account = self._accounts.get(backend)
        if account is not None and account.own == 0:
            del self._accounts[backend]

    def open(self, backend: str, call_class: CallClass, now_s: float, *, slot: bool = True, requests: int = 1) -> Lease:
        """`requests`: that the engine makes of it."""
        account = self.account(backend)
        lease = Lease(self, account, backend, call_class, now_s, slot=slot, requests=requests)
        self._open.add(lease)
        if slot:
            account.own += 1
            account.by_class[call_class] += 1
            account.dispatched += 1
            account.requests += requests
            account.peak_requests = max(account.peak_requests, account.requests)
        return lease

    def _close(self, lease: Lease, now_s: float) -> None:
        self._open.remove(lease)
        if lease.occupies_slot:
            lease.account.own -= 1
            lease.account.by_class[lease.call_class] -= 1
            lease.account.requests -= lease.requests
        self._on_close(lease, now_s)
