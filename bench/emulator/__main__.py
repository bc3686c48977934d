"""`python -m bench.emulator --engine llamacpp --port 8090`: a server that takes its time and computes nothing.

It answers as llama.cpp or vLLM does, in the time that the modelled engine (`router.simulate`) takes. Four characters
are a token; prompts that begin alike share what is cached. `seed` modulo 100,000 is the length of the answer in tokens,
which `max_tokens` may cut; an odd number in front of it lets the answer call the first of the offered tools.
"""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

import typer
import uvloop

from bench.emulator.dialects import Dialect, LlamaCppDialect, VllmDialect
from bench.emulator.server import Connection, Emulator
from router.simulate.engine import SimulatedEngine
from router.simulate.pace import DESK, RACK, EngineSpec


class Engine(StrEnum):
    llamacpp = "llamacpp"
    vllm = "vllm"


async def serve(spec: EngineSpec, dialect: Dialect, *, port: int, model: str, closes_streams: bool) -> None:
    """On the loopback address, until SIGTERM or Ctrl-C."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    emulator = Emulator(SimulatedEngine(spec), dialect, model=model, closes_streams=closes_streams)
    server = await loop.create_server(lambda: Connection(emulator), "127.0.0.1", port, backlog=4096)
    await stop.wait()
    server.close()
    emulator.driver.close()


def main(
    engine: Annotated[Engine, typer.Option(help="Whose API and whose way of batching.")],
    port: Annotated[int, typer.Option()],
    slots: Annotated[
        int | None, typer.Option(help="Calls at once: slots, or sequences of vLLM. Default: 4, 64.")
    ] = None,
    speed: Annotated[float, typer.Option(help="Times as fast as the example hardware.")] = 1.0,
    model: Annotated[str, typer.Option(help="Name of the model.")] = "emulated",
    context: Annotated[int, typer.Option(help="Tokens of one call, prompt and answer.")] = 32_768,
    cache: Annotated[int, typer.Option(help="Tokens that vLLM's cache holds.")] = 262_144,
    priority: Annotated[bool, typer.Option("--priority", help="vLLM: lower `priority` first.")] = False,
    prompt_details: Annotated[bool, typer.Option("--prompt-details", help="vLLM: tell of cached tokens.")] = False,
    closes_streams: Annotated[bool, typer.Option("--closes-streams", help="Hang up after each stream.")] = False,
) -> None:
    """Serve an emulated engine on the loopback address."""
    made = DESK if engine is Engine.llamacpp else RACK
    spec = replace(
        made.at(speed),
        sequences=made.sequences if slots is None else slots,
        context_tokens=context,
        cache_tokens=cache,
        by_priority=priority,
    )
    dialect: Dialect = LlamaCppDialect() if engine is Engine.llamacpp else VllmDialect(prompt_details=prompt_details)
    uvloop.run(serve(spec, dialect, port=port, model=model, closes_streams=closes_streams))


if __name__ == "__main__":
    typer.run(main)
