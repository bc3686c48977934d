"""Models with one opinion, whatever they are asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from router import models


def always(call_class: str, score: float = 4.0) -> dict[str, Any]:
    """The document of a model that gives every call this class; at a score of 4 it is 96 % sure, at 0 a third."""
    level = dict.fromkeys(("ttft", "mixed", "throughput"), 0.0)
    feature = {
        "name": models.NAMES[0],
        "words": "anything",
        "kind": "amount",
        "usual": 0.0,
        "transform": "none",
        "mean": 0.0,
        "scale": 1.0,
        "weights": level,
    }
    return {
        "format": 1,
        "version": f"always {call_class}",
        "classes": ["ttft", "mixed", "throughput"],
        "request": {
            "kind": "linear",
            "clip": 3.0,
            "features": [feature],
            "intercept": {**level, call_class: score},
            "calibration": {"temperature": 1.0},
        },
        "arrival": None,
        "trained": {},
    }


def write(path: Path, call_class: str, score: float = 4.0) -> Path:
    path.write_bytes(orjson.dumps(always(call_class, score)))
    return path
