"""Decision logs that were never written by a router: a modelled backend with a known pace stands behind them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import orjson

from router.simulate.engine import SimulatedEngine
from router.simulate.pace import DESK, EngineSpec, Pace

BEGAN_S = 1_700_000_000.0
SLOW = replace(DESK, pace=Pace(step_s=0.03, sequence_s=0.004, prefill_tokens_per_s=2_000, step_tokens=512), sequences=3)
"""Unlike any usual pace."""
SETTINGS = """
backends:
  - {name: desk, url: "http://127.0.0.1:1"}
classes:
  ttft: {slo: {ttft: 2s, tpot: 100ms}, max_wait: 60s}
"""


def line(at_s: float = 0.0, **more: Any) -> dict[str, Any]:
    """A chat call that was served at once."""
    return {
        "format": 1,
        "time": datetime.fromtimestamp(BEGAN_S + at_s, UTC).isoformat(timespec="milliseconds"),
        "id": "x",
        "client": "00112233aabbccdd",
        "model": None,
        "session": None,
        "surface": "openai_chat",
        "asked": {"prompt_tokens": 110, "turns": 1},
        "stream": True,
        "max_tokens": None,
        "class": "ttft",
        "confidence": 0.9,
        "source": "model",
        "reasons": ["stream"],
        "backend": "desk",
        "server": {"engine": "llamacpp", "slots": 3, "cap": 3, "context_tokens": 8192},
        "placement": "free",
        "retries": 0,
        "expected": {"p50_tokens": 40, "p90_tokens": 90, "seen": 3},
        "outcome": "completed",
        "status": 200,
        "decide_s": 0.0,
        "queue_s": 0.0,
        "ttft_s": 0.1,
        "tpot_s": 0.03,
        "complete_s": 1.0,
        "prompt_tokens": 100,
        "cached_tokens": 0,
        "output_tokens": 31,
        "left": "",
        **more,
    }


def served_by(spec: EngineSpec, count: int, *, per_s: float = 1.0, seed: int = 1) -> list[dict[str, Any]]:
    """Lines of calls that arrived at random and went straight to one engine."""
    chance, engine, at_s = Random(seed), SimulatedEngine(spec), 0.0
    calls = []
    for _ in range(count):
        at_s = round(at_s + chance.expovariate(per_s), 3)
        prompt, output = chance.randint(50, 1_500), chance.randint(5, 80)
        calls.append(engine.submit(at_s, prompt_tokens=prompt, output_tokens=output))
    while engine.next_s() < math.inf:
        engine.run(engine.next_s())
    return [_served(call) for call in calls]


def _served(call: Any) -> dict[str, Any]:
    at_s = call.submitted_s
    first_s, whole_s = call.first_s - at_s, call.end_s - at_s
    return line(
        at_s,
        asked={"prompt_tokens": call.prompt_tokens, "turns": 1},
        prompt_tokens=call.prompt_tokens,
        output_tokens=call.output_tokens,
        ttft_s=first_s,
        tpot_s=(whole_s - first_s) / (call.output_tokens - 1),
        complete_s=whole_s,
    )


def write(path: Path, lines: Iterable[dict[str, Any] | bytes]) -> Path:
    path.write_bytes(b"".join(each if isinstance(each, bytes) else orjson.dumps(each) + b"\n" for each in lines))
    return path
