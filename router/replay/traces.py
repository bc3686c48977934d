"""Public request traces: times and token counts, no more. Each kind is recognised by the names of its columns.

What a trace does not say is assumed and told: whose calls they are, whether they stream, of which class they are.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import Any, Final

import orjson

from classifiers.api import CallClass, Source, Verdict
from router.observe.logfiles import HALF_A_LINE, OnBytes, raw_lines
from router.replay import recorded
from router.replay.recorded import MOST_TOKENS, Recorded

_SURFACE: Final = "openai_chat"
MOONCAKE_BLOCK_TOKENS: Final = 512

_CLASSES: Final[tuple[tuple[str, CallClass], ...]] = (
    ("agent", CallClass.MIXED),
    ("openhands", CallClass.MIXED),
    ("toolagent", CallClass.MIXED),
    ("summar", CallClass.THROUGHPUT),
    ("batch", CallClass.THROUGHPUT),
    ("synthetic", CallClass.THROUGHPUT),
)
"""What a name says of the calls; all others are taken for somebody who reads."""


@dataclass(frozen=True, slots=True)
class _Row:
    at_s: float | None
    prompt_tokens: int
    output_tokens: int
    client: str = ""
    session: str = ""
    blocks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """One format."""

    words: str
    needs: frozenset[str]
    """Names of columns or keys, in small letters."""
    row: Callable[[Mapping[str, Any]], _Row]
    """Raises `KeyError`, `TypeError` or `ValueError` for a row that cannot be read."""


def _instant_s(value: Any) -> float:
    """`nan` and `inf` are numbers for Python; a call that comes then would never come."""
    if not isfinite(found := float(value)):
        raise ValueError(value)
    return found


def _own(row: Mapping[str, Any]) -> _Row:
    return _Row(
        None if row["t_s"] in (None, "") else _instant_s(row["t_s"]),
        int(row["input_tokens"]),
        int(row["output_tokens"]),
        row.get("client") or "",
        row.get("session") or "",
        tuple(map(int, (row.get("hash_ids") or "").split())),
    )


def _azure(row: Mapping[str, Any]) -> _Row:
    # The files have seven digits after the second, one more than Python reads.
    time = datetime.fromisoformat(row["timestamp"].strip()[:26])
    return _Row(time.timestamp(), int(row["contexttokens"]), int(row["generatedtokens"]))


def _burst(row: Mapping[str, Any]) -> _Row:
    return _Row(_instant_s(row["timestamp"]), int(row["request tokens"]), int(row["response tokens"]))


def _mooncake(row: Mapping[str, Any]) -> _Row:
    blocks = tuple(map(int, row.get("hash_ids") or ()))
    return _Row(_instant_s(row["timestamp"]) / 1e3, int(row["input_length"]), int(row["output_length"]), blocks=blocks)


KINDS: Final[tuple[Kind, ...]] = (
    Kind("trace (t_s, input_tokens, output_tokens)", frozenset({"t_s", "input_tokens", "output_tokens"}), _own),
    Kind("Azure LLM trace", frozenset({"timestamp", "contexttokens", "generatedtokens"}), _azure),
    Kind("BurstGPT trace", frozenset({"timestamp", "request tokens", "response tokens"}), _burst),
    Kind("Mooncake trace", frozenset({"timestamp", "input_length", "output_length"}), _mooncake),
)


def kind_of(names: frozenset[str]) -> Kind | None:
    """The format that has these columns or keys."""
    small = frozenset(name.strip().lower() for name in names)
    return next((kind for kind in KINDS if kind.needs <= small), None)


def class_of(name: str) -> CallClass:
    return next((call_class for word, call_class in _CLASSES if word in name.lower()), CallClass.TTFT)


def read(path: Path, kind: Kind, on_bytes: OnBytes, *, json_lines: bool, as_class: CallClass | None) -> recorded.Source:
    """`as_class`: of all calls; None: as the name of the trace says. Raises `OSError`."""
    source = recorded.Source(path=path, kind=kind.words)
    classes: set[CallClass] = set()
    for fields in (_json_rows if json_lines else _csv_rows)(path, on_bytes):
        if fields is None:
            source.passed_over["not a whole line"] += 1
            continue
        try:
            row = kind.row(fields)
        except (KeyError, TypeError, ValueError, AttributeError):
            source.passed_over["numbers missing or of another kind"] += 1
            continue
        if not (0 < row.prompt_tokens <= MOST_TOKENS and 0 <= row.output_tokens <= MOST_TOKENS):
            source.passed_over["no prompt, or a length that cannot be"] += 1
            continue
        name = str(fields.get("source") or path.name)
        call_class = as_class or class_of(f"{path.name} {name}")
        classes.add(call_class)
        source.timed = source.timed and row.at_s is not None
        if row.blocks:
            source.block_tokens = MOONCAKE_BLOCK_TOKENS
        source.calls.append(_call(row, name, call_class))
    source.calls.sort(key=lambda call: call.at_s)
    if classes and as_class is None:
        taken = " and ".join(sorted(classes))
        source.notes.append(f"a trace has no classes: its calls are taken for {taken} (--class CLASS for another)")
    return source


def _call(row: _Row, name: str, call_class: CallClass) -> Recorded:
    verdict = Verdict(call_class=call_class, confidence=1.0, source=Source.RULE, reasons=("trace",))
    return Recorded(
        at_s=row.at_s or 0.0,
        client=f"{name} {row.client}",
        surface=_SURFACE,
        stream=call_class is CallClass.TTFT,
        verdict=verdict,
        prompt_tokens=row.prompt_tokens,
        output_tokens=max(1, row.output_tokens),
        asked={"prompt_tokens": row.prompt_tokens, "last_tokens": row.prompt_tokens, "turns": 1},
        # Blocks say exactly what prompts share; without them a session is taken for a conversation that grows.
        session=f"{name} {row.session}" if row.session else "",
        blocks=row.blocks,
    )


Fields = Mapping[str, Any] | None
"""Of a row, by small names; None: it could not be read."""


def _csv_rows(path: Path, on_bytes: OnBytes) -> Iterator[Fields]:
    names: list[str] = []
    lines = (raw.decode("utf-8-sig", "replace") for raw in raw_lines(path, on_bytes))
    for cells in csv.reader(lines):
        if not names:
            names = [name.strip().lower() for name in cells]
        elif cells:
            yield dict(zip(names, cells, strict=False)) if len(cells) == len(names) else None


def _json_rows(path: Path, on_bytes: OnBytes) -> Iterator[Fields]:
    for raw in raw_lines(path, on_bytes):
        if raw == HALF_A_LINE:
            yield None
            continue
        try:
            row = orjson.loads(raw)
        except orjson.JSONDecodeError:
            yield None
            continue
        yield {str(name).lower(): value for name, value in row.items()} if isinstance(row, dict) else None
