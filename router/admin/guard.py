"""Who may use the admin port.

With an `admin_key`: who shows it. Without one the port is local, and whoever is on this machine may. Browsers on this
machine run pages of strangers, so these are kept out: a page cannot post here from another origin, and a name that an
attacker points to 127.0.0.1 (DNS rebinding) is not one that this port answers to.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address
from urllib.parse import urlsplit

from aiohttp import web
from pydantic import SecretStr

from router.errors import Forbidden, Unauthorized

UNGUARDED = frozenset({"/health", "/ready"})
"""For probes of a container runtime; strangers get one word."""

KNOWN = web.RequestKey("known", bool)
"""Whether the caller may see everything."""


ASSETS = "/dashboard/"
"""Path under which the files of the page are. They hold no figures: the page asks for the key and shows it itself."""


def is_page(request: web.Request) -> bool:
    """Whether a browser asks for the page or one of its files; programs that take anything get JSON."""
    if request.method not in ("GET", "HEAD"):
        return False
    if request.path == "/":
        return "text/html" in request.headers.get("Accept", "")
    return request.path.startswith(ASSETS)


class Guard:
    """Looks at each request before it is handled. `admin_key` is asked each time, since a reload may change it."""

    def __init__(self, admin_key: Callable[[], SecretStr | None]) -> None:
        self._admin_key = admin_key

    def check(self, request: web.Request) -> None:
        """Raises `Unauthorized` or `Forbidden`."""
        key = self._admin_key()
        if key is None:
            _keep_pages_out(request)
            request[KNOWN] = True
            return
        request[KNOWN] = _shows(request, key.get_secret_value())
        if not request[KNOWN] and request.path not in UNGUARDED and not is_page(request):
            raise Unauthorized("the admin key is missing or wrong; send it as Authorization: Bearer KEY (admin_key)")


def _shows(request: web.Request, key: str) -> bool:
    scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
    shown_bytes = shown.strip().encode("utf-8", "surrogateescape")
    same = compare_digest(sha256(shown_bytes).digest(), sha256(key.encode()).digest())
    return same and scheme.lower() == "bearer"


def _keep_pages_out(request: web.Request) -> None:
    if not _is_own_name(request.headers.get("Host", "")):
        raise Forbidden("this port answers to localhost and to addresses only; use one of these, or set an admin_key")
    origin = request.headers.get("Origin")
    if origin is not None and request.method != "GET" and urlsplit(origin).netloc != request.headers.get("Host"):
        raise Forbidden("a page of another origin may not do this; set an admin_key and send it")


def _is_own_name(host: str) -> bool:
    """Whether it is an address or localhost, which no stranger can point elsewhere. A unix socket needs none."""
    try:
        name = urlsplit(f"//{host}").hostname or "localhost"
        return name == "localhost" or name.endswith(".localhost") or bool(ip_address(name))
    except ValueError:
        return False
