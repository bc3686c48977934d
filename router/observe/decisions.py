"""The decision log: what a call was like, what was decided, and what came of it, as one line of JSON. Never text.

A line holds numbers, fixed words of the router, names from the settings, and the id of the request. No words of a
prompt or an answer, no header value, no address. Whose call it was is a hash keyed with a random salt, which lies
beside the log as `FILE.salt` so that a client stays the same one after a restart; without the salt the hash can be
neither computed nor guessed back. `docs/decision-log.md` has the fields.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from itertools import compress
from operator import attrgetter, ne
from pathlib import Path
from secrets import token_bytes
from typing import Any, Final

import orjson
import structlog

from classifiers.api import Features, Source, Verdict
from classifiers.arrival import Arrival
from classifiers.lengths import Lengths
from router.observe.facts import CallFacts, JudgedCall
from router.observe.foretold import Predicted
from router.observe.lines import LineFile

log = structlog.get_logger("twolane.decisions")

FORMAT: Final = 2
"""Of a line. Rises when a field changes its meaning; readers pass over lines of formats that they do not know."""
READ_FORMATS: Final = (1, 2)
"""In format 1 each call was judged by itself: `recalled` was not there, and `features` never null."""
SALT_BYTES: Final = 32
_HASH_BYTES: Final = 8
_HASHES: Final = 256

_SCHEMA: Final = Path(__file__).with_name("decision-line.json")

WallClock = Callable[[], int]
"""Nanoseconds since 1970, for people; durations come from the monotonic clock."""
Numbers = Callable[[Sequence[float]], dict[str, float]]
"""The vector of a call as named numbers."""


def line_schema() -> dict[str, Any]:
    """JSON Schema of a line."""
    found: dict[str, Any] = orjson.loads(_SCHEMA.read_bytes())
    return found


class DecisionLog:
    """Writes a line for each judged call; a call never waits for it and never fails because of it."""

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int,
        keep: int,
        max_age_s: float | None = None,
        packs: bool = False,
        text_hashes: bool,
        vector: str,
        numbers: Numbers,
        wall_ns: WallClock,
    ) -> None:
        """`numbers` are the features that a model is trained on, `vector` says which version of them."""
        self._lines = LineFile(path, max_bytes=max_bytes, keep=keep, max_age_s=max_age_s, packs=packs, wall_ns=wall_ns)
        self._keyed = _hashes(_salt_beside(path))
        self._text_hashes = text_hashes
        self._vector = vector
        self._numbers = numbers

    @property
    def dropped(self) -> int:
        """Lines that were not written."""
        return self._lines.dropped

    def take(self, facts: CallFacts, judged: JudgedCall, shadow: Verdict | None, unix_ns: int) -> None:
        """The call ended at that time, in nanoseconds since 1970.

        The line is written here and not by the thread: it would hold the interpreter's lock for all that has gathered,
        and streams would wait for that.
        """
        arrived_s = unix_ns / 1e9 - facts.complete_s
        keyed, features, verdict, seen = self._keyed, judged.features, judged.verdict, judged.seen
        decide_s, queue_s, ttft_s, tpot_s, complete_s = _rounded(
            (facts.decide_s, facts.queue_s, facts.ttft_s, facts.tpot_s, facts.complete_s)
        )
        line = {
            "format": FORMAT,
            "time": datetime.fromtimestamp(arrived_s, UTC).isoformat(timespec="milliseconds"),
            "id": facts.request_id,
            "client": keyed(judged.client),
            "model": keyed(facts.model) if facts.model else None,
            "session": keyed(judged.affinity_key) if judged.affinity_key else None,
            "surface": facts.surface,
            "asked": _asked(features),
            "stream": features.stream,
            "max_tokens": features.max_tokens,
            **_told(verdict),
            "source": verdict.source,
            "reasons": verdict.reasons,
            "backend": facts.backend,
            "server": judged.server._asdict() if judged.server is not None else None,
            "placement": judged.placement,
            "retries": facts.retries,
            "expected": _expected(judged.lengths),
            "why": _why(judged),
            "shadow": _told(shadow) if shadow is not None else None,
            "outcome": facts.outcome,
            "status": facts.status,
            "decide_s": decide_s,
            "queue_s": queue_s,
            "ttft_s": ttft_s,
            "tpot_s": tpot_s,
            "complete_s": complete_s,
            "prompt_tokens": facts.prompt_tokens,
            "cached_tokens": facts.cached_tokens,
            "output_tokens": facts.output_tokens,
            "left": facts.left,
            "read_to_end": facts.outcome == "completed",
            "stalls": facts.stalls,
            "slo_met": judged.kept(facts),
            "predicted": _predicted(facts),
            "vector": self._vector,
            "recalled": judged.recalled,
            "features": self._numbers(seen.numbers) if seen is not None else None,
            "arrival": _as_numbers(features.arrival) if features.arrival is not None else None,
        }
        if self._text_hashes and judged.features.marks is not None:
            marks = judged.features.marks
            line["text"] = {
                name: self._keyed(str(mark)) if mark else None
                for name, mark in (("system", marks.system), ("tools", marks.tools), ("template", marks.head))
            }
        self._lines.put(orjson.dumps(line))

    def close(self) -> None:
        """Write what waits; blocks until that is done."""
        self._lines.close()


ASKED: Final = {
    "prompt_tokens": 0,
    "system_tokens": 0,
    "last_tokens": 0,
    "turns": 0,
    "prompts": 1,
    "choices": 1,
    "tools": 0,
    "tool_results": 0,
    "media": 0,
}
"""Counts of a call as it arrived, before an engine has counted anything, and what they are where a line leaves them
out."""


def _asked(features: Features) -> dict[str, int]:
    found = {}
    for name, usual in ASKED.items():
        if (value := getattr(features, name)) != usual:
            found[name] = value
    return found


def _why(judged: JudgedCall) -> list[tuple[str, float]]:
    """Where the learned model decided: what moved it most, in words, with its effect in log-odds."""
    judgement = judged.seen.judgement if judged.seen is not None else None
    if judgement is None or judged.verdict.source is not Source.MODEL:
        return []
    return [(words, round(effect, 3)) for words, effect in judgement.effects(judgement.place)]


def _expected(lengths: Lengths | None) -> dict[str, int] | None:
    """Tokens of the answer, before it began, and how many earlier answers that was told from."""
    if lengths is None:
        return None
    return {"p50_tokens": lengths.p50_tokens, "p90_tokens": lengths.p90_tokens, "seen": lengths.seen}


def _told(verdict: Verdict) -> dict[str, Any]:
    return {"class": verdict.call_class, "confidence": round(verdict.confidence, 4)}


def _predicted(facts: CallFacts) -> dict[str, float | None] | None:
    if facts.predicted is None:
        return None
    return dict(zip(Predicted._fields, _rounded(facts.predicted), strict=True))


def _as_numbers(arrival: Arrival) -> dict[str, float]:
    """How it follows the calls of its client before it, where there were some; what is at its default is left out."""
    if not arrival.calls:
        return {}
    values = _values(arrival)
    known = compress(zip(FOLLOWS, values, strict=True), map(ne, values, _DEFAULTS))
    return {name: round(value, 4) if type(value) is float else int(value) for name, value in known if value is not None}


FOLLOWS: Final = (
    "calls",
    "continues",
    "hops",
    "since_continued_s",
    "appended_tool_results",
    "appended_user",
    "since_answer_s",
    "since_program_answer_s",
    "template_share",
    "start_share",
)
"""How a call follows those before it, which is what a label is guessed from. The rest of what its client did is among
the features, as a model is told of it."""
_values = attrgetter(*FOLLOWS)
_DEFAULTS: Final = _values(Arrival())


def _rounded(seconds: Iterable[float | None]) -> list[float | None]:
    """To microseconds."""
    return [None if value is None else round(value, 6) for value in seconds]


def _hashes(salt: bytes) -> Callable[[str], str]:
    """Keyed hashes; those of clients and models come again and again, so a few are remembered."""

    @lru_cache(maxsize=_HASHES)
    def keyed(text: str) -> str:
        return blake2b(text.encode("utf-8", "replace"), key=salt, digest_size=_HASH_BYTES).hexdigest()

    return keyed


def _salt_beside(path: Path) -> bytes:
    """The salt of this log, made at the first time. Where it cannot be kept, one for this run: clients are then others
    after a restart, which is said."""
    file = path.with_name(f"{path.name}.salt")
    fresh = token_bytes(SALT_BYTES)
    try:
        number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(number, "wb") as out:
            out.write(fresh.hex().encode() + b"\n")
        return fresh
    except FileExistsError:
        pass
    except OSError as error:
        log.error("salt_not_kept", file=str(file), why=error.strerror or str(error))
        return fresh
    try:
        kept = bytes.fromhex(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        kept = b""
    if len(kept) < SALT_BYTES:
        log.error("salt_not_kept", file=str(file), why="it holds no salt; remove it, and a new one is made")
        return fresh
    return kept[:SALT_BYTES]
