"""Under which names the public port may be called while it asks nobody for a key.

It is then for this machine alone, and browsers on this machine run pages of strangers: a page at a name that its owner
points to 127.0.0.1 (DNS rebinding) would be of the same origin as the router, and read answers. So calls under a name
that a stranger can own are refused. Addresses, names without a dot, and names that nobody can buy are not such names.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from router.errors import Forbidden
from router.settings.model import Settings

_NOBODYS: Final = (".localhost", ".local", ".internal")
_MOST_REMEMBERED: Final = 256


class NotByThisName(Forbidden):
    """Says nothing of a key, so it is not counted among those that were wrong."""

    word = "refused"


class Hosts:
    """Looks at the `Host` of each request; what it found is remembered, so that a call pays for a look-up alone."""

    def __init__(self, settings: Settings) -> None:
        self._open = bool(settings.keys) or bool(settings.listen.path) or not settings.listen.is_local
        self._own = frozenset(settings.hosts)
        self._known: set[str] = set()

    def check(self, host: str | None) -> None:
        """Raises `NotByThisName`."""
        if self._open or host is None or host in self._known:
            return
        if not self._may(host):
            raise NotByThisName(
                "without keys this router answers to addresses and names of this machine only, since a page in a "
                "browser could point any other name at it; call http://127.0.0.1, or set `keys`, or list the name "
                "under `hosts`"
            )
        if len(self._known) < _MOST_REMEMBERED:
            self._known.add(host)

    def _may(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
            return "." not in name or name.endswith(_NOBODYS) or name in self._own or bool(ip_address(name))
        except ValueError:
            return False
