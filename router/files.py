"""How many files, sockets among them, this process may have open."""

from __future__ import annotations

import resource


def raise_limit() -> int:
    """To what the system allows at most, which children inherit; returns it. Each open stream needs two sockets, and
    the usual limit of 1,024 is there for programs that still use `select`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):  # there are systems that name no limit and have one
        return soft
    return 2**20 if hard == resource.RLIM_INFINITY else hard
