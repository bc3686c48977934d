"""What a call would see on a backend, and what it would cost those that run there. Pure functions of call and view.

The engine is taken to work in steps (see `policies.api.Pace`), to decode with each step one token of every sequence
that has begun, and to prefill prompts first come, first served, at most `step_tokens` a step (chunked prefill,
Sarathi-Serve, arXiv 2403.02310). With n sequences decoding, P prompt tokens ahead and u tokens of this prompt that the
backend has not in its cache,

    step(n) = step_s + sequence_s n
    first   = wait + call_s + step(n) / 2 + (P + u) prefill_token_s + ceil((P + u) / step_tokens) step(n)
    tpot    = step(n + those that prefill now + this one) / (1 - p)
    whole   = first + (tokens of the answer - 1) tpot

where `wait` is the time until enough of the running calls have ended, where there are slots and none is free, and half
a step is what is left of the running one on the mean. Prompts that come later hold up what decodes; p is the share of
time that prompts took lately, and is taken to go on, less what its own place had of it. To each running call the new
one costs `prefill_token_s u`, once, and `sequence_s` with each token that both get.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from classifiers.lengths import WITHOUT_TEXT, Lengths
from policies.api import Ask, Pace, View

UNKNOWN_LENGTHS: Final = Lengths(p50_tokens=160, p90_tokens=640)
"""Of answers that nothing is known of."""
_MOST_PREFILL_0_1: Final = 0.8
_MOST_SEQUENCES: Final = 64
"""Of one call: a caller may ask for a million, and gets an error or waits."""
_NO_TEXT: Final = Lengths(p50_tokens=1, p90_tokens=1)
_NINE_IN_TEN: Final = 1.2816
"""Deviations above the median of a normal distribution."""


class Estimate(NamedTuple):
    """A predicted time: the median, and how many times of it are not passed nine times in ten."""

    seconds: float
    spread: float

    def within_0_1(self, limit_s: float) -> float:
        """How likely it is not to take longer, if its logarithm is normal."""
        if limit_s <= 0:
            return 0.0
        if self.seconds <= 0:
            return 1.0
        far = math.log(limit_s / self.seconds) / max(math.log(self.spread), 1e-3)
        return 0.5 * (1.0 + math.erf(far * _NINE_IN_TEN / math.sqrt(2.0)))


class Outlook(NamedTuple):
    """One call on one backend, from now on; medians, in seconds."""

    wait_s: float
    """Until there is a place inside the engine."""
    first_s: float
    """Until its first token."""
    tpot_s: float
    """Mean time between later tokens."""
    whole_s: float
    """Until its last token."""
    pace: Pace
    expected: Lengths

    @property
    def first(self) -> Estimate:
        return Estimate(self.first_s, self.pace.first_spread)

    @property
    def tpot(self) -> Estimate:
        return Estimate(self.tpot_s, self.pace.tpot_spread)

    @property
    def whole(self) -> Estimate:
        """Its spread is that of the length of the answer as well, as far as decoding takes its time."""
        expected = self.expected
        ratio = max(1.0, expected.p90_tokens / max(1, expected.p50_tokens))
        of_length = (1.0 - self.first_s / self.whole_s) * math.log(ratio)
        return Estimate(self.whole_s, math.exp(math.hypot(of_length, math.log(self.pace.spread))))


def lengths(ask: Ask) -> Lengths:
    """How long the answer is taken to be, whether that is known or not."""
    if ask.lengths is not None:
        return ask.lengths
    if ask.features.surface in WITHOUT_TEXT:
        return _NO_TEXT
    limit = ask.features.max_tokens
    if not limit:
        return UNKNOWN_LENGTHS
    return Lengths(min(limit, UNKNOWN_LENGTHS.p50_tokens), min(limit, UNKNOWN_LENGTHS.p90_tokens))


def sequences(ask: Ask) -> int:
    """Answers that are generated side by side."""
    features = ask.features
    if features.choices == features.prompts == 1 or features.surface in WITHOUT_TEXT:
        return 1
    return min(_MOST_SEQUENCES, features.choices * features.prompts)


def uncached_tokens(ask: Ask, backend: str) -> int:
    """Of its prompt, those that are to be prefilled there: the last token always is."""
    return max(1, ask.features.prompt_tokens - ask.cached_tokens.get(backend, 0))


def outlook(ask: Ask, view: View, now_s: float) -> Outlook:
    pace, work = view.pace, view.work
    decoding = work.decoding + view.foreign
    step_s = pace.step_s + pace.sequence_s * decoding
    ahead = ahead_tokens(view, now_s)
    tokens = ahead + uncached_tokens(ask, view.name)
    wait_s = place_s(ask, view, now_s)
    joins_s = 0.5 * step_s if decoding or ahead else 0.0
    first_s = (
        wait_s + pace.call_s + joins_s + tokens * pace.prefill_token_s + math.ceil(tokens / pace.step_tokens) * step_s
    )
    alone_s = step_s + pace.sequence_s * (work.prefilling + sequences(ask))
    tpot_s = alone_s / (1.0 - min(_held_up_0_1(view), _MOST_PREFILL_0_1))
    expected = lengths(ask)
    whole_s = first_s + max(0, expected.p50_tokens - 1) * tpot_s
    return Outlook(wait_s, first_s, tpot_s, whole_s, pace, expected)


def _held_up_0_1(view: View) -> float:
    """Share of the time that the prompts of others will take while it decodes."""
    places = max(2.0, view.in_flight + 1.0)
    if view.cap is not None:
        places = min(places, view.cap)
    return view.work.prefill_0_1 * (1.0 - 1.0 / max(1.0, places))


def first_token_s(ask: Ask, view: View, now_s: float) -> Estimate:
    """Seconds from now until the first token."""
    return outlook(ask, view, now_s).first


def tpot_s(ask: Ask, view: View, now_s: float) -> Estimate:
    """Mean seconds between later tokens."""
    return outlook(ask, view, now_s).tpot


def complete_s(ask: Ask, view: View, now_s: float) -> Estimate:
    """Seconds from now until the last token."""
    return outlook(ask, view, now_s).whole


def ahead_tokens(view: View, now_s: float) -> float:
    """Prompt tokens that the engine prefills before those of a new call, of our own calls."""
    work, pace = view.work, view.pace
    if not work.prefill_tokens:
        return 0.0
    step_s = pace.step_s + pace.sequence_s * (work.decoding + view.foreign)
    done = (now_s - work.at_s) / (pace.prefill_token_s + step_s / pace.step_tokens)
    return max(0.0, work.prefill_tokens - done)


def place_s(ask: Ask, view: View, now_s: float) -> float:
    """Until there is a place inside the engine: 0 where one is free, or no limit is known and nothing waits there."""
    missing = view.queued if view.cap is None else view.in_flight + 1.0 - view.cap
    if missing < 0.5:
        return 0.0
    ends_s = view.work.ends_s
    place = math.ceil(missing) - 1
    if place < len(ends_s):
        return max(0.0, ends_s[place] - now_s)
    # The places are those of other clients, of whose calls nothing is known: half of a usual answer.
    pace = view.pace
    foreign_s = 0.5 * UNKNOWN_LENGTHS.p50_tokens * (pace.step_s + pace.sequence_s * view.in_flight)
    return max(foreign_s, ends_s[-1] - now_s) if ends_s else foreign_s


def keeps_0_1(ask: Ask, view: View, seen: Outlook, now_s: float) -> float:
    """How likely the call is to keep all that it was promised, if it is sent there now; 1 where nothing was promised.

    `seen` is its outlook there. The promises of one call depend on each other so much that the least likely one counts.
    """
    rules, waited_s = ask.rules, now_s - ask.arrived_s
    chance = 1.0
    if ask.features.stream:
        if rules.slo_ttft_s is not None:
            chance = seen.first.within_0_1(rules.slo_ttft_s - waited_s)
        if rules.slo_tpot_s is not None:
            chance = min(chance, seen.tpot.within_0_1(rules.slo_tpot_s))
    limit_s = due_in_s(ask, now_s)
    return chance if limit_s is None else min(chance, seen.whole.within_0_1(limit_s))


def due_in_s(ask: Ask, now_s: float) -> float | None:
    """Seconds that are left until it should be complete; None: no time was set."""
    due_s, promised_s = ask.due_s, ask.rules.slo_complete_s
    if promised_s is not None:
        promised_s += ask.arrived_s
        due_s = promised_s if due_s is None else min(due_s, promised_s)
    return None if due_s is None else due_s - now_s


def stall_s(ask: Ask, view: View) -> float:
    """For how long its prefill holds up each call that is decoding there."""
    return uncached_tokens(ask, view.name) * view.pace.prefill_token_s


def broken(ask: Ask, view: View) -> int:
    """How many running calls would miss what they were promised because of this one, and would keep it without."""
    protected = view.work.protected
    if not protected:
        return 0
    once_s, each_s = stall_s(ask, view), view.pace.sequence_s * sequences(ask)
    tokens = lengths(ask).p50_tokens
    return sum([0 <= slack_s < once_s + each_s * min(left, tokens) for slack_s, left, *_ in protected])
