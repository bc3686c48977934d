"""The clients that are remembered, and a call of one of them from its arrival to its end.

Bounds: `capacity` clients, forgotten least recently used first or after `ttl_s` of silence; of each a fixed number of
counters, and the borders of at most `histories` calls, of all clients together of at most `all_histories`. That is 7 KB
for a client that called once, 25 KB for one that never did the same thing twice, and 0.3 KB for each history: 35 MB for
all, if each does what it can to fill its place. Work for one call does not grow with what went before.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from classifiers.api import Features, Verdict
from classifiers.lengths import Lengths
from classifiers.marks import Marks
from router.arrivals.client import LEFT, LEFT_EARLY, READ, Called, Client

_CLIENTS: Final = 1024
_HISTORIES: Final = 256
_ALL_HISTORIES: Final = 32 * 1024
_TTL_S: Final = 2 * 3600.0
_NO_MARKS: Final = Marks()


class Arrivals:
    """Time is an argument, so the same object serves in the router and in a replay."""

    def __init__(
        self,
        capacity: int = _CLIENTS,
        histories: int = _HISTORIES,
        all_histories: int = _ALL_HISTORIES,
        ttl_s: float = _TTL_S,
    ) -> None:
        self._capacity = capacity
        self._histories = histories
        self._all_histories = all_histories
        self._kept_histories = 0
        self._ttl_s = ttl_s
        self._clients: OrderedDict[int, Client] = OrderedDict()

    def __len__(self) -> int:
        return len(self._clients)

    @property
    def open_calls(self) -> int:
        """Of all clients; goes through them."""
        return sum([client.open for client in self._clients.values()])

    def arrive(
        self, client: str, features: Features, now_s: float, judge: object | None = None, *, glance: bool = False
    ) -> Presence:
        """A call of `client` has come in. Every presence must be ended. Of the name only a keyed hash is kept.

        `judge` is what judges calls; what it said of calls like this one may be recalled then, in place of `arrival`.
        With `glance`, at least what tells how the call follows those before it is in `arrival` then.
        """
        record = self._client(hash(client), now_s)
        before = len(record.histories)
        called = record.called(features, features.recognised_by() or _NO_MARKS, now_s, judge, glance=glance)
        self._kept_histories += len(record.histories) - before
        self._forget(now_s)
        return Presence(record, called, judge, stream=features.stream)

    def _client(self, name: int, now_s: float) -> Client:
        clients = self._clients
        record = clients.get(name)
        if record is not None and not record.open and now_s - record.seen_s > self._ttl_s:
            self._kept_histories -= len(clients.pop(name).histories)
            record = None
        if record is None:
            record = clients[name] = Client(self._histories, now_s)
        else:
            clients.move_to_end(name)
            record.seen_s = now_s
        return record

    def _forget(self, now_s: float) -> None:
        """At most two for each call, so that none pays for all."""
        clients = self._clients
        for _ in range(2):
            oldest = next(iter(clients.values()))
            full = len(clients) > self._capacity or self._kept_histories > self._all_histories
            if not full and (oldest.open or now_s - oldest.seen_s <= self._ttl_s):
                return
            if len(clients) == 1:
                return
            clients.popitem(last=False)
            self._kept_histories -= len(oldest.histories)


class Presence:
    """One call, from its arrival to its end."""

    __slots__ = ("_called", "_client", "_judge", "_stream", "arrival", "verdict")

    def __init__(self, client: Client, called: Called, judge: object | None, *, stream: bool) -> None:
        self.arrival = called.arrival
        """What was known of the client; not looked up where there is a verdict."""
        self.verdict = called.verdict
        """What was said of calls like this one."""
        self._client: Client | None = client
        self._called = called
        self._judge = judge
        self._stream = stream

    @property
    def open_calls(self) -> int:
        """Of its client, this one included."""
        return self._client.open if self._client is not None else 0

    @property
    def lengths(self) -> Lengths | None:
        """How long answers to calls like this one are expected to be; None: it is not known, or was not asked."""
        return self._called.recall.lengths if self._called.recall is not None else None

    def judged(self, verdict: Verdict, now_s: float, lengths: Lengths | None = None) -> None:
        """What the judge says of this call, for those that are like it."""
        if self._called.recall is not None:
            self._called.recall.judged(verdict, self._judge, now_s, lengths)
        if verdict.alone is not None and self._client is not None:
            self._client.judged(self._called.program, self._stream, verdict.alone)

    def ended(
        self, now_s: float, *, left: bool = False, first_token_seen: bool = True, output_tokens: int | None = None
    ) -> None:
        """Exactly once. `left`: the client went away before the answer was complete."""
        client, self._client = self._client, None
        assert client is not None, "a call ends once"
        stream = None
        if self._stream and (left or first_token_seen):
            stream = READ if not left else LEFT if first_token_seen else LEFT_EARLY
        client.answered(self._called.kins, self._called.served, stream, output_tokens, now_s)
