"""Workloads that are mostly programs: coding agents, tasks that fan out, questions over long documents; and faults."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from random import Random
from typing import Any

from bench.mixes import words
from bench.mixes.flood import CHAT, ROW, flood
from bench.mixes.plan import MODEL, PROMISES, Call, Client, Fault, Workload
from bench.mixes.senders import Lengths, chats, client, poisson, rows
from bench.mixes.texts import AgentSession, document, fill, question, seed_for
from classifiers.api import CallClass


def _workload(name: str, seed: int, seconds: float, calls: Sequence[Call]) -> Workload:
    return Workload(
        name=name,
        seed=seed,
        seconds=seconds,
        calls=sorted((call for call in calls if call.at_s < seconds), key=lambda call: call.at_s),
    )


# --- coding agents


def coding_agents(seed: int, *, load: float = 1.0, seconds: float = 40.0) -> Workload:
    """Sessions with long histories: a tool answers in 0.3 s at the median and 14 s at the ninetieth percentile.

    Figures of TraceLab (arXiv 2606.30560): nine of ten hops follow a tool, the median hop adds 850 tokens.
    """
    chance = Random(f"coding agents {seed}")
    agents = [client(chance, f"agent-{number}") for number in range(5)]
    calls: list[Call] = []
    for number, at_s in enumerate(poisson(chance, 0.55 * load, seconds + 20.0, -20.0)):
        calls += _coding_session(chance, at_s, chance.choice(agents), f"session-{number}")
    people = [client(chance, f"person-{number}", browser=True) for number in range(6)]
    calls += chats(chance, poisson(chance, 1.0 * load, seconds), CHAT, people)
    return _workload("coding_agents", seed, seconds, [call for call in calls if call.at_s >= 0])


def _coding_session(chance: Random, at_s: float, sender: Client, name: str) -> Iterator[Call]:
    """Answers are taken to need a second and a half, so that the next hop comes when it would come."""
    session = AgentSession(chance)
    size = round(chance.lognormvariate(math.log(4_000), 0.5))
    answered: int | None = None
    for _ in range(chance.randint(3, 14)):
        session.extend(size, answered=answered)
        output = min(900, max(8, round(chance.lognormvariate(math.log(90), 0.8))))
        answered = seed_for(chance, output, calls_tool=True)
        yield _hop(at_s, sender, session, answered, name, stream=chance.random() < 0.4)
        if chance.random() < 0.11:
            at_s += 1.5 + chance.lognormvariate(math.log(30), 0.8)
        else:
            at_s += 1.5 + chance.lognormvariate(math.log(0.3), 2.95)
        size = min(28_000, session.tokens + round(chance.lognormvariate(math.log(850), 0.7)))


def _hop(at_s: float, sender: Client, session: AgentSession, seed: int, name: str, *, stream: bool) -> Call:
    body: dict[str, Any] = {"model": MODEL, "messages": session.messages, "tools": session.tools, "seed": seed}
    if stream:
        body["stream"] = True
    return _mixed(at_s, sender, body, name)


def _mixed(at_s: float, sender: Client, body: dict[str, Any], session: str = "") -> Call:
    promise = PROMISES[CallClass.MIXED]
    return Call(at_s=at_s, client=sender, body=body, label=CallClass.MIXED, promise=promise, session=session)


# --- tasks that fan out


def fan_out(seed: int, *, load: float = 1.0, seconds: float = 40.0) -> Workload:
    """Tasks of a planner, eight to sixteen workers at once and a summary, beside a few people and a slow job."""
    chance = Random(f"fan out {seed}")
    programs = [client(chance, f"program-{number}") for number in range(3)]
    calls: list[Call] = []
    for number, at_s in enumerate(poisson(chance, 0.22 * load, seconds)):
        calls += _task(chance, at_s, chance.choice(programs), f"task-{number}")
    people = [client(chance, f"person-{number}", browser=True) for number in range(5)]
    calls += chats(chance, poisson(chance, 1.0 * load, seconds), CHAT, people)
    calls += rows(chance, poisson(chance, 1.5 * load, seconds), ROW, client(chance, "job"))
    return _workload("fan_out", seed, seconds, calls)


def _task(chance: Random, at_s: float, sender: Client, name: str) -> Iterator[Call]:
    task = fill(chance, chance.choice(words.TASKS))
    yield _step(chance, at_s, sender, name, "Split the task into parts. Return a JSON list.", task, 120)
    parts_s = at_s + 3.0 + chance.expovariate(1.0)
    shared = document(chance, chance.randint(300, 900))
    for part in range(chance.randint(8, 16)):
        text = f"{task}\n\n{shared}\n\nYour part is number {part + 1}: {document(chance, chance.randint(100, 500))}"
        starts_s = parts_s + chance.uniform(0, 0.05)
        yield _step(chance, starts_s, sender, name, "Work on one part of a task. Be brief.", text, 80)
    end_s = parts_s + 5.0 + chance.expovariate(1.0)
    found = document(chance, chance.randint(800, 1_600))
    yield _step(chance, end_s, sender, name, "Put the results of all parts together.", f"{task}\n\n{found}", 160)


def _step(chance: Random, at_s: float, sender: Client, name: str, system: str, text: str, output: int) -> Call:
    length = max(8, round(chance.lognormvariate(math.log(output), 0.4)))
    messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
    body = {"model": MODEL, "messages": messages, "seed": seed_for(chance, length), "temperature": 0.2}
    return _mixed(at_s, sender, body, name)


# --- long documents


def documents(seed: int, *, load: float = 1.0, seconds: float = 40.0) -> Workload:
    """Steps over documents of 8,000 to 20,000 tokens, few of them asked for often (Zipf), beside people."""
    chance = Random(f"documents {seed}")
    shelf = [document(chance, chance.randint(8_000, 20_000)) for _ in range(12)]
    weights = list(accumulate(1 / (rank + 1) for rank in range(len(shelf))))
    programs = [client(chance, f"program-{number}") for number in range(4)]
    calls: list[Call] = []
    for at_s in poisson(chance, 0.7 * load, seconds):
        text = shelf[bisect.bisect(weights, chance.uniform(0, weights[-1]))]
        system = "Answer from the document only, and name the paragraph."
        asked = f"{text}\n\n{question(chance, chance.randint(15, 80))}"
        calls.append(_step(chance, at_s, chance.choice(programs), "", system, asked, 80))
    people = [client(chance, f"person-{number}", browser=True) for number in range(8)]
    calls += chats(chance, poisson(chance, 2.0 * load, seconds), CHAT, people)
    return _workload("documents", seed, seconds, calls)


# --- when things go wrong


def faults(seed: int, *, load: float = 1.0, seconds: float = 40.0) -> Workload:
    """The flood, smaller, while servers get slow, lose slots, stop telling and serve others past the router.

    In the second half answers are twice as long as they were.
    """
    made = flood(seed + 10_000, load=0.6 * load, seconds=seconds)
    chance = Random(f"faults {seed}")
    calls = [
        call if call.at_s < seconds / 2 or call.label is CallClass.THROUGHPUT else _longer(call) for call in made.calls
    ]
    stranger = client(chance, "stranger")
    for lane, rate in (("throughput", 1.0), ("latency", 0.3)):
        lengths = Lengths(prompt=600, output=100)
        times = [at_s for at_s in poisson(chance, rate * load, seconds) if at_s > seconds / 4]
        calls += [replace(call, direct=lane) for call in rows(chance, times, lengths, stranger)]
    return Workload(
        name="faults",
        seed=seed,
        seconds=seconds,
        calls=sorted(calls, key=lambda call: call.at_s),
        faults=(
            Fault(at_s=seconds * 0.25, lane="throughput", speed=0.5),
            Fault(at_s=seconds * 0.5, lane="throughput", speed=1.0, frozen=True),
            Fault(at_s=seconds * 0.55, lane="latency", sequences=2),
            Fault(at_s=seconds * 0.75, lane="throughput", frozen=False),
            Fault(at_s=seconds * 0.8, lane="latency", sequences=4),
        ),
    )


def _longer(call: Call) -> Call:
    return replace(call, body={**call.body, "seed": call.body["seed"] + call.asked.output_tokens})
