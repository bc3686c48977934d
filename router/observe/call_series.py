"""The series that ended calls move, and their children for one combination of labels, looked up once.

Bucket boundaries follow OpenTelemetry's gen_ai conventions where those have some.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from router.observe.facts import CallFacts, JudgedCall
from router.observe.foretold import PredictionErrors
from router.observe.series import Distribution, Tally
from router.observe.smooth import smooth_0_1

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_FIRST_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 30.0)
_PER_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_OVERHEAD = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.1)


class Series:
    """What ended calls move, each with its labels."""

    def __init__(self, registry: CollectorRegistry) -> None:
        per_call, by_judge = ("class", "backend"), ("class", "source")
        self.calls = Tally("twolane_calls", "Ended calls", (*per_call, "outcome"), registry)
        self.verdicts = Tally("twolane_verdicts", "Classes given, by who decided", by_judge, registry)
        self.ttft = Distribution("twolane_ttft_seconds", "Arrival to first token", per_call, _FIRST_TOKEN, registry)
        self.tpot = Distribution("twolane_tpot_seconds", "Mean time per later token", per_call, _PER_TOKEN, registry)
        self.complete = Distribution(
            "twolane_call_seconds", "Arrival to end, completed calls", per_call, _SECONDS, registry
        )
        self.queue = Distribution("twolane_queue_seconds", "Time in the router's line", ("class",), _SECONDS, registry)
        self.decide = Distribution(
            "twolane_decide_seconds", "Reading, classifying and deciding", (), _OVERHEAD, registry
        ).labels()
        self.connect = Distribution(
            "twolane_connect_seconds", "New connections to backends", ("backend",), _FIRST_TOKEN, registry
        )
        self.first_byte = Distribution(
            "twolane_first_byte_seconds", "Arrival to the head of the answer", per_call, _FIRST_TOKEN, registry
        )
        self.longest_gap = Distribution(
            "twolane_longest_gap_seconds", "Longest gap between tokens of an answer", per_call, _PER_TOKEN, registry
        )
        self.token_stalls = Tally(
            "twolane_token_stalls", "Gaps between tokens of more than four times the median", per_call, registry
        )
        self.tokens = Tally("twolane_tokens", "Tokens as counted by engines", ("backend", "direction"), registry)
        self.feedback = Tally("twolane_feedback", "What clients did with answers", (*by_judge, "did"), registry)
        self.objectives = Tally(
            "twolane_objectives", "Calls that were promised something", (*by_judge, "backend", "result"), registry
        )
        self.missed = Tally("twolane_missed", "Promises that were not kept", (*per_call, "part"), registry)
        self.predictions = PredictionErrors(registry)
        self.smooth = Tally("twolane_smooth_calls", "Calls by how well they were served, 0 to 1", per_call, registry)
        self.tokens_inside = Tally("twolane_tokens_inside", "Output of calls inside their SLO", per_call, registry)


class EndedSeries:
    """The children of one combination of labels, looked up once; histograms only for calls that a backend took."""

    __slots__ = (
        "_cached",
        "_calls",
        "_complete",
        "_connect",
        "_errors",
        "_first_byte",
        "_in",
        "_longest_gap",
        "_out",
        "_placed",
        "_queue",
        "_tpot",
        "_ttft",
        "_verdicts",
    )

    def __init__(self, series: Series, facts: CallFacts, backend: str) -> None:
        per_call = (facts.call_class, backend)
        self._calls = series.calls.labels(*per_call, facts.outcome)
        judged, self._placed, completed = facts.call_class != "none", backend != "", facts.outcome == "completed"
        self._verdicts = series.verdicts.labels(facts.call_class, facts.source) if judged else None
        self._queue = series.queue.labels(facts.call_class) if judged else None
        self._complete = series.complete.labels(*per_call) if self._placed and completed else None
        if self._placed:
            self._ttft = series.ttft.labels(*per_call)
            self._tpot = series.tpot.labels(*per_call)
            self._errors = series.predictions.of(backend) if completed else None
            self._connect = series.connect.labels(backend)
            self._first_byte = series.first_byte.labels(*per_call)
            self._longest_gap = series.longest_gap.labels(*per_call), series.token_stalls.labels(*per_call)
            self._in = series.tokens.labels(backend, "in")
            self._cached = series.tokens.labels(backend, "cached")
            self._out = series.tokens.labels(backend, "out")

    def observe(self, facts: CallFacts) -> None:
        self._calls.total += 1
        if self._verdicts is not None:
            self._verdicts.total += 1
        if self._queue is not None:
            self._queue.observe(facts.queue_s)
        if self._placed:
            self._observe_answer(facts)

    def _observe_answer(self, facts: CallFacts) -> None:
        trace_id = facts.trace_id
        if facts.ttft_s is not None:
            self._ttft.observe(facts.ttft_s, trace_id)
        if facts.tpot_s is not None:
            self._tpot.observe(facts.tpot_s, trace_id)
        if self._complete is not None:
            self._complete.observe(facts.complete_s, trace_id)
        if self._errors is not None and facts.predicted is not None:
            self._errors.observe(facts.predicted, facts.ttft_s, facts.tpot_s, facts.complete_s)
        if facts.connect_s:
            self._connect.observe(facts.connect_s)
        if facts.first_byte_s is not None:
            self._first_byte.observe(facts.first_byte_s)
        if facts.flow is not None:
            longest, stalls = self._longest_gap
            longest.observe(facts.flow.longest_s)
            stalls.total += facts.flow.stalls
        self._in.total += facts.prompt_tokens or 0
        self._cached.total += facts.cached_tokens or 0
        self._out.total += facts.output_tokens or 0


class PromisedSeries:
    """The children of one combination of labels of judged calls, looked up once."""

    __slots__ = ("_feedback", "_labels", "_missed", "_results", "_series", "_smooth", "_tokens_inside")

    def __init__(self, series: Series, facts: CallFacts, backend: str) -> None:
        self._series = series
        self._labels = by_judge, per_call = (facts.call_class, facts.source), (facts.call_class, backend)
        self._results = [series.objectives.labels(*by_judge, backend, result) for result in ("missed", "kept")]
        self._smooth = series.smooth.labels(*per_call)
        self._tokens_inside = series.tokens_inside.labels(*per_call)

    def observe(self, facts: CallFacts, judged: JudgedCall) -> None:
        by_judge, per_call = self._labels
        if (did := _did(facts)) is not None:
            self._series.feedback.labels(*by_judge, did).total += 1
        missed = judged.missed(facts)
        if missed is None:
            return
        self._results[not missed].total += 1
        self._smooth.total += smooth_0_1(facts, judged.rules)
        if not missed:
            self._tokens_inside.total += facts.output_tokens or 0
        for part in missed:
            self._series.missed.labels(*per_call, part).total += 1


def _did(facts: CallFacts) -> str | None:
    """What a client did with its answer, in one word; None: there was none to do something with."""
    if facts.left:
        return f"left_{facts.left}"
    if facts.outcome != "completed":
        return None
    if not facts.stream:
        return "took_whole"
    return "read_slowly" if facts.stalls else "read_at_once"
