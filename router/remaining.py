"""Of the backends that serve a call, those that are left for it. Pure."""

from __future__ import annotations

from collections.abc import Sequence, Set

from router.fleet.fleet import Candidate


def remaining(
    found: Sequence[Candidate], pinned: str | None, tried: Set[str], model: str | None
) -> Sequence[Candidate]:
    """`pinned`: the only one that can answer. `tried`: those that failed. `model`: what a loop was answered by so far,
    in the words of the backends; another one only where none that has it is up."""
    if pinned is not None:
        found = [candidate for candidate in found if candidate.backend.name == pinned]
    if tried:
        found = [candidate for candidate in found if candidate.backend.name not in tried]
    if model is not None and not all([candidate.model == model for candidate in found]):
        same = [candidate for candidate in found if candidate.model == model]
        return same if any([candidate.backend.health.hopeful for candidate in same]) else found
    return found
