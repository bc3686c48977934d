"""`twolane pipelines`: the tasks of a running router as a table in the terminal, or one of them as a picture."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import orjson
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from router.pipelines.gantt import gantt
from router.settings.load import load
from router.settings.model import Settings
from router.settings.problems import SettingsError

_DEFAULT_FILE = Path("twolane.yaml")
_DEFAULT_ADMIN = "http://127.0.0.1:8081"
_TIMEOUT_S = 5.0
_NARROWEST = 118


class NotReached(Exception):
    """There is no answer to show; its text says why."""


def pipelines(
    config: Annotated[Path | None, typer.Option("--config", "-c", help="Settings file of the router.")] = None,
    admin: Annotated[str | None, typer.Option(help="URL of its admin port, in place of a file.")] = None,
    key: Annotated[
        str | None, typer.Option(envvar="TWOLANE_ADMIN_KEY", help="Its admin key, where the file does not say it.")
    ] = None,
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
        url, key = _where(config, admin, key)
        if svg is not None or id_:
            _one(url, key, id_, svg, console)
        elif once:
            console.print(_table(_asked(url, "/pipelines", key)))
        else:
            _live(url, key, interval, console)
    except NotReached as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        raise typer.Exit(0) from None


def _where(config: Path | None, admin: str | None, key: str | None) -> tuple[str, str | None]:
    """URL of the admin port and its key."""
    if admin is not None:
        return admin.rstrip("/"), key
    file = config or (_DEFAULT_FILE if _DEFAULT_FILE.exists() else None)
    if file is None:
        return _DEFAULT_ADMIN, key
    try:
        settings = load(file).settings
    except SettingsError as error:
        raise NotReached("\n".join(str(problem) for problem in error.problems)) from None
    return _url(settings, file), key or _key(settings)


def _url(settings: Settings, file: Path) -> str:
    address = settings.admin
    if address is None:
        raise NotReached(f"{file} has no admin port (admin: null), so there is nothing to ask")
    if address.path:
        raise NotReached(f"{file} has its admin port on a unix socket; give --admin URL of one that can be reached")
    return f"{'https' if settings.tls is not None else 'http'}://{address}"


def _key(settings: Settings) -> str | None:
    return settings.admin_key.get_secret_value() if settings.admin_key is not None else None


def _asked(url: str, path: str, key: str | None) -> dict[str, Any]:
    request = urllib.request.Request(url + path, headers={"Authorization": f"Bearer {key}"} if key else {})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_TIMEOUT_S) as answer:
            document: dict[str, Any] = orjson.loads(answer.read())
            return document
    except urllib.error.HTTPError as error:
        raise NotReached(f"{url}{path}: {error.code}, {_said(error.read())}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise NotReached(f"no router answers at {url} ({reason}); is it running? --admin URL names another") from None


def _said(body: bytes) -> str:
    try:
        return str(orjson.loads(body)["error"]["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "without a word"


def _one(url: str, key: str | None, id_: str, svg: Path | None, console: Console) -> None:
    if not id_:
        raise NotReached("--svg needs --id: which pipeline? `twolane pipelines --once` lists them")
    task = _asked(url, f"/pipelines/{quote(id_, safe='')}", key)
    if svg is None:
        console.print_json(orjson.dumps(task).decode())
        return
    svg.write_text(gantt(task), encoding="utf-8")
    typer.echo(f"wrote {svg}: {task['hops']} hops of {task['id']}", err=True)


def _live(url: str, key: str | None, interval_s: float, console: Console) -> None:
    """Until the user has seen enough. A router that is away for a moment does not end it."""
    with Live(_table(_asked(url, "/pipelines", key)), console=console, auto_refresh=False) as live:
        while True:
            time.sleep(interval_s)
            try:
                live.update(_table(_asked(url, "/pipelines", key)), refresh=True)
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
