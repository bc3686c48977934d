"""When one hop of a task should be complete, so that the task ends in time. Pure.

What is left of the time until the deadline, less the work that is left and the time that the program needs in between,
is slack, and each step gets the same share of it:

    due = now + step + slack / (1 + steps left)        work left = (1 + steps left) x usual step
    slack = deadline - now - work left - steps left x usual gap

which is the equal flexibility of Kao and Garcia-Molina (IEEE TPDS 8(12), 1997), for steps of one length.
"""

from __future__ import annotations

from typing import Final, NamedTuple

UNKNOWN_STEP_S: Final = 3.3
"""Of a task whose kind was never seen: an answer of 150 tokens on a common server."""
HOPELESS: Final = 0.5
"""A deadline is out of reach where less than this share of the quickest possible rest is left until then."""


class Rest(NamedTuple):
    """What a task still needs from one hop on, in seconds."""

    step_s: float
    """From the place of a hop to its end, as usual."""
    steps_left: float
    """After this one."""
    gap_s: float
    quickest_s: float
    """All of it, if each step is as quick as the quickest and nothing comes between."""


def due_s(now_s: float, deadline_s: float, rest: Rest) -> float:
    """Not before the hop could be complete if it had a server for itself."""
    slack_s = deadline_s - now_s - (1.0 + rest.steps_left) * rest.step_s - rest.steps_left * rest.gap_s
    return now_s + rest.step_s + max(0.0, slack_s) / (1.0 + rest.steps_left)


def out_of_reach(now_s: float, deadline_s: float, rest: Rest, *, known: bool) -> bool:
    """Whether the deadline cannot be met any more. `known`: such tasks were seen to their end before."""
    if now_s >= deadline_s:
        return True
    return known and deadline_s - now_s < HOPELESS * rest.quickest_s
