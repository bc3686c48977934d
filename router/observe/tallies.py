"""What is counted of many calls: sums, and how times are spread. Two of them add up to one.

Times are kept as t-digests (Dunning, "Computing extremely accurate quantiles using t-digests", arXiv 1902.04023):
small, mergeable, most exact at the tails, where p95 and p99 are. `fastdigest` is that in Rust, without further
packages. Values are handed over many at once, since that costs a tenth of one at a time.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Final

from fastdigest import TDigest, merge_all

from router.observe.facts import MISSABLE, CallFacts

TIMES: Final = ("ttft_s", "tpot_s", "complete_s", "queue_s")
"""What is kept of each call as a time, by its name in `CallFacts`."""
_SHARES: Final = (0.5, 0.95, 0.99)
_CENTROIDS: Final = 64
"""Kept of one spread, about 1 KB: p99 of 20,000 values is off by less than 1 %."""
_AT_ONCE: Final = 256
"""Values that wait to be handed over."""
GREEN_0_1: Final = 0.95
YELLOW_0_1: Final = 0.90


class Spread:
    """How one kind of time is spread."""

    __slots__ = ("_digest", "_waiting")

    def __init__(self, waiting: list[float] | array[float] | None = None, digest: TDigest | None = None) -> None:
        self._waiting = waiting if waiting is not None else []
        self._digest = digest

    @classmethod
    def sum(cls, several: Sequence[Spread]) -> Spread:
        """All of them as one, of at most about 1 KB; the parts stay as they are. Few values are kept as they are."""
        waiting = [value for part in several for value in part._waiting]
        digests = [part._digest for part in several if part._digest is not None]
        if waiting and (digests or len(waiting) > _CENTROIDS):
            digests.append(TDigest.from_values(waiting, max_centroids=_CENTROIDS))
            waiting = []
        return cls(array("d", waiting), _small(merge_all(digests, max_centroids=_CENTROIDS)) if digests else None)

    def add(self, value: float) -> None:
        self._waiting.append(value)
        if len(self._waiting) >= _AT_ONCE:
            self._hand_over()

    @property
    def digest(self) -> TDigest | None:
        """None: there was no value."""
        if self._waiting:
            self._hand_over()
        return self._digest

    def _hand_over(self) -> None:
        if self._digest is None:
            self._digest = TDigest.from_values(self._waiting, max_centroids=_CENTROIDS)
        else:
            self._digest.batch_update(self._waiting)
        self._waiting = []

    def quantiles(self, shares: Sequence[float]) -> list[float | None]:
        """In seconds, for each share of 0 to 1; None: there was no value."""
        digest = self.digest
        return [None] * len(shares) if digest is None else list(digest.quantile_vec(shares))

    def document(self) -> dict[str, float | int | None]:
        """`{"count", "p50", "p95", "p99"}`, in seconds; null where there was no value."""
        p50, p95, p99 = self.quantiles(_SHARES)
        return {"count": self._digest.n_values if self._digest is not None else 0, "p50": p50, "p95": p95, "p99": p99}


class Counts:
    """The calls of one kind in one stretch of time."""

    __slots__ = (
        "calls",
        "inside",
        "missed",
        "smooth",
        "smooth_tokens",
        "times",
        "tokens_cached",
        "tokens_in",
        "tokens_inside",
        "tokens_out",
        "told",
    )

    def __init__(self) -> None:
        self.calls = 0
        self.told = 0
        """Calls that were promised something of which can be told whether it was kept."""
        self.inside = 0
        """Calls that got what they were promised."""
        self.missed = dict.fromkeys(MISSABLE, 0)
        self.tokens_in = self.tokens_cached = self.tokens_out = 0
        """Of all calls; `cached` are among `in`."""
        self.tokens_inside = 0
        """Output of the calls inside their SLO."""
        self.smooth = 0.0
        self.smooth_tokens = 0.0
        self.times = tuple(Spread() for _ in TIMES)

    def add(self, facts: CallFacts, missed: Sequence[str] | None, smooth_0_1: float) -> None:
        """`missed`: the promises that were not kept; None: nothing can be told."""
        self.calls += 1
        out = facts.output_tokens or 0
        self.tokens_out += out
        self.tokens_in += facts.prompt_tokens or 0
        self.tokens_cached += facts.cached_tokens or 0
        if missed is not None:
            self.told += 1
            self.smooth += smooth_0_1
            self.smooth_tokens += smooth_0_1 * out
            if not missed:
                self.inside += 1
                self.tokens_inside += out
            for part in missed:
                self.missed[part] += 1
        ttft, tpot, complete, queue = self.times
        if facts.ttft_s is not None:
            ttft.add(facts.ttft_s)
        if facts.tpot_s is not None:
            tpot.add(facts.tpot_s)
        if facts.outcome == "completed":
            complete.add(facts.complete_s)
        queue.add(facts.queue_s)

    @classmethod
    def sum(cls, several: Sequence[Counts]) -> Counts:
        """All of them as one; the parts stay as they are."""
        whole = cls()
        for part in several:
            whole.calls += part.calls
            whole.told += part.told
            whole.inside += part.inside
            whole.tokens_in += part.tokens_in
            whole.tokens_cached += part.tokens_cached
            whole.tokens_out += part.tokens_out
            whole.tokens_inside += part.tokens_inside
            whole.smooth += part.smooth
            whole.smooth_tokens += part.smooth_tokens
            for name, count in part.missed.items():
                whole.missed[name] += count
        whole.times = tuple(Spread.sum(spreads) for spreads in zip(*(part.times for part in several), strict=True))
        return whole

    def document(self, seconds: float) -> dict[str, Any]:
        """As `docs/goodput.md` has it; `seconds` is the stretch of time that was counted in."""
        per_s = 1.0 / seconds if seconds > 0.0 else 0.0
        compliance = self.inside / self.told if self.told else None
        return {
            "calls": self.calls,
            "told": self.told,
            "inside": self.inside,
            "missed": dict(self.missed),
            "compliance_0_1": compliance,
            "colour": colour(compliance),
            "smooth_0_1": self.smooth / self.told if self.told else None,
            "tokens_in": self.tokens_in,
            "tokens_cached": self.tokens_cached,
            "tokens_out": self.tokens_out,
            "tokens_inside": self.tokens_inside,
            "calls_per_s": self.calls * per_s,
            "inside_per_s": self.inside * per_s,
            "smooth_per_s": self.smooth * per_s,
            "tokens_per_s": self.tokens_out * per_s,
            "tokens_inside_per_s": self.tokens_inside * per_s,
            "smooth_tokens_per_s": self.smooth_tokens * per_s,
            **{name: spread.document() for name, spread in zip(TIMES, self.times, strict=True)},
        }


def colour(compliance_0_1: float | None) -> str:
    """`green` from 95 %, `yellow` from 90 %, `red` below; `none`: nothing was promised that could be told."""
    if compliance_0_1 is None:
        return "none"
    if compliance_0_1 >= GREEN_0_1:
        return "green"
    return "yellow" if compliance_0_1 >= YELLOW_0_1 else "red"


def _small(digest: TDigest) -> TDigest:
    """Without the room for the values that it was made of, which is five times its size."""
    return TDigest.from_bytes(digest.to_bytes())
