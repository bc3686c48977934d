"""Lines of the router's own decision log as calls that can be sent again.

A log has no text, so what is replayed is what the router knew: class, counts, expected length, conversation. How long
an answer that was never finished would have been is not known either; what was expected stands for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

import orjson

from classifiers.api import CallClass, Source, Verdict
from classifiers.lengths import Lengths
from router.observe.decisions import ASKED, READ_FORMATS
from router.observe.facts import Server
from router.observe.logfiles import OnBytes, raw_lines
from router.replay import recorded
from router.replay.recorded import MOST_TOKENS, Logged, Recorded

KIND: Final = "decision log of Twolane"
_NO_WORK: Final = frozenset({"refused", "denied", "limited", "backend_4xx"})
"""Calls that were wrong: no engine worked on them, and none would."""
_TYPICAL_TOKENS: Final = 128
"""Of an answer of which nothing is known."""


def is_line(document: object) -> bool:
    """Whether it is a line of a decision log, of any format."""
    return isinstance(document, dict) and {"format", "class", "outcome", "complete_s"} <= document.keys()


def read(files: Sequence[Path], on_bytes: OnBytes) -> recorded.Source:
    """Raises `OSError` where a file cannot be read."""
    source = recorded.Source(path=files[-1], kind=KIND)
    unfinished = without_counts = 0
    for path in files:
        for raw in raw_lines(path, on_bytes):
            taken = _taken(raw)
            if isinstance(taken, str):
                source.passed_over[taken] += 1
                continue
            call, known = taken
            without_counts += not known and call.logged is not None and call.logged.outcome == "completed"
            unfinished += not known and (call.logged is None or call.logged.outcome != "completed")
            source.calls.append(call)
    source.calls.sort(key=lambda call: call.at_s)
    _fill_gaps(source.calls)
    if unfinished:
        source.notes.append(f"{unfinished} answers were not finished: they are taken to be as long as was expected")
    if without_counts:
        source.notes.append(f"{without_counts} answers were not counted by their engine: likewise")
    return source


def _taken(raw: bytes) -> tuple[Recorded, bool] | str:
    """The call, and whether its counts are those of an engine; or the reason why it is passed over."""
    try:
        document = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return "not a whole line of JSON"
    if not is_line(document) or document["format"] not in READ_FORMATS:
        return f"not of format {' or '.join(map(str, READ_FORMATS))}"
    if document["outcome"] in _NO_WORK:
        return "the call was wrong"
    try:
        return _call(document)
    except (KeyError, TypeError, ValueError, AttributeError):
        return "fields missing or of another kind"


def _call(line: Mapping[str, Any]) -> tuple[Recorded, bool]:
    asked = {name: int(value) for name, value in line.get("asked", {}).items() if name in ASKED}
    expected, text = line.get("expected"), line.get("text") or {}
    lengths = None
    if expected is not None:
        lengths = Lengths(int(expected["p50_tokens"]), int(expected["p90_tokens"]), int(expected["seen"]))
    logged = _logged(line)
    whole = logged.outcome == "completed" and line["output_tokens"] is not None
    output = int(line["output_tokens"] or 0)
    if not whole and lengths is not None:
        output = max(output, lengths.p50_tokens)
    prompt = int(line["prompt_tokens"] or asked.get("prompt_tokens", 0))
    if not (0 <= prompt <= MOST_TOKENS and 0 <= output <= MOST_TOKENS):
        raise ValueError("tokens")
    max_tokens = None if line["max_tokens"] is None else int(line["max_tokens"])
    call = Recorded(
        at_s=datetime.fromisoformat(line["time"]).timestamp(),
        client=str(line["client"]),
        surface=str(line["surface"]),
        stream=line["stream"] is True,
        verdict=Verdict(
            call_class=CallClass(line["class"]),
            confidence=float(line["confidence"]),
            source=Source(line["source"]),
            reasons=tuple(map(str, line["reasons"])),
        ),
        prompt_tokens=prompt,
        output_tokens=output,
        asked=asked,
        max_tokens=max_tokens,
        lengths=lengths,
        session=str(line.get("session") or ""),
        system=str(text.get("system") or ""),
        leaves_after_s=logged.complete_s if line["left"] else None,
        logged=logged,
    )
    return call, whole and line["prompt_tokens"] is not None


def _logged(line: Mapping[str, Any]) -> Logged:
    server, cached = line.get("server"), line["cached_tokens"]
    complete_s = float(line["complete_s"])
    if not 0 <= complete_s < 1e7:
        raise ValueError("complete_s")
    return Logged(
        backend=str(line["backend"]),
        server=_server(server) if server is not None else None,
        outcome=str(line["outcome"]),
        status=int(line["status"]),
        waited_s=float(line["decide_s"]) + float(line["queue_s"]),
        ttft_s=_seconds(line["ttft_s"]),
        tpot_s=_seconds(line["tpot_s"]),
        complete_s=complete_s,
        cached_tokens=None if cached is None else int(cached),
    )


def _server(said: Mapping[str, Any]) -> Server:
    numbers = (None if said[name] is None else int(said[name]) for name in ("slots", "cap", "context_tokens"))
    return Server(str(said["engine"]), *numbers)


def _seconds(value: object) -> float | None:
    return None if value is None else float(value)  # type: ignore[arg-type]  # what is no number raises here


def _fill_gaps(calls: list[Recorded]) -> None:
    """Where neither an engine nor an expectation gives a length, the middle of the class stands for it."""
    known: dict[CallClass, list[int]] = {}
    for call in calls:
        if call.output_tokens:
            known.setdefault(call.verdict.call_class, []).append(call.output_tokens)
    for place, call in enumerate(calls):
        if call.output_tokens and call.prompt_tokens:
            continue
        lengths = known.get(call.verdict.call_class)
        calls[place] = _with(call, output_tokens=call.output_tokens or round(median(lengths or [_TYPICAL_TOKENS])))


def _with(call: Recorded, *, output_tokens: int) -> Recorded:
    return replace(call, output_tokens=max(1, output_tokens), prompt_tokens=max(1, call.prompt_tokens))
