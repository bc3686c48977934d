"""When one hop of a task should be complete, so that the task ends in time. Pure.

What is left of the time until the deadline, less the work that is left and the time that the program needs in between,
is slack, and each step gets of it what its work is of all work that is left:

    due = now + own + slack x own / work left        work left = own + steps left x usual step
    slack = deadline - now - work left - steps left x usual gap

which is the equal flexibility of Kao and Garcia-Molina (IEEE TPDS 8(12), 1997).
"""

from __future__ import annotations

from typing import Final, NamedTuple

_UNKNOWN_START_S: Final = 0.3
_UNKNOWN_TOKEN_S: Final = 0.02
_UNKNOWN_TOKENS: Final = 150.0
_LEAST_SCALE, _MOST_SCALE = 0.3, 4.0
HOPELESS: Final = 0.5
"""A deadline is out of reach where less than this share of the quickest possible rest is left until then."""


class Rest(NamedTuple):
    """What a task still needs from one hop on, in seconds."""

    own_s: float
    steps_left: float
    step_s: float
    gap_s: float
    quickest_s: float
    """All of it, if each step is as quick as the quickest and nothing comes between."""


def own_s(step_s: float | None, usual_tokens: float | None, expected_tokens: float | None) -> float:
    """How long the hop is expected to take; longer than usual where its answer is."""
    tokens = expected_tokens or usual_tokens or _UNKNOWN_TOKENS
    if step_s is None:
        return _UNKNOWN_START_S + _UNKNOWN_TOKEN_S * tokens
    if not usual_tokens:
        return step_s
    return step_s * min(_MOST_SCALE, max(_LEAST_SCALE, tokens / usual_tokens))


def due_s(now_s: float, deadline_s: float, rest: Rest) -> float:
    """Not before the hop could be complete if it had a server for itself."""
    work_s = rest.own_s + rest.steps_left * rest.step_s
    slack_s = deadline_s - now_s - work_s - rest.steps_left * rest.gap_s
    return now_s + rest.own_s + max(0.0, slack_s) * rest.own_s / work_s


def out_of_reach(now_s: float, deadline_s: float, rest: Rest, *, known: bool) -> bool:
    """Whether the deadline cannot be met any more. `known`: such tasks were seen to their end before."""
    if now_s >= deadline_s:
        return True
    return known and deadline_s - now_s < HOPELESS * rest.quickest_s
