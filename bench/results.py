"""The arithmetic of a run: rounds, their summaries, ratios between peers, and whether the targets hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.peers import SGLANG_ROUTER, TWOLANE, TWOLANE_RULES

DIRECT = "direct"
"""The client without anybody in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One column of figures. The unit is in the key."""

    key: str
    words: str
    digits: int = 1
    more_is_better: bool = False


CALL_CPU = Metric(key="call_cpu_us", words="CPU us per call, 1 KB")
CALL_CPU_8K = Metric(key="call_cpu_8k_us", words="CPU us per call, 8 KB")
CALL_RATE = Metric(key="calls_per_s", words="calls/s on one core, 1 KB", digits=0, more_is_better=True)
CALL_RATE_8K = Metric(key="calls_8k_per_s", words="calls/s on one core, 8 KB", digits=0, more_is_better=True)
TOKEN_CPU = Metric(key="token_cpu_us", words="CPU us per paced token")
ADDED_TTFT = Metric(key="added_ttft_ms", words="added TTFT ms, one client", digits=3)
ADDED_TTFT_P95 = Metric(key="added_ttft_p95_ms", words="added TTFT ms, p95", digits=3)
IDLE_STREAM = Metric(key="idle_stream_kb", words="KB per idle open stream")
START = Metric(key="start_s", words="s from start to first answer", digits=2)

METRICS = (
    CALL_CPU,
    CALL_CPU_8K,
    CALL_RATE,
    CALL_RATE_8K,
    TOKEN_CPU,
    ADDED_TTFT,
    ADDED_TTFT_P95,
    IDLE_STREAM,
    START,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    least: float
    median: float
    most: float


def summarise(values: Sequence[float]) -> Summary:
    """Raises `StatisticsError` where there are none."""
    return Summary(median=median(values), least=min(values), most=max(values))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` (0..1) of the values do not exceed."""
    ranked = sorted(values)
    return ranked[max(0, min(len(ranked), -int(-share * len(ranked) // 1)) - 1)]


@dataclass(slots=True)
class Rounds:
    """Value of each metric, peer and round. Value n of two peers was measured in the same round, side by side."""

    values: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, metric: Metric, peer: str, value: float) -> None:
        self.values.setdefault(metric.key, {}).setdefault(peer, []).append(value)

    def of(self, metric: Metric, peer: str) -> Sequence[float]:
        """In the order of the rounds; empty where nothing was measured."""
        return self.values.get(metric.key, {}).get(peer, [])

    def summary(self, metric: Metric, peer: str) -> Summary | None:
        values = self.of(metric, peer)
        return summarise(values) if values else None

    def ratio(self, metric: Metric, peer: str, base: str = SGLANG_ROUTER) -> float | None:
        """Median of the ratios of single rounds, so that a machine that slows down over the run weighs nothing.

        Where the two have not the same number of rounds (one failed once), the ratio of the medians.
        """
        mine, theirs = self.of(metric, peer), self.of(metric, base)
        if not mine or not theirs or min(theirs) <= 0:
            return None
        if len(mine) != len(theirs):
            return median(mine) / median(theirs)
        return median(one / other for one, other in zip(mine, theirs, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What Twolane promises: a median of at most `limit`, or of at most `limit` times that of a peer."""

    metric: Metric
    words: str
    limit: float
    times_peer: str | None = None
    of: str = TWOLANE


TARGETS = (
    Target(
        metric=CALL_CPU,
        words="CPU per call <= 2x sglang-router's, judged by headers, rules and prompt length",
        limit=2.0,
        times_peer=SGLANG_ROUTER,
        of=TWOLANE_RULES,
    ),
    Target(
        metric=CALL_CPU,
        words="CPU per call <= 2x sglang-router's, judged by the learned model too",
        limit=2.0,
        times_peer=SGLANG_ROUTER,
    ),
    Target(metric=TOKEN_CPU, words="CPU per paced token <= 1.1x sglang-router's", limit=1.1, times_peer=SGLANG_ROUTER),
    Target(metric=ADDED_TTFT, words="added TTFT at one client <= 0.5 ms", limit=0.5),
    Target(metric=IDLE_STREAM, words="an idle open stream <= 100 KB", limit=100.0),
    Target(metric=START, words="start to first answer <= 1 s", limit=1.0),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Whether a target holds; `holds` None: not measured in this run."""

    words: str
    limit: float | None
    measured: float | None
    holds: bool | None


def judge(rounds: Rounds, targets: Sequence[Target] = TARGETS) -> list[Finding]:
    return [_judged(rounds, target) for target in targets]


def _judged(rounds: Rounds, target: Target) -> Finding:
    if target.times_peer is None:
        summary = rounds.summary(target.metric, target.of)
        measured = None if summary is None else summary.median
    else:
        measured = rounds.ratio(target.metric, target.of, target.times_peer)
    holds = None if measured is None else measured <= target.limit
    return Finding(words=target.words, limit=target.limit, measured=measured, holds=holds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A peer that runs but did not do its part in one measurement."""

    peer: str
    measurement: str
    reason: str


@dataclass(slots=True, kw_only=True)
class Run:
    """All that one run has found; filled while it goes on."""

    rounds: Rounds = field(default_factory=Rounds)
    launched: dict[str, dict[str, object]] = field(default_factory=dict)
    """Command and settings of each peer that was started."""
    missing: dict[str, str] = field(default_factory=dict)
    """Peers that could not be had, and why."""
    failures: list[Failure] = field(default_factory=list)
    sklearn_imported: bool | None = None
    """In the serving router after all rounds; None: the router was not measured."""
    notes: list[str] = field(default_factory=list)

    def findings(self) -> list[Finding]:
        holds = None if self.sklearn_imported is None else not self.sklearn_imported
        return [
            *judge(self.rounds),
            Finding(words="serving does not import scikit-learn", limit=None, measured=None, holds=holds),
        ]
