"""Who gets what they wait for: calls and tokens inside their SLO beside all of them, over 1 m, 5 m and 1 h.

How it works. Ended calls are counted in a slice of 5 s. A slice that is over is added up by class, backend, lane, model
and key and kept for the window of 1 m; slices of 15 s and of 180 s are made of the smaller ones for the others. So a
call costs one look-up and a few additions, what is kept is bounded, and a window is read by adding up about twenty
slices, which is remembered until one of them changes. Adding up takes milliseconds, so it is done in steps
(`router.observe.steps`), between which calls go on.

Time is an argument. `docs/goodput.md` has the document and the formulae.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from router.observe.facts import CallFacts, JudgedCall
from router.observe.few import OTHER, Few
from router.observe.smooth import smooth_0_1
from router.observe.steps import Steps, at_once
from router.observe.tallies import Counts

DIMENSIONS: Final = ("class", "backend", "lane", "model", "key")
NO_VALUE: Final = "none"
"""A call without a backend, or without a key."""
_TOTAL: Final = ("total", "")
_SLICE_S: Final = 5.0
_WINDOWS: Final = (("1m", _SLICE_S, 60.0), ("5m", 15.0, 300.0), ("1h", 180.0, 3600.0))
"""Name, slice and length."""
_ROUNDING_S: Final = 1e-6
_MOST_BEHIND: Final = 24
"""Slices that wait; then the next call adds them up, as nobody else does."""
_MOST_COMBINATIONS: Final = 1024
"""In one slice; calls beyond them look theirs up the slow way, among the names that there is room for."""

_Combination = tuple[str, str, str, str, str]
_Sums = Mapping[tuple[str, str], Counts]
"""By dimension and value."""


@dataclass(slots=True)
class _Slice:
    since_s: float
    until_s: float
    parts: Sequence[_Sums]
    """One after it was added up; the sums of each are given by place."""

    def summed(self) -> Steps[_Sums]:
        """Added up once, when somebody asks for the first time."""
        if len(self.parts) != 1:
            self.parts = ((yield from _sum(self.parts)),)
        return self.parts[0]


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

    def parts(self) -> list[_Sums]:
        """What there is to add up, without doing it yet."""
        placed: list[_Sums] = [
            {place: counts for place in (_TOTAL, *zip(DIMENSIONS, names, strict=False))}
            for names, counts in self._placed.items()
        ]
        models: _Sums = {("model", name): counts for name, counts in self._models.items()}
        return [*placed, models, {("key", name): counts for name, counts in self._keys.items()}]


class _Window:
    """The slices of one window; `pending` are smaller ones of which its next slices will be made."""

    def __init__(self, name: str, slice_s: float, length_s: float) -> None:
        self.name = name
        self.length_s = length_s
        self.pending: list[_Slice] = []
        self._slice_s = slice_s
        self._closed: deque[_Slice] = deque()
        self._sums: _Sums | None = None

    def roll(self, now_s: float) -> Steps[list[_Slice]]:
        """Let go of what is too old; returns the slices that are complete by now. Until one is added up, the smaller
        ones stand for it."""
        made = []
        while self.pending and now_s - self.pending[0].since_s >= self._slice_s:
            since_s = self.pending[0].since_s
            count = sum(part.until_s <= since_s + self._slice_s + _ROUNDING_S for part in self.pending) or 1
            parts = []
            for part in self.pending[:count]:
                parts.append((yield from part.summed()))
            whole = _Slice(since_s, self.pending[count - 1].until_s, parts)
            yield from whole.summed()
            del self.pending[:count]
            self._closed.append(whole)
            self._sums = None
            made.append(whole)
        while self._closed and self._closed[0].until_s <= now_s - self.length_s:
            self._closed.popleft()
            self._sums = None
        return made

    def sums(self) -> Steps[_Sums]:
        """Of the slices that are complete now; there may be others when the steps are done."""
        return self._summed(tuple(self._closed), self._sums)

    def _summed(self, closed: tuple[_Slice, ...], known: _Sums | None) -> Steps[_Sums]:
        if known is not None:
            return known
        found = yield from _added(closed)
        if tuple(self._closed) == closed:
            self._sums = found
        return found

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
        self._tidying = False
        self._names = {dimension: Few() for dimension in DIMENSIONS}

    def ended(self, facts: CallFacts, judged: JudgedCall, now_s: float) -> None:
        """A generating call has just ended."""
        if now_s >= self._open_until_s:
            self._close(now_s)
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

    def _close(self, now_s: float) -> None:
        """The open slice is over. It is added up later: a call would be held up by that."""
        newest = self._windows[0].pending
        if self._aliases:
            newest.append(_Slice(self._open_since_s, self._open_until_s, self._open.parts()))
            self._open, self._aliases = _Open(), {}
        self._open_since_s = now_s - (now_s - self._open_since_s) % _SLICE_S
        self._open_until_s = self._open_since_s + _SLICE_S
        for names in self._names.values():
            names.forget(now_s - self._windows[-1].length_s)
        if len(newest) > _MOST_BEHIND:
            at_once(self.tidy(now_s))

    @property
    def untidy(self) -> bool:
        """Slices wait to be added up."""
        return bool(self._windows[0].pending) and not self._tidying

    def tidy(self, now_s: float) -> Steps[None]:
        """Add up what is over by now and let go of what is too old; for whoever has a moment, every few seconds."""
        if self._tidying:
            return
        self._tidying = True
        try:
            if now_s >= self._open_until_s:
                self._close(now_s)
            made: list[_Slice] = []
            for window in self._windows:
                window.pending += made
                made = yield from window.roll(now_s)
        finally:
            self._tidying = False

    def document(self, now_s: float) -> dict[str, Any]:
        """What `docs/goodput.md` describes; all of it can be written as JSON."""
        return at_once(self.steps(now_s))

    def steps(self, now_s: float) -> Steps[dict[str, Any]]:
        """The same, little by little. Calls that end in between may be counted in one part and not in another."""
        yield from self.tidy(now_s)
        newer = [_Slice(self._open_since_s, now_s, self._open.parts())]
        asked = []
        for window in self._windows:  # all of them now, as the next step may move slices from one to the other
            newer = [*newer, *window.pending]
            asked.append((window, window.sums(), newer, now_s - max(self._started_s, window.since_s(now_s))))
        yield
        windows = {}
        for window, closed, since_then, seconds in asked:
            whole = yield from closed
            sums = yield from _sum([whole, (yield from _added(since_then))])
            windows[window.name] = yield from _document(sums, seconds)
        return {"windows": windows}


def _added(slices: Iterable[_Slice]) -> Steps[_Sums]:
    several = []
    for each in slices:
        several.append((yield from each.summed()))
    return (yield from _sum(several))


def _sum(several: Sequence[_Sums]) -> Steps[_Sums]:
    parts: dict[tuple[str, str], list[Counts]] = {}
    for sums in several:
        for place, counts in sums.items():
            parts.setdefault(place, []).append(counts)
    whole = {}
    for place, each in parts.items():
        whole[place] = Counts.sum(each)
        yield
    return whole


def _document(sums: _Sums, seconds: float) -> Steps[dict[str, Any]]:
    total = sums.get(_TOTAL) or Counts()
    shown: dict[str, Any] = {"seconds": seconds, "total": total.document(seconds), **{each: {} for each in DIMENSIONS}}
    for (dimension, value), counts in sums.items():
        if dimension != _TOTAL[0]:
            shown[dimension][value] = counts.document(seconds)
            yield
    return shown
