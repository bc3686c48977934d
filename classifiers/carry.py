"""What the model said of a program's calls lately is carried over to its next one.

The calls of a program are of one kind mostly, and what a single one shows of it varies with its text. So the log-odds
that calls got by themselves are averaged, new ones for most, and of the average a share goes into the next verdict:

    score = (1 - share) * its own log-odds + share * what was said lately

A share, and not a sum as of independent signs, since calls of one program resemble one another also in what misleads.
"""

from __future__ import annotations

from typing import Final

LogOdds = tuple[float, float, float]
"""Of `ttft`, `mixed` and `throughput`; their mean is 0."""

_SHARE_OF_NEWEST: Final = 0.3
_MOST: Final = 3.0
"""What a call that is very sure counts for at most: one must not decide for those that follow."""


def centred(scores: LogOdds, temperature: float) -> LogOdds:
    first, second, third = scores
    mean = (first + second + third) / 3
    return (first - mean) / temperature, (second - mean) / temperature, (third - mean) / temperature


def taken_in(lately: LogOdds | None, said: LogOdds) -> LogOdds:
    """What was said lately, this call included."""
    newest = bounded(said)
    if lately is None:
        return newest
    share = _SHARE_OF_NEWEST
    return (
        lately[0] + share * (newest[0] - lately[0]),
        lately[1] + share * (newest[1] - lately[1]),
        lately[2] + share * (newest[2] - lately[2]),
    )


def bounded(said: LogOdds) -> LogOdds:
    first, second, third = said
    return _bounded(first), _bounded(second), _bounded(third)


def _bounded(value: float) -> float:
    return _MOST if value > _MOST else -_MOST if value < -_MOST else value


def carried(said: LogOdds, lately: LogOdds, share: float) -> LogOdds:
    own = 1.0 - share
    return (
        own * said[0] + share * lately[0],
        own * said[1] + share * lately[1],
        own * said[2] + share * lately[2],
    )
