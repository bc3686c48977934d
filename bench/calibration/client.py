"""Measuring one server from outside: when the tokens of a completion come."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import aiohttp
import orjson

from bench.calibration.own_clock import Watch
from bench.random_llama.recipe import WORDS_FILE

_PROMPT = re.compile(rb'"prompt_tokens":\s*(\d+)')
_OUTPUT = re.compile(rb'"completion_tokens":\s*(\d+)')
_TEXT = re.compile(rb'"text":\s*"((?:[^"\\]|\\.)+)"')


class NotMeasured(Exception):
    """The server did not do what was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One completion to ask for. `prompt` is new to the server, so that nothing of it is cached."""

    at_s: float
    prompt: str
    output_tokens: int


@dataclass(slots=True)
class Seen:
    """One completion as it came. Times in seconds since the measurement began."""

    sent_s: float
    prompt_tokens: int = 0
    tokens_s: list[float] = field(default_factory=list)
    """When each token came; of those that came in one chunk all at once."""
    output_tokens: int = 0
    """As the server counts them."""

    @property
    def first_s(self) -> float:
        return self.tokens_s[0] - self.sent_s

    @property
    def whole_s(self) -> float:
        return self.tokens_s[-1] - self.sent_s

    @property
    def gap_s(self) -> float:
        """Mean between tokens."""
        return (self.tokens_s[-1] - self.tokens_s[0]) / max(1, self.output_tokens - 1)


def prompt(chance: Random, words: int) -> str:
    """So many words of the random-weight model's own vocabulary, each a token or two for others."""
    vocabulary = WORDS_FILE.read_text(encoding="utf-8").split()
    return "".join(f" {chance.choice(vocabulary)}" for _ in range(words))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """All completions of one measurement, twice."""

    seen: list[Seen]
    by_its_clock: list[Seen]
    """On the server's own clock, which stands still while it waits for a processor."""
    stood_still_0_1: float
    """Share of the time in which that clock did."""


async def ask(url: str, model: str, wanted: Iterable[Wanted], pid: int | None = None) -> Asked:
    """All completions, each when its time has come by the clock of the server with this `pid`; None: it has none.

    Raises `NotMeasured`.
    """
    loop = asyncio.get_running_loop()
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session, Watch(pid) as watch:
        began_s = loop.time() + 0.02
        seen = await asyncio.gather(*(_one(session, url, model, each, began_s, watch) for each in wanted))
    clock = watch.clock
    return Asked(
        seen=seen,
        by_its_clock=[
            Seen(
                clock.read(began_s + each.sent_s) - began_s,
                each.prompt_tokens,
                [clock.read(began_s + token_s) - began_s for token_s in each.tokens_s],
                each.output_tokens,
            )
            for each in seen
        ],
        stood_still_0_1=clock.stood_still_0_1,
    )


async def _one(
    session: aiohttp.ClientSession, url: str, model: str, wanted: Wanted, began_s: float, watch: Watch
) -> Seen:
    loop = asyncio.get_running_loop()
    await watch.sleep_until(began_s + wanted.at_s)
    body: dict[str, Any] = {
        "model": model,
        "prompt": wanted.prompt,
        "max_tokens": wanted.output_tokens,
        "temperature": 0,
        "stream": True,
        "ignore_eos": True,
        "stream_options": {"include_usage": True},
    }
    seen = Seen(loop.time() - began_s)
    async with session.post(f"{url}/v1/completions", data=orjson.dumps(body), headers=_JSON) as response:
        if response.status != 200:
            raise NotMeasured(f"status {response.status}: {(await response.read())[:200]!r}")
        async for line in response.content:
            if text := _TEXT.search(line):
                # A server that has no time to send puts several tokens in a chunk: words, of the random-weight model.
                seen.tokens_s += [loop.time() - began_s] * max(1, text[1].count(b" "))
            if found := _PROMPT.search(line):
                seen.prompt_tokens = int(found[1])
            if found := _OUTPUT.search(line):
                seen.output_tokens = int(found[1])
    if not (seen.tokens_s and seen.prompt_tokens and seen.output_tokens):
        raise NotMeasured("a stream without tokens or without usage")
    return seen


_JSON = {"Content-Type": "application/json"}
