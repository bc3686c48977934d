"""`twolane top`: the figures of the page in a terminal, from the same stream of the admin port."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import aiohttp
import orjson
import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from router.asking import NotReached
from router.settings.reaching import KEY_VARIABLE, AdminOption, ConfigOption, Door, KeyOption, admin_port

_WINDOW: Final = "5m"
_TAIL: Final = 200
_AGAIN_S: Final = 2.0
_LONGEST_EVENT: Final = 8 * 2**20
_COLOURS: Final = {"green": "green", "yellow": "yellow", "red": "red", "none": "dim"}
_WORDS: Final = {"green": "kept", "yellow": "tight", "red": "missed too often", "none": "nothing to judge"}
_STATES: Final = {"up": "green", "drained": "dim", "loading": "yellow", "unknown": "yellow"}
_MARKS: Final = {"ttft": "t", "mixed": "m", "throughput": "b"}
_MOST_SLOTS: Final = 32
_WIDE: Final = 120
"""Columns of a terminal that has room for everything."""


class NoFigures(Exception):
    """The admin port gave none; says why and what to do."""


class Figures:
    """What the stream has told so far."""

    def __init__(self) -> None:
        self.document: dict[str, Any] = {}
        self.calls: deque[dict[str, Any]] = deque(maxlen=_TAIL)

    def take(self, name: str, document: dict[str, Any]) -> None:
        if name == "all":
            self.calls.clear()
        self.document |= document
        self.calls.extend(document["calls"])


# --- reading


async def events(door: Door) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Events of that admin port. Raises `NoFigures`."""
    url, key = door.url, door.key
    headers = {"Accept": "text/event-stream", **({"Authorization": f"Bearer {key}"} if key else {})}
    path = url.removeprefix("unix:")
    over = aiohttp.UnixConnector(path) if path != url else None
    base = "http://localhost" if over is not None else url.rstrip("/")
    patience = aiohttp.ClientTimeout(total=None, sock_connect=5.0, sock_read=30.0)
    try:
        async with (
            aiohttp.ClientSession(connector=over, timeout=patience, read_bufsize=_LONGEST_EVENT) as session,
            session.get(f"{base}/events", headers=headers, ssl=door.trusted or True) as answer,
        ):
            await _check(answer, url)
            name = ""
            async for line in answer.content:
                if line.startswith(b"event: "):
                    name = line[7:].strip().decode()
                elif line.startswith(b"data: "):
                    yield name, orjson.loads(line[6:])
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise NoFigures(
            f"no figures from {url}: {str(error) or type(error).__name__}; name the admin port with --admin"
        ) from error


async def _check(answer: aiohttp.ClientResponse, url: str) -> None:
    if answer.status == 401:
        raise NoFigures(f"{url} asks for its admin key; give it with --key or in {KEY_VARIABLE}")
    if answer.status != 200 or answer.content_type != "text/event-stream":
        raise NoFigures(f"{url} is no admin port of twolane (status {answer.status}); name it with --admin")


async def follow(door: Door, console: Console, *, once: bool) -> None:
    """Draw until interrupted; `once`: draw one frame. Raises `NoFigures` where there never were any."""
    figures = Figures()
    if once:
        async for event in events(door):
            figures.take(*event)
            console.print(drawn(figures, tail=10, columns=console.width))
            return
        raise NoFigures(f"no figures from {door.url}: it closed the stream")
    problem = ""
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            try:
                async for event in events(door):
                    figures.take(*event)
                    live.update(drawn(figures, tail=max(3, console.height - 24), columns=console.width), refresh=True)
                problem = "the router closed the stream"
            except NoFigures as error:
                if not figures.document:
                    raise
                problem = str(error)
            live.update(
                Group(Text(f"{problem}; trying again", style="red"), drawn(figures, tail=5, columns=console.width)),
                refresh=True,
            )
            await asyncio.sleep(_AGAIN_S)


# --- drawing


def drawn(figures: Figures, *, tail: int, columns: int) -> RenderableType:
    """One frame, with so many of the last calls, for a terminal of that width."""
    document, wide = figures.document, columns >= _WIDE
    return Group(
        _verdict(document),
        _lanes(document["backends"], wide=wide),
        _promises(document, wide=wide),
        _tail(list(figures.calls)[-tail:][::-1], wide=wide),
    )


def _verdict(document: dict[str, Any]) -> Text:
    now = document["goodput"]["windows"][_WINDOW]["total"]
    colour = now["colour"]
    kept = now["compliance_0_1"]
    text = Text(f"twolane {document['version']}  ", style="bold")
    text.append(f"{_percent(kept)} of promises kept" if kept is not None else "no promises to judge", _COLOURS[colour])
    text.append(
        f" in {_WINDOW}  {document['open_calls']} open  {sum(row['waiting'] for row in document['line'])} waiting  "
        f"{now['calls_per_s']:.1f} calls/s  {now['tokens_per_s']:.0f} tokens/s  policy {document['policy']}",
        "not bold",
    )
    if document["history"] and document["history"]["problem"]:
        text.append(f"\nthe history is not written: {document['history']['problem']}", "red")
    return text


Cell = str | Text


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], *, wide: bool) -> Table:
    """Columns that begin with `~` are left out where it is narrow, those that go on with `>` are for numbers."""
    kept = [index for index, name in enumerate(columns) if wide or not name.startswith("~")]
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for index in kept:
        name = columns[index].removeprefix("~")
        side: Literal["left", "right"] = "right" if name.startswith(">") else "left"
        table.add_column(name.removeprefix(">"), justify=side, no_wrap=True, overflow="ellipsis")
    for row in rows:
        table.add_row(*(row[index] for index in kept))
    return table


