"""Tasks that take more than one call: which calls belong together, what is left of them, what became of them.

`store` is what the gateway and the simulation call; `threads` finds the call that another goes on from, `siblings`
those that were sent at once, `templates` what such tasks usually need, `due` when a hop should be complete.
"""

from router.pipelines.hop import Hop, Kind
from router.pipelines.store import Pipelines

__all__ = ["Hop", "Kind", "Pipelines"]
