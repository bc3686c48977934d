"""One connection pool per backend."""

from __future__ import annotations

from dataclasses import dataclass

from router.fleet.backend import Backend
from router.settings.backend import Backend as BackendSettings
from router.wire.api import UpstreamPool
from router.wire.upstream import Pool


@dataclass(slots=True)
class _Entry:
    settings: BackendSettings
    pool: Pool


class Upstreams:
    """Owner of all pools; a backend whose URL or certificates changed gets a new one."""

    def __init__(self) -> None:
        self._pools: dict[str, _Entry] = {}

    def __repr__(self) -> str:
        return f"<Upstreams {', '.join(repr(entry.pool) for entry in self._pools.values())}>"

    def pool(self, backend: Backend) -> UpstreamPool:
        entry = self._pools.get(backend.name)
        if entry is None or entry.settings is not backend.settings:
            entry = self._renewed(entry, backend)
        return entry.pool

    def _renewed(self, entry: _Entry | None, backend: Backend) -> _Entry:
        """After a reload, and for the first call."""
        settings = backend.settings
        if entry is not None and _reaches(entry.settings) == _reaches(settings):
            entry.settings = settings
            return entry
        if entry is not None:
            entry.pool.close()
        entry = self._pools[backend.name] = _Entry(settings, Pool(settings.url, ssl=settings.tls()))
        return entry

    def keep_only(self, names: set[str]) -> None:
        """After a reload: pools of backends that are gone close when their calls end."""
        for name in self._pools.keys() - names:
            self._pools.pop(name).pool.close()

    def close(self) -> None:
        for entry in self._pools.values():
            entry.pool.close()
        self._pools.clear()


def _reaches(settings: BackendSettings) -> tuple[object, ...]:
    """Of the settings, what connections are made by."""
    return settings.url, settings.ca_file, settings.insecure_skip_verify
