"""What the page and `twolane top` show, put together from what others know. Made only while somebody looks."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson

from classifiers.api import CallClass
from router.dashboard.assets import assets
from router.dashboard.buckets import BUCKET_S, KEPT_S, Bucket, Buckets, Cell
from router.dashboard.events import Events, Page, event
from router.dashboard.history import History, as_buckets
from router.dashboard.lanes import backend_document
from router.dashboard.recent import EDGES_S, Recent, failed
from router.dashboard.what_if import WhatIf
from router.dashboard.witness import Witness
from router.errors import NotFound
from router.fleet.fleet import Fleet
from router.line import Line
from router.listing import router_version
from router.observe.facts import CallFacts, JudgedCall
from router.observe.steps import Made, Steps, in_turns
from router.settings.model import Settings
from router.tasks import Clock, Tasks

SLOW_EVERY: Final = 5
"""Of so many frames at most one carries what costs more: windows, distributions, clients, matrix."""
_SLOW_SHARE_0_1: Final = 0.003
"""Of a core, for what costs more; where it is much to put together, it comes less often."""
_SPEED_S: Final = 60
_MATRIX_S: Final = 300
_PIPELINES: Final = 8
LONGEST_H: Final = 24 * 31


class Board:
    """Told of each ended call. `goodput`, `pipelines` and `open_calls` are asked when somebody looks."""

    def __init__(
        self,
        fleet: Fleet,
        line: Line,
        *,
        clock: Clock,
        wall_s: Callable[[], float],
        settings: Callable[[], Settings],
        goodput: Callable[[], Steps[dict[str, Any]]],
        pipelines: Callable[[], dict[str, Any]],
        open_calls: Callable[[], int],
        audit: Callable[..., None],
        catch_up: Callable[[], None],
    ) -> None:
        """`catch_up`: be told now of calls that have ended."""
        self._fleet = fleet
        self._line = line
        self._clock = clock
        self._wall_s = wall_s
        self._settings = settings
        self._goodput = goodput
        self._pipelines = pipelines
        self._open_calls = open_calls
        self._audit = audit
        self._catch_up = catch_up
        self._started_s = clock()
        self._tasks = Tasks()
        self._history: History | None = None
        self._opening = asyncio.Lock()
        self._told = 0
        self._slow_next = 0
        self._slow_took_s = 0.0
        self._recent = Recent()
        self._buckets = Buckets(wall_s, self._bucket_closed)
        self._events = Events(self._frame, self._tasks)
        self.what_if = WhatIf(settings, fleet.backends, wall_s)
        self._witness = Witness()

    def ended(self, facts: CallFacts, judged: JudgedCall, now_s: float) -> None:
        """A judged call ended at that time, in seconds since 1970."""
        missed = judged.missed(facts)
        self._buckets.add(facts, None if missed is None else not missed, failed(facts), now_s)
        self._recent.add(facts, judged, missed, now_s)

    # --- history

    async def start(self) -> None:
        """Open the history, and take the last hour from it."""
        wanted = self._settings().dashboard
        if wanted.history is None:
            return
        self._history = History(wanted.history, wanted.max_size)
        now_s = self._wall_s()
        try:
            rows = await asyncio.to_thread(self._history.read, now_s - KEPT_S, now_s)
        except (sqlite3.Error, OSError) as error:
            self._history.unreadable(error)
        else:
            self._buckets.remember(as_buckets(rows))

    async def configure(self) -> None:
        """The settings may name another file."""
        async with self._opening:
            wanted, now = self._settings().dashboard, self._history
            if now is not None:
                now.max_bytes = wanted.max_size
            if (None if now is None else now.path) == wanted.history:
                return
            await self._close_history()
            if wanted.history is not None:
                self._history = History(wanted.history, wanted.max_size)

    async def close(self) -> None:
        """End the streams, write what is left."""
        self._events.close()
        self.what_if.close()
        await self._tasks.close()
        self._buckets.close()
        await self._close_history()

    async def _close_history(self) -> None:
        history, self._history = self._history, None
        if history is not None:
            await asyncio.to_thread(history.close)

    def _bucket_closed(self, bucket: Bucket) -> None:
        if self._history is not None:
            self._history.take(bucket)

    async def past(self, hours: float) -> dict[str, Any]:
        """Minutes from the history. Raises `NotFound` where there is none."""
        history = self._history
        if history is None:
            raise NotFound("no history is kept; name a file for it in the settings: dashboard: {history: FILE}")
        now_s = self._wall_s()
        try:
            rows = await asyncio.to_thread(history.read, now_s - min(hours, LONGEST_H) * 3600, now_s)
        except (sqlite3.Error, OSError) as error:
            raise NotFound(f"the history cannot be read: {error}") from error
        return {"series": [_point(bucket) for bucket in as_buckets(rows)]}

    # --- frames

    @asynccontextmanager
    async def page(self) -> AsyncIterator[Page]:
        """A page is open; its first frame has everything."""
        self._catch_up()
        async with self._events.page() as page:
            try:
                if self._events.pages == 1:
                    self._told = self._recent.last
                    self._line.witness = self._witness
                page.begin(event("all", orjson.dumps(await self.figures())))
                yield page
            finally:
                if self._events.pages == 1:
                    self._line.witness = None

    def end_streams(self) -> None:
        """They come again, if they know the key that is asked for now."""
        self._events.close()

    async def figures(self) -> dict[str, Any]:
        """All there is."""
        self._catch_up()
        slow, series = await in_turns(self._slow()), await in_turns(self._series())
        calls = await in_turns(self._recent.all())
        self._catch_up()
        calls += self._recent.after(calls[-1]["number"] if calls else 0)  # what ended meanwhile
        return {
            "version": router_version(),
            "bucket_s": BUCKET_S,
            "edges_s": EDGES_S,
            **self._quick(),
            **slow,
            "series": series,
            "calls": calls,
        }

    def decisions(self, after: int) -> dict[str, Any]:
        """The tail: calls that ended after the one of this number."""
        self._catch_up()
        return {"last": self._recent.last, "calls": self._recent.after(after)}

    async def _frame(self, number: int) -> bytes:
        if number == 1:  # pages are open again; their first frames had it all
            self._slow_next = SLOW_EVERY
        slow = {}
        if number >= self._slow_next:
            slow = await in_turns(self._timed(self._slow()))
            self._slow_next = number + max(SLOW_EVERY, int(self._slow_took_s / _SLOW_SHARE_0_1))
        self._catch_up()
        told, self._told = self._told, self._recent.last
        document: dict[str, Any] = {
            **self._quick(),
            "series": [_point(bucket) for bucket in self._buckets.window(2 * BUCKET_S)],
            "calls": self._recent.after(told),
            **slow,
        }
        return event("frame", orjson.dumps(document))

    def _timed(self, steps: Steps[Made]) -> Steps[Made]:
        """Adds up what the steps themselves take, without what happens in between."""
        self._slow_took_s = 0.0
        while True:
            began_s = self._clock()
            try:
                next(steps)
            except StopIteration as end:
                made: Made = end.value
                return made
            finally:
                self._slow_took_s += self._clock() - began_s
            yield

    def _quick(self) -> dict[str, Any]:
        now_s = self._clock()
        speeds = self._speeds()
        history = self._history
        return {
            "time_s": round(self._wall_s(), 3),
            "uptime_s": round(now_s - self._started_s),
            "open_calls": self._open_calls(),
            "last": self._recent.last,
            "backends": [
                {**backend_document(backend, now_s), "tokens_per_s": round(speeds.get(backend.name, 0.0), 1)}
                for backend in self._fleet.backends()
            ],
            "line": self._line_documents(),
            "history": None if history is None else {"problem": history.problem, "dropped": history.dropped},
        }

    def _slow(self) -> Steps[dict[str, Any]]:
        goodput = yield from self._goodput()
        distributions = yield from self._recent.distributions()
        matrix = yield from self._matrix()
        return {
            "goodput": goodput,
            "distributions": distributions,
            "matrix": matrix,
            "pipelines": self._pipelines_shown(),
            "charts": "uplot.js" in assets(),
            "policy": self._settings().policy.use,
            "decision_log": self._settings().decisions.file is not None,
        }

    def _line_documents(self) -> list[dict[str, Any]]:
        """`expected_wait_s`: of one more call of the class."""
        classes, depth = self._settings().classes, self._line.depth()
        return [
            {
                "class": call_class,
                "waiting": depth[call_class],
                "expected_wait_s": round(self._line.expected_wait_s(call_class), 3),
                "max_wait_s": classes.of(call_class).max_wait,
                "slo": classes.of(call_class).slo.model_dump(),
            }
            for call_class in CallClass
        ]

    def _pipelines_shown(self) -> dict[str, Any]:
        """A few of those under way, and of the last ones that are over; `GET /pipelines` has more."""
        found = self._pipelines()
        return {**found, "open": found["open"][:_PIPELINES], "over": found["over"][:_PIPELINES]}

    def _speeds(self) -> dict[str, float]:
        """Output tokens per second of each backend over the last minute, as its calls ended."""
        span_s = min(float(_SPEED_S), max(1.0, self._clock() - self._started_s))
        tokens: dict[str, float] = {}
        for bucket in self._buckets.window(_SPEED_S):
            for (_, backend), cell in bucket.cells.items():
                tokens[backend] = tokens.get(backend, 0.0) + cell.output_tokens / span_s
        return tokens

    def _series(self) -> Steps[list[list[Any]]]:
        """The last hour."""
        points = []
        for bucket in self._buckets.window(KEPT_S):
            points.append(_point(bucket))
            yield
        return points

    def _matrix(self) -> Steps[list[dict[str, Any]]]:
        """Perception against capacity: for each class on each backend the first token, and what it delivers."""
        span_s = min(float(_MATRIX_S), max(1.0, self._clock() - self._started_s))
        cells: dict[tuple[str, str], list[Cell]] = {}
        for bucket in self._buckets.window(_MATRIX_S):
            for key, cell in bucket.cells.items():
                cells.setdefault(key, []).append(cell)
        points = []
        for (call_class, backend), several in sorted(cells.items()):
            if not backend:
                continue
            total = Cell.sum(several)
            [ttft_p50_s] = total.ttft.quantiles((0.5,))
            points.append(
                {
                    "class": call_class,
                    "backend": backend,
                    "calls": total.calls,
                    "tokens_per_s": round(total.output_tokens / span_s, 2),
                    "ttft_p50_s": ttft_p50_s,
                }
            )
            yield
        return points

    # --- controls

    def drain(self, name: str, drained: bool) -> dict[str, Any]:
        """Take a backend out or put it back. Raises `NotFound`."""
        backend = self._fleet.backend(name)
        if backend is None:
            names = ", ".join(each.name for each in self._fleet.backends())
            raise NotFound(f"there is no backend of that name; there are: {names}")
        self._fleet.drain(backend, drained, self._clock())
        event = "backend_drained" if drained else "backend_put_back"
        self._audit(event, by="admin port", backend=name, running=backend.account.own)
        return {"backend": name, "drained": drained, "running": backend.account.own}


def _point(bucket: Bucket) -> list[Any]:
    """`[start_s, length_s, {class: [calls, judged, kept, failed, tokens, kept tokens, ttft p50, ttft p95]}]`."""
    by_class: dict[str, list[Any]] = {}
    for call_class in {key[0] for key in bucket.cells}:
        total = Cell.sum([cell for key, cell in bucket.cells.items() if key[0] == call_class])
        counts = [total.calls, total.judged, total.kept, total.failed, total.output_tokens, total.kept_tokens]
        by_class[str(call_class)] = [*counts, *total.ttft.quantiles((0.5, 0.95))]
    return [bucket.start_s, bucket.length_s, by_class]
