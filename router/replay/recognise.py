"""What is in a file that somebody wants replayed, and the calls of it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Final

import orjson

from classifiers.api import CallClass
from router.observe.logfiles import OnBytes, raw_lines, with_those_set_aside
from router.replay import decision_log, traces
from router.replay.recorded import NotReplayable, Recorded, Source

_LINES_LOOKED_AT: Final = 50
"""Of a log, which may begin with half a line."""
_LONGEST_S: Final = 1e8
"""About three years: backends are probed all the time, so a row that is a thousand years off would take for ever."""

_KNOWN: Final = "; ".join(
    (decision_log.KIND, *(f"{kind.words}: {', '.join(sorted(kind.needs))}" for kind in traces.KINDS))
)


def load(path: Path, on_bytes: OnBytes = lambda count: None, *, as_class: CallClass | None = None) -> Source:
    """The calls of a log, with the parts of it that were set aside, or of a trace; in the order of arrival.

    Raises `NotReplayable` where it is neither or has no calls, `OSError` where it cannot be read.
    """
    source = _read(path, on_bytes, as_class)
    if not source.calls:
        lost = "; ".join(f"{count} lines: {reason}" for reason, count in source.passed_over.most_common())
        raise NotReplayable(f"{path}: a {source.kind} without a call that can be replayed ({lost or 'it has no rows'})")
    return source


def files_of(path: Path) -> list[Path]:
    """What is read for it. Raises `NotReplayable`."""
    if path.is_dir():
        raise NotReplayable(f"{path} is a folder; name the log or the trace in it")
    files = with_those_set_aside([path])
    if files == [path] and not path.exists():
        raise NotReplayable(f"{path}: there is no such file")
    return files


def _read(path: Path, on_bytes: OnBytes, as_class: CallClass | None) -> Source:
    files = files_of(path)
    first = list(islice((raw for file in files for raw in raw_lines(file) if raw.strip()), _LINES_LOOKED_AT))
    if not first:
        raise NotReplayable(f"{path} is empty: nothing was logged yet, or it is another file")
    documents = [document for raw in first if isinstance(document := _json(raw), dict)]
    if any(decision_log.is_line(document) for document in documents):
        return decision_log.read(files, on_bytes)
    for document in documents:
        if (kind := traces.kind_of(frozenset(map(str, document)))) is not None:
            return traces.read(path, kind, on_bytes, json_lines=True, as_class=as_class)
    header = next(csv.reader([first[0].decode("utf-8-sig", "replace")]), [])
    if (kind := traces.kind_of(frozenset(header))) is not None:
        return traces.read(path, kind, on_bytes, json_lines=False, as_class=as_class)
    raise NotReplayable(f"{path}: not recognised. What can be replayed, by its columns or keys: {_KNOWN}")


def _json(raw: bytes) -> object:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None


def merged(
    sources: Sequence[Source], *, speed_up: float = 1.0, limit: int | None = None, rate: float = 1.0, seed: int = 0
) -> list[Recorded]:
    """One sequence of calls from time 0 on, all sources beginning together.

    `rate`: arrivals per second at random for sources that have no times. `speed_up` presses all times together, which
    keeps bursts; `limit` takes the first calls. Raises `NotReplayable` where they lie years apart.
    """
    found: list[Recorded] = []
    for number, source in enumerate(sources):
        chance, at_s, began_s = Random(seed), 0.0, source.calls[0].at_s
        for call in source.calls[:limit]:
            if source.timed:
                at_s = call.at_s - began_s
            else:
                at_s += chance.expovariate(rate)
            # Each source counts its blocks from 0, and what is 7 in one has nothing to do with the 7 of another.
            blocks = tuple(len(sources) * block + number for block in call.blocks)
            found.append(replace(call, at_s=at_s / speed_up, blocks=blocks))
    found.sort(key=lambda call: call.at_s)
    found = found[:limit]
    if found and found[-1].at_s > _LONGEST_S:
        days = found[-1].at_s / 86_400
        raise NotReplayable(f"the last call comes {days:,.0f} days after the first; mend its time, or use --speed-up")
    return found
