"""How long a call takes at best, and when it has to start to keep its promise. Pure functions of call and pace."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from policies.api import Ask, Pace, View
from policies.outlook import lengths, uncached_tokens


class Urgency(NamedTuple):
    hoped_s: float
    """When it has to start to be done when it is hoped to be; at most `latest_s`."""
    latest_s: float
    """When it has to start, on the clock of `arrived_s`."""
    work_s: float
    """From its start to its end, on an idle backend."""


def alone_s(ask: Ask, pace: Pace, backend: str) -> tuple[float, float]:
    """Seconds to the first and to the last token on an idle backend."""
    tokens = uncached_tokens(ask, backend)
    step_s = pace.step_s + pace.sequence_s
    first_s = pace.call_s + tokens * pace.prefill_token_s + math.ceil(tokens / pace.step_tokens) * pace.step_s
    return first_s, first_s + (lengths(ask).p50_tokens - 1) * step_s


def urgency(ask: Ask, views: Iterable[View], aged_s: float) -> Urgency:
    """On the backend of `views` (not empty) that would be quickest with it.

    A call of which nothing was promised has to start at `aged_s`, when it has waited for a whole `ageing`.
    """
    first_s, whole_s = min([alone_s(ask, view.pace, view.name) for view in views], key=lambda each: each[1])
    rules = ask.rules
    latest = [aged_s] if ask.due_s is None else [ask.due_s - whole_s]
    if rules.slo_complete_s is not None:
        latest.append(ask.arrived_s + rules.slo_complete_s - whole_s)
    if rules.slo_ttft_s is not None and ask.features.stream:
        latest.append(ask.arrived_s + rules.slo_ttft_s - first_s)
    latest_s = min(latest)
    return Urgency(latest_s if ask.hoped_s is None else min(latest_s, ask.hoped_s - whole_s), latest_s, whole_s)
