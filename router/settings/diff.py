"""Which keys differ between two settings, and which of them a running router cannot take over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from router.settings.model import Settings
from router.settings.problems import Path, dotted

FIXED_AT_START: Final = ("listen", "admin", "socket_mode", "tls", "limits.max_header")
"""Sockets, and what their servers were built with. `tls` differs as a whole where it is switched on or off."""


def changed(old: Settings, new: Settings) -> tuple[str, ...]:
    """Paths of the keys whose values differ, in the order of the file. Lists of different length differ as a whole."""
    return tuple(dotted(path) for path in _differences(_as_in_file(old), _as_in_file(new), ()))


def restart_needed(old: Settings, new: Settings) -> tuple[str, ...]:
    """Paths of changed keys that hold until the router is started again; empty: a reload will do."""
    return tuple(key for key in changed(old, new) if key in FIXED_AT_START)


def _as_in_file(settings: Settings) -> dict[str, Any]:
    """Keys as they are written; keys of backends in the clear, so that a new one is seen."""
    admin = None if settings.admin is None else str(settings.admin)
    return settings.model_dump(by_alias=True) | {"listen": str(settings.listen), "admin": admin}


def _differences(old: Any, new: Any, path: Path) -> Iterator[Path]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            if key not in old or key not in new:
                yield (*path, key)
            else:
                yield from _differences(old[key], new[key], (*path, key))
    elif isinstance(old, tuple | list) and isinstance(new, tuple | list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(one, other, (*path, index))
    elif old != new:
        yield path
