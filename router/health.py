"""`twolane health`: whether the router of a settings file is alive, for containers and supervisors.

It is asked every few seconds, so it reads no more of the settings than where to ask, and it forgives what is wrong in
the rest: a router goes on with the settings before. Where there is no admin port, any answer of the public one will do.
"""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any, Final

import typer
from pydantic import TypeAdapter, ValidationError

from router.asking import NotReached, asked
from router.settings.document import read
from router.settings.fields import Address
from router.settings.files import plain_content
from router.settings.problems import SettingsError
from router.settings.reaching import DEFAULT_ADMIN, DEFAULT_FILE, ConfigOption, url_of

_PATIENCE_S: Final = 3.0
_PUBLIC: Final = "127.0.0.1:8080"
_ADMIN: Final = DEFAULT_ADMIN.removeprefix("http://")

cli = typer.Typer(add_completion=False)


@cli.callback()
def _only() -> None:
    """So that the command is named, although it is the only one here."""


@cli.command()
def health(
    config: ConfigOption = None,
) -> None:
    """Say whether the router of this machine is alive: exit 0, or 1 and why it is not."""
    try:
        typer.echo(alive(config or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)))
    except NotReached as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None


def alive(file: Path | None) -> str:
    """What answers, and where. Raises `NotReached`."""
    wanted = _read(file) if file is not None else {}
    tls = wanted.get("tls") is not None
    if wanted.get("admin", _ADMIN) is None:
        url = _url(wanted.get("listen"), _PUBLIC, tls=tls)
        _ask(url)
        return f"alive: the public port {url} answers"
    url = _url(wanted.get("admin"), _ADMIN, tls=tls)
    if (status := _ask(url)) != 200:
        raise NotReached(f"{url}/health: {status}")
    return f"alive: the admin port {url} says so"


def _read(file: Path) -> dict[str, Any]:
    """What the file says, as far as it can be read."""
    try:
        value = read(plain_content(file).decode("utf-8-sig"), str(file), os.environ).value
    except (OSError, ValueError, SettingsError):
        return {}
    return value if isinstance(value, dict) else {}


def _url(said: object, usual: str, *, tls: bool) -> str:
    parse = TypeAdapter(Address).validate_python
    try:
        return url_of(parse(said if isinstance(said, str) else usual), tls=tls)
    except ValidationError:
        return url_of(parse(usual), tls=tls)


def _ask(url: str) -> int:
    """It is this machine that is asked, and nothing secret is said, so that any certificate will do."""
    anything = ssl.create_default_context()
    anything.check_hostname = False
    anything.verify_mode = ssl.CERT_NONE
    try:
        return asked(url, "/health", trusted=anything, timeout_s=_PATIENCE_S)[0]
    except NotReached as error:
        raise NotReached(f"no router answers at {url} ({error})") from None
