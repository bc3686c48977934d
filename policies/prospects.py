"""What a place is worth to a call, and what it takes from others: those that run there, and those still to come.

Times are those of `policies.outlook`, but for one thing: there, prompts of others are taken to go on holding up what
decodes as they did of late. Here it is for the policy to hold back such prompts, so they are not foreseen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

from classifiers.api import CallClass
from policies.api import Ask, Demand, View
from policies.outlook import ahead_tokens, lengths, margin, outlook, sequences, stall_s, uncached_tokens
from policies.scoring import calls_at

POSITION: Final = {CallClass.TTFT: 0, CallClass.MIXED: 1, CallClass.THROUGHPUT: 2}
_IN_TIME_0_1: Final = 0.8
"""Of what is promised for a first token, up to which a call to come is thought to be in time."""
_LOST: Final = 0.4
"""A promise is given up where more than this many times of what is left to do would be missing."""
_LEAST_PER_S: Final = 0.05
"""Calls that wait for a first token, which may come at any time."""
_MANY: Final = 1_000


class Prospect(NamedTuple):
    """One call on one backend, from now on."""

    view: View
    prefill_s: float
    """Of its own prompt."""
    whole_s: float
    """Until its last token, if no prompts come later."""
    margin: float
    """How safely it would keep its promise, as `policies.outlook.margin` has it."""


def prospect(ask: Ask, view: View, now_s: float) -> Prospect:
    seen = outlook(ask, view, now_s)
    return Prospect(view, seen.prefill_s, seen.least_whole_s, margin(ask, seen, now_s))


def breaks(ask: Ask, view: View, *, surely: bool) -> bool:
    """Whether a running call that is as urgent, or more, would miss its promise because of this one.

    `surely`: only where its answer is as long as expected; else also where it is as short or as long as one in ten.
    """
    protected = view.work.protected
    if not protected or not view.pace.known:
        return False
    pace, position = view.pace, POSITION[ask.verdict.call_class]
    once_s = stall_s(ask, view)
    each_s, tokens = pace.sequence_s * sequences(ask), lengths(ask).p50_tokens
    # Of sixty calls hardly one is near its limit; those that cannot be are passed over in one go.
    most_s = once_s + each_s * tokens
    if surely:
        return any(
            [
                slack_s < once_s + each_s * min(left, tokens)
                for slack_s, left, _, call_class in [one for one in protected if 0.0 <= one[0] < most_s]
                if POSITION[call_class] <= position
            ]
        )
    token_s = pace.step_s + pace.sequence_s * view.work.decoding
    for slack_s, left, sure_s, call_class in [one for one in protected if one[0] < most_s or one[2] < most_s]:
        if POSITION[call_class] > position:
            continue
        if slack_s < (-_LOST * left * token_s if call_class is CallClass.TTFT else 0.0):
            continue
        if (slack_s if call_class is CallClass.THROUGHPUT else sure_s) < once_s + each_s * min(left, tokens):
            return True
    return False


def room_for_next(view: View) -> int:
    """How many calls like those that wait for a first token the backend could take at once, all in time."""
    demand, pace, work = view.demand, view.pace, view.work
    free = _MANY if view.cap is None else view.cap - calls_at(view)
    if free <= 0 or view.queued >= 0.5:
        return 0
    step_s = pace.step_s + pace.sequence_s * (work.decoding + 1)
    if step_s > demand.tpot_s:
        return 0
    left_s = _IN_TIME_0_1 * demand.ttft_s - pace.call_s - step_s - work.prefill_tokens * pace.prefill_token_s
    each_s = demand.prompt_tokens * pace.prefill_token_s + 1e-6
    return 0 if left_s < each_s else min(free, _MANY, int(left_s / each_s))


def harm(ask: Ask, view: View, views: Iterable[View], now_s: float) -> float:
    """How many calls are likely to miss a first token in time because of this one's prompt, and find no place among
    `views` either.
    """
    demand: Demand = view.demand
    if demand.ttft_s == math.inf or not view.pace.known:
        return 0.0
    pace = view.pace
    # A call that comes has its first token with a whole step, which what came before it fills up.
    tokens = ahead_tokens(view, now_s) + uncached_tokens(ask, view.name)
    blocked_s = math.ceil(tokens / pace.step_tokens) * pace.step_tokens * pace.prefill_token_s
    own_s = demand.prompt_tokens * pace.prefill_token_s + pace.step_s + pace.call_s
    if own_s > demand.ttft_s or pace.step_s + pace.sequence_s > demand.tpot_s:
        return 0.0  # a server on which they would be late anyway is not kept idle for them
    window_s = min(blocked_s, blocked_s + own_s - _IN_TIME_0_1 * demand.ttft_s)
    if window_s <= 0.0:
        return 0.0
    # More than it can prefill are late with or without this one.
    served_per_s = 1.0 / (demand.prompt_tokens * pace.prefill_token_s + 1e-6)
    come = min(max(_LEAST_PER_S, demand.per_s), served_per_s) * window_s
    elsewhere = -1.0
    for other in views:
        if other is not view:
            elsewhere += room_for_next(other) + _turnover(other, window_s)
            if elsewhere >= 2.0 * come:
                return 0.0
    return come - 0.5 * max(0.0, elsewhere)


def least_harm(view: View, views: Iterable[View]) -> bool:
    """Whether a prompt takes no less from others if it waits: none is before it, and all other backends are idle, so
    that those who come find as much room there as they ever will.
    """
    return not view.work.prefilling and not any([calls_at(other) for other in views if other is not view])


def _turnover(view: View, window_s: float) -> float:
    """How many places come free there in so much time, if those that wait for a first token have them all."""
    if view.cap is None or view.queued >= 0.5:
        return 0.0
    return window_s * view.cap / service_s(view)


def service_s(view: View) -> float:
    """How long a call like those that wait for a first token has its place."""
    demand, pace = view.demand, view.pace
    step_s = pace.step_s + pace.sequence_s * (view.own + 1)
    return pace.call_s + demand.prompt_tokens * pace.prefill_token_s + demand.output_tokens * step_s + 1e-3


def reserve(demand: Demand, each_s: float, blocked_0_1: float = 0.1) -> int:
    """Places that those who wait for a first token need so that few find none: the smallest number that Erlang's loss
    formula allows, B(c) = a B(c - 1) / (c + a B(c - 1)), where a is the load that they offer, each for `each_s`.
    """
    load, blocked, places = demand.per_s * each_s, 1.0, 0
    while blocked > blocked_0_1 and places < _MANY:
        places += 1
        blocked = load * blocked / (places + load * blocked)
    return places
