"""One connection pool per backend."""

from __future__ import annotations

from router.fleet.backend import Backend
from router.wire.api import UpstreamPool
from router.wire.upstream import Pool


class Upstreams:
    """Owner of all pools; a backend whose URL changed gets a new one."""

    def __init__(self) -> None:
        self._pools: dict[str, tuple[str, Pool]] = {}

    def __repr__(self) -> str:
        return f"<Upstreams {', '.join(repr(pool) for _, pool in self._pools.values())}>"

    def pool(self, backend: Backend) -> UpstreamPool:
        url = backend.settings.url
        entry = self._pools.get(backend.name)
        if entry is None or entry[0] != url:
            if entry is not None:
                entry[1].close()
            entry = self._pools[backend.name] = (url, Pool(url))
        return entry[1]

    def keep_only(self, names: set[str]) -> None:
        """After a reload: pools of backends that are gone close when their calls end."""
        for name in self._pools.keys() - names:
            self._pools.pop(name)[1].close()

    def close(self) -> None:
        for _, pool in self._pools.values():
            pool.close()
        self._pools.clear()
