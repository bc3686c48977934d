"""`twolane pipelines`: the tasks of a running router as a table in the terminal, or one of them as a picture."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import orjson
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from router.asking import NotReached, asked
from router.pipelines.gantt import gantt
from router.settings.reaching import AdminOption, ConfigOption, Door, KeyOption, admin_port

_TIMEOUT_S = 5.0
_NARROWEST = 118


def pipelines(
    config: ConfigOption = None,
    admin: AdminOption = None,
    key: KeyOption = None,
    once: Annotated[bool, typer.Option("--once", help="Print once and end.")] = False,
    interval: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 1.0,
    id_: Annotated[str, typer.Option("--id", help="One pipeline, by the beginning of its id.")] = "",
    svg: Annotated[Path | None, typer.Option(help="Write that one as a picture to this file.")] = None,
) -> None:
    """Show the pipelines of a running router: those under way and the last ones that are over."""
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, _NARROWEST)
    try:
        door = admin_port(admin, config, key)
        if svg is not None or id_:
            _one(door, id_, svg, console)
        elif once:
            console.print(_table(_asked(door, "/pipelines")))
        else:
            _live(door, interval, console)
    except NotReached as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _asked(door: Door, path: str) -> dict[str, Any]:
    try:
        status, body = asked(door.url, path, key=door.key, trusted=door.trusted, timeout_s=_TIMEOUT_S)
    except NotReached as error:
        raise NotReached(f"no router answers at {door.url} ({error}); is it running? --admin names another") from None
    if status != 200:
        raise NotReached(f"{door.url}{path}: {status}, {_said(body)}")
    try:
        document: dict[str, Any] = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise NotReached(f"{door.url} is no admin port of twolane; --admin names another") from None
    return document


def _said(body: bytes) -> str:
    try:
        return str(orjson.loads(body)["error"]["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "without a word"


def _one(door: Door, id_: str, svg: Path | None, console: Console) -> None:
    if not id_:
        raise NotReached("--svg needs --id: which pipeline? `twolane pipelines --once` lists them")
    task = _asked(door, f"/pipelines/{quote(id_, safe='')}")
    if svg is None:
        console.print_json(orjson.dumps(task).decode())
        return
    try:
        svg.write_text(gantt(task), encoding="utf-8")
    except OSError as error:
        raise NotReached(f"{svg} cannot be written: {error.strerror}") from None
    typer.echo(f"wrote {svg}: {task['hops']} hops of {task['id']}", err=True)


def _live(door: Door, interval_s: float, console: Console) -> None:
    """Until the user has seen enough. A router that is away for a moment does not end it."""
    with Live(_table(_asked(door, "/pipelines")), console=console, auto_refresh=False) as live:
        while True:
            time.sleep(interval_s)
            try:
                live.update(_table(_asked(door, "/pipelines")), refresh=True)
            except NotReached as error:
                live.update(str(error), refresh=True)


def _table(document: Mapping[str, Any], most: int = 30) -> Table:
    open_, over = document["open"], document["over"]
    table = Table(title=f"{document['open_count']} pipelines under way, {len(over)} of late over", title_justify="left")
    table.add_column("pipeline")
    table.add_column("state")
    for name in ("hops", "makespan\ns", "in line\ns", "first\ntokens s", "program\ns", "reused\n%", "tokens\nin / out"):
        table.add_column(name, justify="right")
    table.add_column("deadline")
    for task in [*open_, *over][:most]:
        table.add_row(*_cells(task))
    return table


def _cells(task: Mapping[str, Any]) -> list[str]:
    path = task["critical_path"]
    reused = 100 * task["cached_tokens"] / max(1, task["prompt_tokens"])
    state = f"{task['state']} ({task['open']})" if task["open"] else task["state"]
    return [
        f"{task['id']}{'' if task['found'] == 'named' else ' *'}",
        state,
        str(task["hops"]),
        f"{task['makespan_s']:.2f}",
        f"{path['line_s']:.2f}",
        f"{path['prefill_s']:.2f}",
        f"{path['own_s']:.2f}",
        f"{reused:.0f}",
        f"{task['prompt_tokens']} / {task['output_tokens']}",
        _deadline(task),
    ]


def _deadline(task: Mapping[str, Any]) -> str:
    if task["deadline"] == "none":
        return "-"
    if task["deadline"] == "open":
        return f"in {task['deadline_in_s']:.1f} s{', yields' if task['yields'] else ''}"
    if task["deadline"] == "missed":
        return f"missed, {task['wasted_tokens']} tokens in vain"
    return "met"
