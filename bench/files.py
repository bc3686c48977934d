"""How many files, sockets among them, a process may have open."""

from __future__ import annotations

import resource


def raise_limit() -> int:
    """To the hard limit, which children inherit; returns it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return 2**20 if hard == resource.RLIM_INFINITY else hard
