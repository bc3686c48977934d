"""A bounded memory of which backend something belongs to: a conversation, or the id of a stored response."""

from __future__ import annotations

from collections import OrderedDict


class Memory:
    """Least recently used entries are forgotten first, so the size never passes `capacity`."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._backends: OrderedDict[str, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._backends)

    def recall(self, key: str) -> str | None:
        """Name of the backend, or None."""
        if not key:
            return None
        backend = self._backends.get(key)
        if backend is not None:
            self._backends.move_to_end(key)
        return backend

    def remember(self, key: str, backend: str) -> None:
        if not key:
            return
        self._backends[key] = backend
        self._backends.move_to_end(key)
        if len(self._backends) > self._capacity:
            self._backends.popitem(last=False)
