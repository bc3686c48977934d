"""How fast a backend is, learned from its answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from policies.api import UNKNOWN_PACE, Pace

_SLOTS: Final = Pace(step_s=0.010, sequence_s=0.0012, prefill_token_s=1 / 4_000, step_tokens=512, call_s=0.002)
"""A model of a few billion weights, of four bits, on one consumer GPU."""
_BATCHES: Final = Pace(step_s=0.014, sequence_s=0.000_2, prefill_token_s=1 / 8_000, step_tokens=2_048, call_s=0.005)
"""A model that fills an accelerator of a data centre."""
_LIKELY: Final[Mapping[str, Pace]] = {
    "llamacpp": _SLOTS,
    "ollama": _SLOTS,
    "lmstudio": _SLOTS,
    "vllm": _BATCHES,
    "sglang": _BATCHES,
}


def likely(engine: str) -> Pace:
    """What the kind of engine makes likely, before anything was seen of the server."""
    return _LIKELY.get(engine, UNKNOWN_PACE)
