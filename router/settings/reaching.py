"""Where a running router can be reached from this machine: as it is said on a command line, or as its settings say.

An address reads as in the settings file (`127.0.0.1:8081`, `unix:/PATH`), or as a URL.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import TypeAdapter, ValidationError

from router.asking import NotReached, trusting
from router.settings.fields import Address

DEFAULT_FILE: Final = Path("twolane.yaml")
DEFAULT_ADMIN: Final = "http://127.0.0.1:8081"
KEY_VARIABLE: Final = "TWOLANE_ADMIN_KEY"

ConfigOption = Annotated[Path | None, typer.Option("--config", "-c", help="Settings file of the router.")]
AdminOption = Annotated[
    str | None,
    typer.Option("--admin", "--url", help="Its admin port, else that of the file: HOST:PORT, unix:/PATH or a URL."),
]
KeyOption = Annotated[
    str | None, typer.Option(envvar=KEY_VARIABLE, help="Its admin key, where the file does not say it.")
]
"""The options of commands that ask a running router: `admin_port` takes them."""

_EXPECTED: Final = (
    "expected the address of its admin port: HOST:PORT, http://HOST:PORT, https://HOST:PORT or unix:/PATH"
)
_URL = re.compile(r"https?://[^/?#\s@]+/?")
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True)
class Door:
    """One port of a router, and what opens it."""

    url: str
    key: str | None = None
    trusted: ssl.SSLContext | None = None
    """What certificates count; None: those of the system."""


def url_of(address: Address, *, tls: bool) -> str:
    """Of a port that listens there; one that listens everywhere is asked on this machine. Raises `NotReached`."""
    if address.path:
        return str(address)
    if not address.port:
        raise NotReached("the settings say port 0, any free one, so nobody can tell which it is; name it with --admin")
    here = Address(host=_ANY.get(address.host, address.host), port=address.port)
    return f"{'https' if tls else 'http'}://{here}"


def url_in(text: str) -> str:
    """What is said on a command line. Raises `NotReached`."""
    if _URL.fullmatch(text):
        return text.rstrip("/")
    try:
        return url_of(TypeAdapter(Address).validate_python(text), tls=False)
    except ValidationError:
        raise NotReached(f"{text[:100]!r}: {_EXPECTED}") from None


def admin_port(given: str | None, config: Path | None, key: str | None) -> Door:
    """That of the router which is meant: `given` on the command line, else that of a settings file, be it the one in
    this folder, else the usual one. Raises `NotReached`."""
    if given is not None and config is None:
        return Door(url_in(given), key)
    file = config or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)
    if file is None:
        return Door(DEFAULT_ADMIN, key)
    from router.settings.load import load  # `router.health` asks without it
    from router.settings.problems import SettingsError

    try:
        settings = load(file).settings
    except SettingsError as error:
        raise NotReached(str(error)) from None
    if key is None and settings.admin_key is not None:
        key = settings.admin_key.get_secret_value()
    tls = settings.tls
    try:
        trusted = trusting(str(tls.cert.path)) if tls is not None else None
    except OSError as error:
        raise NotReached(f"{file}: tls.cert cannot be read: {error.strerror or error}") from None
    if given is not None:
        return Door(url_in(given), key, trusted)
    if settings.admin is None:
        raise NotReached(f"{file} has no admin port (admin: null), so there is nothing to ask")
    return Door(url_of(settings.admin, tls=tls is not None), key, trusted)
