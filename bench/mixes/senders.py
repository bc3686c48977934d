"""Who sends: chats of people, hops of agents, rows of batch jobs. Each yields calls of one class as they arrive."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from bench.mixes import words
from bench.mixes.plan import MODEL, PROMISES, Call, Client
from bench.mixes.texts import AgentSession, conversation, document, seed_for
from classifiers.api import CallClass

_AGENTS = (
    "OpenAI/Python 2.8.0",
    "OpenAI/Python 1.99.1",
    "OpenAI/JS 6.9.1",
    "python-httpx/0.28.1",
    "Python/3.11 aiohttp/3.14.0",
    "node",
)
_BROWSERS = ("Mozilla/5.0 (X11; Linux x86_64) Chrome/141.0", "OpenAI/JS 6.9.1", "Zed/0.210.0", "Continue/1.3.0")

LIMITS = (None, None, 1024, 2048)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Log-normal lengths in tokens: medians and the sigmas of their logarithms."""

    prompt: float
    output: float
    prompt_sigma: float = 0.6
    output_sigma: float = 0.5
    most_prompt: int = 24_000
    most_output: int = 2_000

    def prompt_tokens(self, chance: Random) -> int:
        return _drawn(chance, self.prompt, self.prompt_sigma, 16, self.most_prompt)

    def output_tokens(self, chance: Random) -> int:
        return _drawn(chance, self.output, self.output_sigma, 4, self.most_output)


def _drawn(chance: Random, median: float, sigma: float, least: int, most: int) -> int:
    return min(most, max(least, round(chance.lognormvariate(math.log(median), sigma))))


def client(chance: Random, name: str, *, browser: bool = False, address: str | None = None) -> Client:
    """A program with an address, a key and the headers of a client library."""
    return Client(
        name=name,
        address=address or f"127.0.{chance.randint(1, 200)}.{chance.randint(1, 250)}",
        user_agent=chance.choice(_BROWSERS if browser else _AGENTS),
        key=f"sk-{chance.getrandbits(96):024x}",
    )


def poisson(chance: Random, rate_per_s: float, seconds: float, start_s: float = 0.0) -> Iterator[float]:
    at_s = start_s + chance.expovariate(rate_per_s)
    while at_s < start_s + seconds:
        yield at_s
        at_s += chance.expovariate(rate_per_s)


def _body(chance: Random, messages: Sequence[dict[str, Any]], output_tokens: int, **more: Any) -> dict[str, Any]:
    return {
        "model": MODEL,
        "messages": messages,
        "seed": seed_for(chance, output_tokens),
        **{key: value for key, value in more.items() if value is not None},
    }


def chats(
    chance: Random, arrivals: Iterable[float], lengths: Lengths, people: Sequence[Client], *, streamed: float = 1.0
) -> Iterator[Call]:
    """Questions and conversations of people who read along."""
    for at_s in arrivals:
        tokens, output = lengths.prompt_tokens(chance), lengths.output_tokens(chance)
        turns = chance.choice((0, 0, 1, 2, 3)) if tokens > 120 else 0
        stream = chance.random() < streamed
        body = _body(
            chance,
            conversation(chance, tokens, turns=turns),
            output,
            stream=stream or None,
            stream_options={"include_usage": True} if stream and chance.random() < 0.5 else None,
            temperature=chance.choice((None, 0.7, 1.0)),
            max_tokens=chance.choice(LIMITS),
        )
        yield _call(at_s, chance.choice(people), body, CallClass.TTFT)


def _call(at_s: float, sender: Client, body: dict[str, Any], label: CallClass, session: str = "") -> Call:
    return Call(at_s=at_s, client=sender, body=body, label=label, promise=PROMISES[label], session=session)


def hops(
    chance: Random,
    arrivals: Iterable[float],
    lengths: Lengths,
    agents: Sequence[Client],
    *,
    streamed: float = 0.3,
    least_gap_s: float = 2.5,
    most_hops: int = 12,
) -> Iterator[Call]:
    """Hops whose lengths are drawn, and each of which goes on with the longest session that is still shorter.

    Open loop: the next hop of a session comes whether the one before was answered or not, but not before `least_gap_s`.
    """
    running: list[tuple[AgentSession, Client, int, str]] = []
    started = 0
    for at_s in arrivals:
        tokens, output = lengths.prompt_tokens(chance), lengths.output_tokens(chance)
        running = [each for each in running if each[0].hops < most_hops and at_s - each[0].last_s < 60]
        fitting = [each for each in running if each[0].tokens < tokens - 60 and at_s - each[0].last_s >= least_gap_s]
        if fitting:
            entry = max(fitting, key=lambda each: each[0].tokens)
            running.remove(entry)
            session, sender, answered, name = entry
            session.extend(tokens, answered=answered)
        else:
            session, sender, name = AgentSession(chance), chance.choice(agents), f"agent-{started}"
            started += 1
            session.extend(tokens)
        final = session.hops >= 3 and chance.random() < 0.15
        seed = seed_for(chance, output, calls_tool=not final)
        body = _body(
            chance,
            session.messages,
            output,
            stream=(chance.random() < streamed) or None,
            tools=session.tools,
            temperature=chance.choice((None, 0.0)),
            max_tokens=chance.choice(LIMITS),
        )
        body["seed"] = seed
        session.hops += 1
        session.last_s = at_s
        if not final:
            running.append((session, sender, seed, name))
        yield _call(at_s, sender, body, CallClass.MIXED, name)


def rows(
    chance: Random,
    arrivals: Iterable[float],
    lengths: Lengths,
    sender: Client,
    *,
    streamed: float = 0.25,
    limit: int | None = 1024,
) -> Iterator[Call]:
    """Rows of one job: the same instruction, another document each."""
    job = chance.choice(words.JOBS)
    as_system = chance.random() < 0.5
    json_mode = {"type": "json_object"} if "JSON" in job and chance.random() < 0.7 else None
    for at_s in arrivals:
        tokens, output = lengths.prompt_tokens(chance), lengths.output_tokens(chance)
        text = document(chance, max(16, tokens - len(job) // 4))
        if as_system:
            messages = [{"role": "system", "content": job}, {"role": "user", "content": text}]
        else:
            messages = [{"role": "user", "content": f"{job}\n\n---\n{text}\n---"}]
        body = _body(
            chance,
            messages,
            output,
            stream=(chance.random() < streamed) or None,
            temperature=0.0,
            max_tokens=limit,
            response_format=json_mode,
        )
        yield _call(at_s, sender, body, CallClass.THROUGHPUT)
