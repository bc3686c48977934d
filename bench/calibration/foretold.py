"""`python -m bench.calibration.foretold`: how far the router's predictions are off, and how soon they are good.

A real server is started and the router in front of it, which knows nothing of that server but its kind. Calls of many
sizes come, a few at a time, half of them streamed; what was predicted of each when it was sent is read from the
decision log and held against what it saw. Without a vLLM (`TWOLANE_VLLM_PYTHON`) there is only llama.cpp.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random
from statistics import median
from typing import Annotated, Any

import aiohttp
import orjson
import typer
from rich.console import Console
from rich.table import Table

from bench import model_maker
from bench.calibration.client import NotMeasured, prompt
from bench.results import percentile
from bench.servers.engines import EngineServer, LlamaCppServer, VllmServer
from bench.servers.router import RouterProcess

TIMES = ("ttft_s", "tpot_s", "complete_s")
GROUPS = ((0, 5), (5, 10), (10, 20), (20, 40), (40, 80), (80, 160))
"""Calls, in the order of their end, that are looked at together."""
_WRITTEN_WITHIN_S = 10.0


class Kind(StrEnum):
    LLAMACPP = "llamacpp"
    VLLM = "vllm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The calls of one run."""

    calls: int = 80
    at_once: int = 3
    most_words: int = 400
    most_tokens: int = 96
    seed: int = 0


def started(kind: Kind, stack: ExitStack, *, size: str, slots: int) -> EngineServer:
    files = model_maker.cached(size)
    if kind is Kind.LLAMACPP:
        return stack.enter_context(LlamaCppServer(files.gguf, slots=slots, ctx=4096))
    return stack.enter_context(VllmServer(files.hf, max_seqs=slots, ctx=4096))


def lines_of(server: EngineServer, load: Load, folder: Path) -> list[dict[str, Any]]:
    """The decision log of a router that is new to this server, in front of which these calls were made."""
    log = folder / "decisions.jsonl"
    settings = {"backends": [{"name": "server", "url": server.url}], "decisions": {"file": str(log)}}
    with RouterProcess(settings, folder=folder) as router:
        asyncio.run(_call(router.url, server.name, load))
        until_s = time.monotonic() + _WRITTEN_WITHIN_S
        while True:
            lines = [orjson.loads(line) for line in log.read_bytes().splitlines()] if log.exists() else []
            if len(lines) >= load.calls or time.monotonic() > until_s:
                return lines
            time.sleep(0.1)


async def _call(url: str, model: str, load: Load) -> None:
    chance = Random(load.seed)
    bodies = [_body(chance, model, load) for _ in range(load.calls)]
    waiting = iter(bodies)

    async def client(session: aiohttp.ClientSession) -> None:
        for body in waiting:
            async with session.post(f"{url}/v1/chat/completions", json=body) as response:
                answer = await response.read()
                if response.status != 200:
                    raise NotMeasured(f"status {response.status}: {answer[:200]!r}")

    async with aiohttp.ClientSession() as session:
        await asyncio.gather(*(client(session) for _ in range(load.at_once)))


def _body(chance: Random, model: str, load: Load) -> dict[str, Any]:
    words = round(math.exp(chance.uniform(math.log(8), math.log(load.most_words))))
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": prompt(chance, words)}],
        "max_tokens": chance.randint(8, load.most_tokens),
        "temperature": 0,
    }
    return {**body, "stream": True, "stream_options": {"include_usage": True}} if chance.random() < 0.5 else body


def ratios(lines: Iterable[Mapping[str, Any]], time_: str) -> list[float]:
    """Seen over predicted, of the calls of which both are known."""
    found = []
    for line in lines:
        foretold, seen = (line["predicted"] or {}).get(time_), line[time_]
        if foretold and seen:
            found.append(seen / foretold)
    return found


def off_by(found: Sequence[float]) -> float:
    """Median of how many times too long or too short: 1.0 is exact."""
    return math.exp(median(abs(math.log(ratio)) for ratio in found))


def main(
    engine: Annotated[Kind, typer.Option()] = Kind.LLAMACPP,
    slots: Annotated[int, typer.Option(help="Calls at once in the server.")] = 4,
    size: Annotated[str, typer.Option(help="Of the random-weight model.")] = "tiny",
    calls: Annotated[int, typer.Option()] = 160,
    at_once: Annotated[int, typer.Option(help="Clients that call one after another.")] = 3,
    seed: Annotated[int, typer.Option()] = 0,
) -> None:
    """Say how far predictions are off, from the first call on."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = started(engine, stack, size=size, slots=slots)
        lines = lines_of(server, Load(calls=calls, at_once=at_once, seed=seed), folder)
    table = Table("calls", *(f"{time_}: off by, p90 of seen/predicted" for time_ in TIMES))
    for since, until in GROUPS:
        if since < len(lines):
            table.add_row(f"{since + 1}-{until}", *(_cell(ratios(lines[since:until], time_)) for time_ in TIMES))
    Console().print(table)


def _cell(found: Sequence[float]) -> str:
    return f"x{off_by(found):.2f}, {percentile(found, 0.9):.2f}  ({len(found)})" if found else "-"


if __name__ == "__main__":
    typer.run(main)
