"""Lines of a decision log as a router would have written them, of clients with habits of their own."""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from router import models

BEGIN_S = 1_800_000_000.0


def line(time_s: float = 0.0, **given: Any) -> dict[str, Any]:
    """One line; `time_s` is the arrival in seconds since the beginning of the log."""
    whole = {
        "format": 1,
        "time": datetime.fromtimestamp(BEGIN_S + time_s, UTC).isoformat(timespec="milliseconds"),
        "id": f"call-{time_s:g}",
        "client": "c1",
        "surface": "openai_chat",
        "stream": False,
        "max_tokens": None,
        "class": "throughput",
        "confidence": 0.6,
        "source": "model",
        "reasons": ["no_stream"],
        "why": [],
        "backend": "desk",
        "placement": "preferred_lane",
        "retries": 0,
        "shadow": None,
        "outcome": "completed",
        "status": 200,
        "decide_s": 0.0001,
        "queue_s": 0.0,
        "ttft_s": None,
        "tpot_s": None,
        "complete_s": 1.0,
        "prompt_tokens": 10,
        "cached_tokens": None,
        "output_tokens": 5,
        "left": "",
        "read_to_end": True,
        "stalls": 0,
        "slo_met": None,
        "vector": models.VECTOR,
        "features": {"last_chars": 100, "answered": 1},
        "arrival": None,
    }
    return {**whole, **given}


def tagged(call_class: str, time_s: float = 0.0, **given: Any) -> dict[str, Any]:
    said = {"class": call_class, "confidence": 1.0, "source": "header", "reasons": ["class_header"]}
    return line(time_s, **{**said, **given})


def traffic(count: int, clients: int = 9, seed: int = 1) -> list[dict[str, Any]]:
    """Tagged calls of three habits: talk that streams, hops with tools, rows that do not stream; some of each odd."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        client = chance.randrange(clients)
        call_class = ("ttft", "mixed", "throughput")[client % 3]
        looks = call_class if chance.random() > 0.05 else chance.choice(("ttft", "mixed", "throughput"))
        stream = looks == "ttft" or (looks == "mixed" and chance.random() < 0.3)
        features: dict[str, float] = {
            "last_chars": chance.randint(10, 400) * (4 if looks == "mixed" else 1),
            "answered": chance.randint(0, 1),
            "stream": int(stream),
            "tools": int(looks == "mixed"),
            "calls": 3,
        }
        arrival = {"calls": 3} if number > clients * 2 else {}
        numbers = {name: value for name, value in features.items() if value}
        found.append(
            tagged(call_class, float(number), client=f"c{client}", stream=stream, features=numbers, arrival=arrival)
        )
    return found


def write(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in lines))
    return path
