"""What clients did lately: hashes and counts of a bounded number of them, and never a text.

`store` is what the gateway calls; `client` keeps one client, `kin` its calls that have a mark in common, `history` the
conversations that may go on.
"""

from router.arrivals.store import Arrivals, Presence

__all__ = ["Arrivals", "Presence"]
