"""How Python's collector of cycles goes about a process that serves: rarely, and never through what stays.

An ended call is freed by its last reference (`tests/router/test_freed.py` holds that), so there is next to nothing to
find. With Python's own settings a few dozen calls that begin together set the collector off all the same; it takes 6 %
of the processor then and, when it goes through everything, stops all streams for up to 70 ms.
"""

from __future__ import annotations

import gc
from typing import Final

_NEW_OBJECTS: Final = 5_000
"""Made and not freed, before the newest are looked through, which takes some milliseconds: more than a hundred calls
that begin at once have."""
_ROUNDS: Final = 5
"""Of these, before those of all such rounds are looked through."""
_WHOLE_ROUNDS: Final = 50
"""Of these, before everything is."""


def collect_rarely() -> None:
    """At the end of the start: what is here now is left out of all rounds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, _ROUNDS, _WHOLE_ROUNDS)
