"""Tasks that take several calls, each of which waits for those before it.

Tool loops, fan-outs, and plans that are executed. A task is a list of steps that is drawn before it starts; what is
sent does not depend on what is answered, so that every router is given the same work. A step begins when all calls of
the one before have been answered and the program has done its own part, which takes `gap_s`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from bench.mixes import words
from bench.mixes.flood import CHAT
from bench.mixes.plan import MODEL, PROMISES, Call, Client
from bench.mixes.senders import Lengths, chats, client, poisson, rows
from bench.mixes.texts import AgentSession, document, fill, seed_for
from classifiers.api import CallClass

_STEP_S: Final = 1.0
_TOKEN_S: Final = 0.025
"""What a task is promised: this for each step and for each token on its way, and the program's own time."""
_ROW: Final = Lengths(prompt=1_500, output=150, prompt_sigma=0.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Calls that are sent at once."""

    gap_s: float
    """Since the end of the step before."""
    bodies: Sequence[Mapping[str, Any]]
    final: bool = False
    """Somebody reads the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    name: str
    kind: str
    at_s: float
    sender: Client
    steps: Sequence[Step]

    @property
    def promise_s(self) -> float:
        """From its start to its end. A step counts with its longest answer."""
        tokens = sum(max(_tokens(body) for body in step.bodies) for step in self.steps)
        own_s = sum(step.gap_s for step in self.steps)
        return own_s + _STEP_S * len(self.steps) + _TOKEN_S * tokens

    def calls(self, number: int, now_s: float, *, tagged: bool) -> list[Call]:
        """Those of one step, when it comes at `now_s`."""
        step = self.steps[number]
        sender = replace(self.sender, headers=self._tags(number)) if tagged else self.sender
        label = CallClass.TTFT if step.final else CallClass.MIXED
        return [
            Call(
                at_s=now_s, client=sender, body=body, label=label, promise=PROMISES[CallClass.MIXED], session=self.name
            )
            for body in step.bodies
        ]

    def _tags(self, number: int) -> Mapping[str, str]:
        return {
            "x-twolane-pipeline": self.name,
            "x-twolane-hop": "final" if self.steps[number].final else "internal",
            "x-twolane-hops-left": str(len(self.steps) - number - 1),
            "x-twolane-deadline-ms": f"{1000 * self.promise_s:.0f}",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Tasks, and the calls beside them that come whatever becomes of others."""

    name: str
    seed: int
    seconds: float
    tasks: Sequence[Task]
    calls: Sequence[Call]


def _tokens(body: Mapping[str, Any]) -> int:
    seed: int = body["seed"]
    return seed % 100_000


def _length(chance: Random, median: float, sigma: float = 0.6) -> int:
    return min(900, max(8, round(chance.lognormvariate(math.log(median), sigma))))


def _gap_s(chance: Random, median_s: float, sigma: float) -> float:
    return min(20.0, chance.lognormvariate(math.log(median_s), sigma))


# --- what tasks look like


def tool_loop(chance: Random) -> Iterator[Step]:
    """An agent that calls one tool after the other; the last answer is for a person, and streamed."""
    session = AgentSession(chance)
    size = round(chance.lognormvariate(math.log(3_000), 0.5))
    hops = chance.randint(4, 12)
    answered: int | None = None
    for hop in range(hops):
        session.extend(size, answered=answered)
        last = hop == hops - 1
        answered = seed_for(chance, _length(chance, 160 if last else 80), calls_tool=not last)
        body = {"model": MODEL, "messages": session.messages, "tools": session.tools, "seed": answered}
        if last:
            body["stream"] = True
        # Median and spread of tools as in TraceLab (arXiv 2606.30560), its slowest ones left out.
        yield Step(gap_s=0.0 if not hop else _gap_s(chance, 0.3, 1.6), bodies=[body], final=last)
        size = min(20_000, session.tokens + round(chance.lognormvariate(math.log(700), 0.7)))


def fan_out(chance: Random) -> Iterator[Step]:
    """A planner, eight to sixteen workers at once, and one who puts their results together; nothing is streamed."""
    task = fill(chance, chance.choice(words.TASKS))
    shared = document(chance, chance.randint(300, 900))
    yield Step(gap_s=0.0, bodies=[_step(chance, "Split the task into parts. Return a JSON list.", task, 100)])
    texts = [
        f"{task}\n\n{shared}\n\nYour part is number {part + 1}: {document(chance, chance.randint(100, 500))}"
        for part in range(chance.randint(8, 16))
    ]
    parts = [_step(chance, "Work on one part of a task. Be brief.", text, 80) for text in texts]
    yield Step(gap_s=_gap_s(chance, 0.05, 0.5), bodies=parts)
    found = f"{task}\n\n{document(chance, chance.randint(800, 1_600))}"
    join = _step(chance, "Put the results of all parts together.", found, 160)
    yield Step(gap_s=_gap_s(chance, 0.05, 0.5), bodies=[join])


def plan_execute(chance: Random) -> Iterator[Step]:
    """A plan, some steps each of which knows what the ones before found, and a streamed answer."""
    task = fill(chance, chance.choice(words.TASKS))
    yield Step(gap_s=0.0, bodies=[_step(chance, "Make a plan. Return a JSON list.", task, 120)])
    found = task
    for _ in range(chance.randint(3, 6)):
        found += "\n\n" + document(chance, chance.randint(150, 500))
        body = _step(chance, "Do the next step of the plan.", found, 110)
        yield Step(gap_s=_gap_s(chance, 0.2, 1.2), bodies=[body])
    final = {**_step(chance, "Answer the user.", found, 250), "stream": True}
    yield Step(gap_s=_gap_s(chance, 0.05, 0.5), bodies=[final], final=True)


def _step(chance: Random, system: str, text: str, output: int) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
    return {"model": MODEL, "messages": messages, "seed": seed_for(chance, _length(chance, output, 0.4))}


KINDS: Mapping[str, Callable[[Random], Iterator[Step]]] = {
    "tool_loop": tool_loop,
    "fan_out": fan_out,
    "plan_execute": plan_execute,
}


# --- mixes


def mix(
    name: str, seed: int, *, load: float = 1.0, seconds: float = 60.0, rates: Mapping[str, float] | None = None
) -> Mix:
    """`rates`: tasks a second by kind; those of `MIXES` where none are given. `load` multiplies all rates."""
    chance = Random(f"{name} {seed}")
    programs = [client(chance, f"program-{number}") for number in range(8)]
    tasks = [
        Task(
            name=f"{kind}-{number}",
            kind=kind,
            at_s=at_s,
            sender=chance.choice(programs),
            steps=list(KINDS[kind](chance)),
        )
        for kind, rate in (rates or MIXES[name]).items()
        for number, at_s in enumerate(poisson(chance, rate * load, seconds))
    ]
    people = [client(chance, f"person-{number}", browser=True) for number in range(8)]
    calls = list(chats(chance, poisson(chance, 1.5 * load, seconds), CHAT, people))
    job = client(chance, "job")
    lumps = [lump_s + chance.uniform(0, 0.5) for lump_s in range(5, int(seconds), 20) for _ in range(round(50 * load))]
    calls += rows(chance, sorted(lumps), _ROW, job)
    return Mix(
        name=name,
        seed=seed,
        seconds=seconds,
        tasks=sorted(tasks, key=lambda task: task.at_s),
        calls=sorted(calls, key=lambda call: call.at_s),
    )


MIXES: Mapping[str, Mapping[str, float]] = {
    "tool_loops": {"tool_loop": 0.5},
    "fan_outs": {"fan_out": 0.3},
    "plans": {"plan_execute": 0.7},
    "all_kinds": {"tool_loop": 0.2, "fan_out": 0.1, "plan_execute": 0.25},
}
