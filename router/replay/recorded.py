"""What a replay is made of: calls that were recorded once, and what became of them then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from classifiers.api import Verdict
from classifiers.lengths import Lengths
from router.observe.facts import Server

MOST_TOKENS: Final = 10_000_000
"""Of a prompt or an answer; what says more is a mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """What became of a call when it was recorded. Times in seconds since its arrival; None: that point was never
    reached, or nobody has written it down."""

    backend: str
    """Empty: it got no place."""
    server: Server | None
    outcome: str
    status: int
    waited_s: float
    """Until it was placed: deciding, and the line."""
    ttft_s: float | None
    tpot_s: float | None
    complete_s: float
    cached_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """One call."""

    at_s: float
    """Since 1970 in logs, since its beginning in traces."""
    client: str
    surface: str
    stream: bool
    verdict: Verdict
    prompt_tokens: int
    output_tokens: int
    """Of the whole answer, also where nobody waited for it."""
    asked: Mapping[str, int] = field(default_factory=dict)
    """Counts as in `classifiers.api.Features`, where they are known."""
    max_tokens: int | None = None
    lengths: Lengths | None = None
    session: str = ""
    """What calls of one conversation have in common; empty: it is alone."""
    system: str = ""
    """What calls with the same beginning have in common; empty: nothing known. Goes with `asked["system_tokens"]`."""
    blocks: tuple[int, ...] = ()
    """Of the prompt: the same number is the same piece after the same pieces, within one source."""
    leaves_after_s: float | None = None
    logged: Logged | None = None


@dataclass(slots=True, kw_only=True)
class Source:
    """One file or one log, as it was understood."""

    path: Path
    kind: str
    """What was recognised, in words for a person."""
    calls: list[Recorded] = field(default_factory=list)
    """In the order of arrival."""
    passed_over: Counter[str] = field(default_factory=Counter)
    """Lines that were not taken, by reason."""
    notes: list[str] = field(default_factory=list)
    """What had to be assumed."""
    timed: bool = True
    """Whether it says when calls arrived."""
    block_tokens: int | None = None
    """Tokens of a piece of `Recorded.blocks`; None: it has none."""


class NotReplayable(Exception):
    """There is nothing to replay, or not with these settings; the message says what to do."""
