"""What an ended call tells of the backend that answered it, as far as anybody counted.

From one answer up to three times can be told apart, each with what happened in it:

    first    sent -> first token     the prompts before it, its own, and the steps that they took
    decode   first -> last token     one step for each token; prompts of others that were prefilled meanwhile
    whole    sent -> end             both, where nothing tells when the first token was

The first token is seen where an answer streams; llama.cpp tells of the others how long their prompt took (`timings`).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from router.fleet.pace_filter import Sighting
from router.fleet.running import Mark, Running

_FEWEST_TOKENS: Final = 4
"""Of an answer whose pace says anything."""
_FIRST_NOISE: Final = 0.2
_DECODE_NOISE: Final = 0.1
_WHOLE_NOISE: Final = 0.2
_TIMED_NOISE: Final = 0.1
"""Deviations of the logarithms of these times from what the step model says, where all is counted."""
_ESTIMATED_NOISE: Final = 0.25
"""More, where the engine did not say how many tokens of the prompt it had to compute."""
_OTHERS_NOISE: Final = 0.3
"""More, for each call of other clients beside it: what they ask for is not known."""


class Answered(NamedTuple):
    """One answer. Instants are on the router's clock; None: not seen, or the engine did not say."""

    last_s: float | None = None
    """When its last token came, of a stream."""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    prompt_s: float | None = None
    """What the engine itself measured from the moment it took the prompt up to the first token (llama.cpp)."""
    decode_s: float | None = None
    """The same from there to the last token."""


NOTHING_SEEN: Final = Answered()


class Seen(NamedTuple):
    """What became of a call that was sent, in seconds since then; None: not seen."""

    first_s: float | None
    tpot_s: float | None
    whole_s: float
    output_tokens: float | None
    """Of each of its answers."""


def seen_of(running: Running, end: Mark, first_s: float | None, answered: Answered) -> Seen:
    """`first_s`: instant of its first token, where it was seen."""
    sent_s = running.began.at_s
    last_s = answered.last_s or end.at_s
    if first_s is None and answered.decode_s is not None and answered.prompt_s is not None:
        first_s = max(sent_s, end.at_s - answered.decode_s)
        last_s = end.at_s
    tokens = None if answered.output_tokens is None else answered.output_tokens / running.sequences
    tpot_s = None
    if first_s is not None and tokens is not None and tokens >= 2 and last_s > first_s:
        tpot_s = (last_s - first_s) / (tokens - 1)
    return Seen(None if first_s is None else first_s - sent_s, tpot_s, end.at_s - sent_s, tokens)


def sightings(running: Running, end: Mark, seen: Seen, answered: Answered, step_tokens: int) -> list[Sighting]:
    """Everything that this answer teaches of the pace."""
    uncached, counted = _uncached_tokens(running, answered)
    noise = (0.0 if counted else _ESTIMATED_NOISE) + _OTHERS_NOISE * running.others
    if seen.first_s is None:
        whole = _whole(running, end, seen, uncached, step_tokens, noise)
        return [] if whole is None else [whole]
    found = []
    if running.had_place:
        found.append(_first(running, seen.first_s, uncached, step_tokens, noise))
        if answered.prompt_s is not None and not running.ahead_tokens:
            steps = math.ceil(uncached / step_tokens)
            rows = steps * running.decoding_beside
            found.append(Sighting(answered.prompt_s, 0.0, uncached, steps, rows, _TIMED_NOISE + noise))
    decode = _decode(running, end, seen)
    if decode is not None:
        found.append(decode)
    return found


def _uncached_tokens(running: Running, answered: Answered) -> tuple[float, bool]:
    """Tokens of the prompt that were computed, and whether the engine has counted them."""
    if answered.prompt_tokens is None:
        return float(running.uncached_tokens), False
    cached = answered.cached_tokens
    if cached is None:
        known = running.ask.features.prompt_tokens - running.uncached_tokens
        return float(max(1, answered.prompt_tokens - known)), known == 0
    return float(max(1, answered.prompt_tokens - cached)), True


def _first(running: Running, first_s: float, uncached: float, step_tokens: int, noise: float) -> Sighting:
    tokens = running.ahead_tokens + uncached
    steps = math.ceil(tokens / step_tokens) + _joining(running)
    rows = steps * running.decoding_beside
    return Sighting(first_s, 1.0, tokens, steps, rows, _FIRST_NOISE + noise)


def _joining(running: Running) -> float:
    """Steps until it is let in: on the mean half of the one that runs."""
    return 0.5 if running.decoding_beside or running.ahead_tokens else 0.0


def _decode(running: Running, end: Mark, seen: Seen) -> Sighting | None:
    tokens, first = seen.output_tokens, running.first
    if tokens is None or tokens < _FEWEST_TOKENS or seen.tpot_s is None or first is None:
        return None
    steps = tokens - 1.0
    beside = end.prefilled_tokens - first.prefilled_tokens
    rows = steps * _mean_rows(first, end, running)
    noise = _DECODE_NOISE + _OTHERS_NOISE * running.others
    return Sighting(seen.tpot_s * steps, 0.0, max(0.0, beside), steps, rows, noise)


def _whole(running: Running, end: Mark, seen: Seen, uncached: float, step_tokens: int, noise: float) -> Sighting | None:
    if not running.had_place or seen.output_tokens is None:
        return None
    later = end.prefilled_tokens - running.began.prefilled_tokens - running.uncached_tokens - running.ahead_tokens
    tokens = running.ahead_tokens + uncached + max(0.0, later)
    steps = math.ceil(tokens / step_tokens) + _joining(running) + seen.output_tokens - 1.0
    rows = steps * _mean_rows(running.began, end, running)
    return Sighting(seen.whole_s, 1.0, tokens, steps, rows, _WHOLE_NOISE + noise)


def _mean_rows(since: Mark, until: Mark, running: Running) -> float:
    """Sequences that decoded with each step in between, itself included."""
    steps = until.steps - since.steps
    if steps < 1.0:
        return running.decoding_beside + running.sequences
    return (until.row_steps - since.row_steps) / steps
