"""Settings without a file: the URLs of servers, as in `twolane serve URL URL`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pydantic import ValidationError

from router.settings.checks import is_address_of
from router.settings.fields import UNIX, Address
from router.settings.model import Settings
from router.settings.problems import Path, Problem, SettingsError
from router.settings.wording import complaints

_PORTS: Final = ((8080, 8081), (8088, 8089), (9080, 9081), (18080, 18081))
"""For clients and for the admin port; llama.cpp's own first port is 8080, too."""
_HERE = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(?=:|$)")


def from_urls(
    urls: Sequence[str],
    *,
    listen: Address | str | None = None,
    admin: Address | str | None = None,
    insecure: bool = False,
) -> Settings:
    """Settings for these servers; `http://` may be left out. Lanes, slots and models are for the servers to say.

    The addresses, `HOST:PORT` where they are text, are ports of this machine that no URL names, where they are not
    given. Raises `SettingsError`.
    """
    full = [url if "://" in url or url.startswith(UNIX) else f"http://{url}" for url in urls]
    free_listen, free_admin = addresses_beside(full)
    root = {
        "listen": listen or free_listen,
        "admin": admin or free_admin,
        "insecure": insecure,
        "backends": [{"name": name, "url": url} for name, url in zip(_names(full), full, strict=True)],
    }
    try:
        return Settings.model_validate(root)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        found = [complaint for detail in details for complaint in complaints(detail, root)]
    raise SettingsError(Problem(source=_argument(complaint.path), message=complaint.message) for complaint in found)


def _argument(path: Path) -> str:
    """The word of the command line that a key came from."""
    match path:
        case ("listen" | "admin" as name, *_):
            return f"--{name}"
        case (_, int(index), *_):
            return f"URL {index + 1}"
        case _:
            return "URLs"


def addresses_beside(urls: Sequence[str]) -> tuple[Address, Address]:
    """Where to listen for clients and for the admin, so that none of these servers is in the way."""
    pairs = [tuple(Address(host="127.0.0.1", port=port) for port in ports) for ports in _PORTS]
    free = (pair for pair in pairs if not any(is_address_of(url, address) for url in urls for address in pair))
    listen, admin = next(free, pairs[0])
    return listen, admin


def _names(urls: Sequence[str]) -> list[str]:
    """Host and port of each: `local-8090`, `gpu-box-8000`; a name that is taken gets a number behind it."""
    names: list[str] = []
    for url in urls:
        server = _socket_name(url) or re.split(r"[/?#]", url.partition("://")[2])[0].rpartition("@")[2]
        plain = re.sub(r"[^A-Za-z0-9.]+", "-", _HERE.sub("local", server)).strip("-.")[:56] or "server"
        count = 1
        while (name := plain if count == 1 else f"{plain}-{count}") in names:
            count += 1
        names.append(name)
    return names


def _socket_name(url: str) -> str:
    return url.rpartition("/")[2].removesuffix(".sock") if url.startswith(UNIX) else ""