def _lanes(backends: list[dict[str, Any]], *, wide: bool) -> Table:
    columns = (
        "~lane", "backend", "~engine", "health", "slots", ">ours", "~>others", ">queue", ">tok/s", "~>each", "~>served",
    )  # fmt: skip
    ordered = sorted(backends, key=lambda each: str(each["lane"]))
    return _table("Lanes", columns, map(_lane, ordered), wide=wide)


def _lane(row: dict[str, Any]) -> Sequence[Cell]:
    state = "drained" if row["drained"] else row["health"]
    return (
        row["lane"],
        Text(row["name"], "bold"),
        row["engine"],
        Text(state, _STATES.get(state, "red")),
        _slots(row),
        str(row["own"]),
        f"{row['foreign']:.0f}",
        "-" if row["waiting"] is None else f"{row['waiting']:.0f}",
        f"{row['tokens_per_s']:.0f}",
        f"{row['pace']['tokens_per_s_each']:.0f}" if row["pace"]["answers"] else "-",
        str(row["dispatched"]),
    )


def _slots(row: dict[str, Any]) -> Text:
    """A letter for each: t, m or b (batch: throughput) for ours, o for others', a dot for what is free."""
    text = Text()
    for name, mark in _MARKS.items():
        text.append(mark * row["own_by_class"].get(name, 0), {"t": "blue", "m": "magenta", "b": "yellow"}[mark])
    text.append("o" * round(row["foreign"]), "dim")
    if row["slots"] is not None:
        text.append("." * max(0, row["slots"] - len(text)), "dim")
    if len(text) > _MOST_SLOTS:
        text.truncate(_MOST_SLOTS, overflow="ellipsis")
    return text


def _promises(document: dict[str, Any], *, wide: bool) -> Table:
    columns = (
        "class", ">kept", "", "~>1m", "~>1h", ">calls", ">ttft p95", "~>tpot p95", ">whole p95", ">waiting",
        "~>wait now", "~missed",
    )  # fmt: skip
    windows = document["goodput"]["windows"]
    rows = (_promise_of(line, windows) for line in document["line"])
    return _table(f"Promises kept, {_WINDOW}", columns, rows, wide=wide)


def _promise_of(line: dict[str, Any], windows: dict[str, Any]) -> Sequence[Cell]:
    name = line["class"]
    now = windows[_WINDOW]["class"].get(name)
    waits = (str(line["waiting"]), _seconds(_wait(line)))
    if now is None:
        return (name, "-", "no calls", *("-" * 6), *waits, "")
    missed = ", ".join(f"{part} {count}" for part, count in now["missed"].items() if count)
    shares = [windows[each]["class"].get(name, {}).get("compliance_0_1") for each in ("1m", "1h")]
    style = _COLOURS[now["colour"]]
    return (
        name,
        Text(_percent(now["compliance_0_1"]), style),
        Text(_WORDS[now["colour"]], style),
        *map(_percent, shares),
        str(now["calls"]),
        *(_seconds(now[each]["p95"]) for each in ("ttft_s", "tpot_s", "complete_s")),
        *waits,
        missed,
    )


def _wait(line: dict[str, Any]) -> float | None:
    """Of a call that came now; none where nobody waits."""
    wait_s: float | None = line["expected_wait_s"] if line["waiting"] else 0.0
    return wait_s


def _tail(calls: list[dict[str, Any]], *, wide: bool) -> Table:
    columns = (
        "ended", "class", "backend", "~key", "~>waited", ">ttft", "~>tpot", ">whole", "~>tokens", "promise", "~why",
    )  # fmt: skip
    rows = [_call(call) for call in calls] or [("no call has ended yet", *[""] * (len(columns) - 1))]
    return _table("Decisions, the newest first", columns, rows, wide=wide)


def _call(call: dict[str, Any]) -> Sequence[Cell]:
    why = f"{call['source']}: {'+'.join(call['reasons'])}"
    return (
        f"{datetime.fromtimestamp(call['time_s']).astimezone():%H:%M:%S}",
        call["class"],
        call["backend"] or "-",
        call["key"] or "-",
        *(_seconds(call[each]) for each in ("queue_s", "ttft_s", "tpot_s", "complete_s")),
        str(call["output_tokens"] if call["output_tokens"] is not None else "-"),
        _promise(call),
        f"{why} -> {call['placement']}" if call["placement"] else why,
    )


def _promise(call: dict[str, Any]) -> Text:
    if call["outcome"] != "completed":
        return Text(call["outcome"], "red" if call["missed"] else "dim")
    if call["missed"] is None:
        return Text("none", "dim")
    return Text("missed " + ", ".join(call["missed"]), "red") if call["missed"] else Text("kept", "green")


def _percent(share_0_1: float | None) -> str:
    """Rounded down, so that it never reads like the better colour."""
    return "-" if share_0_1 is None else f"{int(share_0_1 * 1000) / 10:.1f} %"


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value * 1000:.0f} ms" if value < 1 else f"{value:.2f} s" if value < 100 else f"{value / 60:.0f} min"


# --- the command


def top(
    config: ConfigOption = None,
    admin: AdminOption = None,
    key: KeyOption = None,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and end.")] = False,
) -> None:
    """Watch a running router in the terminal: lanes, promises, the line, decisions. Ctrl-C ends it."""
    console = Console(
        width=None if os.isatty(1) or "COLUMNS" in os.environ else 160, markup=False, highlight=False, emoji=False
    )
    try:
        asyncio.run(follow(admin_port(admin, config, key), console, once=once))
    except (NoFigures, NotReached) as error:
        Console(stderr=True, highlight=False).print(str(error), markup=False, soft_wrap=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
