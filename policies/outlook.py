"""What a call would see on a backend, and what it would cost those that run there. Pure functions of call and view.

The engine is taken to work in steps (see `policies.api.Pace`), to decode with each step one token of every sequence
that has begun, and to prefill prompts first come, first served, at most `step_tokens` a step (chunked prefill,
Sarathi-Serve, arXiv 2403.02310). With n sequences decoding, P prompt tokens ahead and u tokens of this prompt that the
backend has not in its cache,

    step(n) = step_s + sequence_s n
    first   = wait + call_s + step(n) / 2 + (P + u) prefill_token_s + ceil((P + u) / step_tokens) step(n)
    least   = step(n + those that prefill now + this one)
    tpot    = least / (1 - p)
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
NEVER: Final = -math.inf
_MOST_SPREAD: Final = 1.6
"""More than this is not taken to be chance: it is a pace that is being learned."""
_MOST_TPOT_SPREAD: Final = 1.2
"""The same of the mean time between tokens, of which much evens out."""
_NO_TEXT: Final = Lengths(p50_tokens=1, p90_tokens=1)
_NINE_IN_TEN: Final = 1.2816
"""Deviations above the median of a normal distribution."""


class Estimate(NamedTuple):
    """A predicted time: the median, and how many times of it are not passed nine times in ten."""

    seconds: float
    spread: float


class Outlook(NamedTuple):
    """One call on one backend, from now on; medians, in seconds."""

    wait_s: float
    """Until there is a place inside the engine."""
    prefill_s: float
    """Of its own prompt."""
    first_s: float
    """Until its first token."""
    tpot_s: float
    """Mean time between later tokens."""
    whole_s: float
    """Until its last token."""
    least_tpot_s: float
    least_whole_s: float
    """The same two if no prompts come later: to hold those back is for the policy, which decides by these."""
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
        return Estimate(self.whole_s, self.spread(self.whole_s, self.pace.spread))

    def spread(self, whole_s: float, known: float) -> float:
        """Of a whole answer that is `known` where its length is: lengths count as far as decoding takes its time."""
        expected = self.expected
        ratio = max(1.0, expected.p90_tokens / max(1, expected.p50_tokens))
        of_length = (1.0 - self.first_s / whole_s) * math.log(ratio)
        return math.exp(math.hypot(of_length, math.log(known)))


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
    ahead, own = ahead_tokens(view, now_s), uncached_tokens(ask, view.name)
    wait_s, prefill_s = place_s(ask, view, now_s), own * pace.prefill_token_s
    steps = math.ceil((ahead + own) / pace.step_tokens) + (0.5 if decoding or ahead else 0.0)
    first_s = wait_s + pace.call_s + ahead * pace.prefill_token_s + prefill_s + steps * step_s
    least_tpot_s = step_s + pace.sequence_s * (work.prefilling + sequences(ask))
    tpot_s = least_tpot_s / (1.0 - min(_held_up_0_1(view), _MOST_PREFILL_0_1))
    expected = lengths(ask)
    later = max(0, expected.p50_tokens - 1)
    whole_s, least_whole_s = first_s + later * tpot_s, first_s + later * least_tpot_s
    return Outlook(wait_s, prefill_s, first_s, tpot_s, whole_s, least_tpot_s, least_whole_s, pace, expected)


def _held_up_0_1(view: View) -> float:
    """Share of the time that the prompts of others will take while it decodes."""
    share_0_1 = view.work.prefill_0_1
    if not share_0_1:
        return 0.0
    places = max(2.0, view.in_flight + 1.0)
    if view.cap is not None:
        places = min(places, view.cap)
    return share_0_1 * (1.0 - 1.0 / max(1.0, places))


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


def margin(ask: Ask, seen: Outlook, now_s: float) -> float:
    """How safely the call keeps all that it was promised, if it is sent now to where `seen` is its outlook: 0 as likely
    as not, 1 nine times in ten, infinite: nothing was promised.

    The promises of one call depend on each other so much that the least safe one counts.
    """
    rules, pace = ask.rules, seen.pace
    least = math.inf
    if ask.features.stream:
        if rules.slo_ttft_s is not None:
            left_s = rules.slo_ttft_s - (now_s - ask.arrived_s)
            least = _margin(left_s, seen.first_s, min(_MOST_SPREAD, pace.first_spread))
        if rules.slo_tpot_s is not None:
            least = min(least, _margin(rules.slo_tpot_s, seen.least_tpot_s, min(_MOST_TPOT_SPREAD, pace.tpot_spread)))
    due_s = due_in_s(ask, now_s)
    if due_s is not None:
        spread = seen.spread(seen.least_whole_s, min(_MOST_SPREAD, pace.spread))
        least = min(least, _margin(due_s, seen.least_whole_s, spread))
    return least


def _margin(limit_s: float, seconds: float, spread: float) -> float:
    return math.log(limit_s / seconds) / math.log(max(1.05, spread)) if limit_s > 0 else NEVER


def too_late(ask: Ask, now_s: float) -> bool:
    """Whether the time of a promise has passed, so that its margin is `NEVER` on every backend."""
    promised_s = ask.rules.slo_ttft_s
    if promised_s is not None and ask.features.stream and now_s - ask.arrived_s >= promised_s:
        return True
    due_s = due_in_s(ask, now_s)
    return due_s is not None and due_s <= 0


def keeps_0_1(ask: Ask, seen: Outlook, now_s: float) -> float:
    """The same as a probability, if logarithms of times are normal."""
    return 0.5 * (1.0 + math.erf(margin(ask, seen, now_s) * _NINE_IN_TEN / math.sqrt(2.0)))


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
