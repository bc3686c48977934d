"""Who gets what they wait for: calls and tokens inside their SLO beside all of them, over 1 m, 5 m and 1 h.

How it works. Ended calls are counted in a slice of 5 s. A slice that is over is added up by class, backend, lane, model
and key and kept for the window of 1 m; slices of 15 s and of 180 s are made of the smaller ones for the others. So a
call costs one look-up and a few additions, what is kept is bounded, and a window is read by adding up about twenty
slices, which is remembered until one of them changes.

Time is an argument. `docs/goodput.md` has the document and the formulae.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from router.observe.facts import CallFacts, JudgedCall
from router.observe.few import OTHER, Few
from router.observe.smooth import smooth_0_1
from router.observe.tallies import Counts

DIMENSIONS: Final = ("class", "backend", "lane", "model", "key")
NO_VALUE: Final = "none"
"""A call without a backend, or without a key."""
_TOTAL: Final = ("total", "")
_SLICE_S: Final = 5.0
_WINDOWS: Final = (("1m", _SLICE_S, 60.0), ("5m", 15.0, 300.0), ("1h", 180.0, 3600.0))
"""Name, slice and length."""
_MOST_COMBINATIONS: Final = 1024
"""In one slice; calls beyond them look theirs up the slow way, among the names that there is room for."""

_Combination = tuple[str, str, str, str, str]
_Sums = Mapping[tuple[str, str], Counts]
"""By dimension and value."""


@dataclass(frozen=True, slots=True)
class _Slice:
    since_s: float
    until_s: float
    sums: _Sums


class _Open:
    """The slice that is counted in now. Of classes, backends and lanes there are few, so their combinations are counted
    and added up at the end; of models and keys there may be many, so each is counted by itself."""

    def __init__(self) -> None:
        self._placed: defaultdict[tuple[str, str, str], Counts] = defaultdict(Counts)
        self._models: defaultdict[str, Counts] = defaultdict(Counts)
        self._keys: defaultdict[str, Counts] = defaultdict(Counts)

    def of(self, call_class: str, backend: str, lane: str, model: str, key: str) -> tuple[Counts, Counts, Counts]:
        """What is to be told of a call of these."""
        return self._placed[call_class, backend, lane], self._models[model], self._keys[key]

    def sums(self) -> _Sums:
        parts: defaultdict[tuple[str, str], list[Counts]] = defaultdict(list)
        for names, counts in self._placed.items():
            for place in (_TOTAL, *zip(DIMENSIONS, names, strict=False)):
                parts[place].append(counts)
        sums = {place: Counts.sum(several) for place, several in parts.items()}
        sums |= {("model", name): counts for name, counts in self._models.items()}
        return sums | {("key", name): counts for name, counts in self._keys.items()}


class _Window:
    """The slices of one window; `pending` are smaller ones of which its next slice will be made."""

    def __init__(self, name: str, slice_s: float, length_s: float) -> None:
        self.name = name
        self.length_s = length_s
        self.pending: list[_Slice] = []
        self._slice_s = slice_s
        self._closed: deque[_Slice] = deque()
        self._sums: _Sums | None = None

    def take(self, part: _Slice) -> None:
        self.pending.append(part)

    def roll(self, now_s: float) -> _Slice | None:
        """Let go of what is too old; returns the slice that is complete by now, if one is."""
        while self._closed and self._closed[0].until_s <= now_s - self.length_s:
            self._closed.popleft()
            self._sums = None
        if not self.pending or now_s - self.pending[0].since_s < self._slice_s:
            return None
        whole = _Slice(self.pending[0].since_s, self.pending[-1].until_s, _sum(part.sums for part in self.pending))
        self.pending.clear()
        self._closed.append(whole)
        self._sums = None
        return whole

    def sums(self) -> _Sums:
        """Of the complete slices."""
        if self._sums is None:
            self._sums = _sum(part.sums for part in self._closed)
        return self._sums

    def since_s(self, now_s: float) -> float:
        """The instant from which calls are counted; slices at the edge are counted whole."""
        edge_s = now_s - self.length_s
        return min(edge_s, self._closed[0].since_s) if self._closed else edge_s


class Goodput:
    """Told of each ended call; asked for the document by whoever shows it."""

    def __init__(self, now_s: float) -> None:
        self._started_s = now_s
        self._windows = tuple(_Window(*each) for each in _WINDOWS)
        self._open = _Open()
        self._aliases: dict[_Combination, tuple[Counts, Counts, Counts]] = {}
        """What counts a combination of names as they came."""
        self._open_since_s = now_s
        self._open_until_s = now_s + _SLICE_S
        self._names = {dimension: Few() for dimension in DIMENSIONS}

    def ended(self, facts: CallFacts, judged: JudgedCall, now_s: float) -> None:
        """A generating call has just ended."""
        if now_s >= self._open_until_s:
            self._roll(now_s)
        missed = judged.missed(facts)
        worth_0_1 = 0.0 if missed is None else smooth_0_1(facts, judged.rules)
        came = (facts.call_class, facts.backend, facts.lane, facts.model, facts.key)
        several = self._aliases.get(came)
        if several is None:
            several = self._new(came, facts, now_s)
        for counts in several:
            counts.add(facts, missed, worth_0_1)

    def _new(self, came: _Combination, facts: CallFacts, now_s: float) -> tuple[Counts, Counts, Counts]:
        call_class, backend, lane, model, key = (str(each) or NO_VALUE for each in came)
        if facts.outcome == "refused" and not facts.backend:
            model = OTHER  # no backend knows it
        names = zip(self._names.values(), (call_class, backend, lane, model, key), strict=True)
        several = self._open.of(*(few.of(name, now_s) for few, name in names))
        if len(self._aliases) < _MOST_COMBINATIONS:
            self._aliases[came] = several
        return several

    def _roll(self, now_s: float) -> None:
        """Close what is over by now."""
        part: _Slice | None = None
        if now_s >= self._open_until_s:
            if self._aliases:
                part = _Slice(self._open_since_s, self._open_until_s, self._open.sums())
                self._open, self._aliases = _Open(), {}
            self._open_since_s = now_s - (now_s - self._open_since_s) % _SLICE_S
            self._open_until_s = self._open_since_s + _SLICE_S
            for names in self._names.values():
                names.forget(now_s - self._windows[-1].length_s)
        for window in self._windows:
            if part is not None:
                window.take(part)
            part = window.roll(now_s)

    def document(self, now_s: float) -> dict[str, Any]:
        """What `docs/goodput.md` describes; all of it can be written as JSON."""
        self._roll(now_s)
        newer: list[_Sums] = [self._open.sums()]
        windows = {}
        for window in self._windows:
            newer.extend(part.sums for part in window.pending)
            since_s = max(self._started_s, window.since_s(now_s))
            windows[window.name] = _document(_sum([window.sums(), *newer]), now_s - since_s)
        return {"windows": windows}


def _sum(several: Iterable[_Sums]) -> _Sums:
    parts: dict[tuple[str, str], list[Counts]] = {}
    for sums in several:
        for place, counts in sums.items():
            parts.setdefault(place, []).append(counts)
    return {place: Counts.sum(each) for place, each in parts.items()}


def _document(sums: _Sums, seconds: float) -> dict[str, Any]:
    total = sums.get(_TOTAL) or Counts()
    shown: dict[str, Any] = {"seconds": seconds, "total": total.document(seconds), **{each: {} for each in DIMENSIONS}}
    for (dimension, value), counts in sums.items():
        if dimension != _TOTAL[0]:
            shown[dimension][value] = counts.document(seconds)
    return shown
