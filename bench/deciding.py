"""`python -m bench.deciding`: what a decision costs, from the bytes of a call to its verdict.

One process, no sockets. In every round each step is timed right after the others, so that a machine that slows down
over the run leaves the ratios as they are; the reading of the body by `orjson.loads` alone is the yardstick.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from bench import report
from bench.bodies import PATH, chat_body
from bench.results import Finding, Summary, summarise
from bench.servers.process import ROOT
from classifiers.chain import Chain
from classifiers.judged import Judged
from classifiers.learned import Learned
from router import models
from router.surfaces import find, read_call

DEFAULT_JSON = ROOT / ".cache" / "bench" / "deciding.json"
SIZES: Mapping[str, int] = {"1 KB": 1024, "8 KB": 8 * 1024, "200 KB": 200 * 1024, "1 MB": 1024 * 1024}
STEPS = ("parse", "read", "vector", "learned", "classify", "decide")
WORDS = {
    "parse": "orjson.loads",
    "read": "body to features",
    "vector": "features to numbers",
    "learned": "numbers to class and reasons",
    "classify": "features to verdict",
    "decide": "body to verdict",
}
ROUNDS = 25
ROUND_S = 0.004
"""How long one step is repeated in one round."""
SHORTEST = 3
"""Repetitions in a round, however long they take."""
HEADERS = {
    "user-agent": "OpenAI/Python 2.8.0",
    "content-type": "application/json",
    "x-stainless-lang": "python",
    "x-stainless-retry-count": "0",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The median of a step, for every kind of call of that size."""

    step: str
    size: str
    limit_us: float


GOALS = (
    Goal(step="decide", size="8 KB", limit_us=150.0),
    Goal(step="decide", size="200 KB", limit_us=1000.0),
    *(Goal(step="learned", size=size, limit_us=30.0) for size in SIZES),
)


@dataclass(slots=True, kw_only=True)
class Case:
    """One kind of call of one size, and microseconds of each step in each round."""

    kind: str
    size: str
    body_bytes: int
    us: dict[str, list[float]] = field(default_factory=dict)

    def summary(self, step: str) -> Summary:
        return summarise(self.us[step])

    def ratio(self, step: str) -> float:
        """To `orjson.loads` of the same body: the median over the rounds."""
        return median(mine / base for mine, base in zip(self.us[step], self.us["parse"], strict=True))


def prompt_body(size_bytes: int) -> bytes:
    """One message, as a job sends it: an instruction, then records."""
    head = "Extract name, city and amount of each record as JSON.\n\n"
    return _filled(lambda text: {"messages": [{"role": "user", "content": head + text}]}, size_bytes, "Ann; Bonn; 17\n")


def agent_body(size_bytes: int) -> bytes:
    """A loop of tool calls in the middle of its work, with ten tools; a dozen messages in 8 KB, as many as nine of ten
    recorded calls of agents have at most.
    """
    parameters = {"type": "object", "properties": {"path": {"type": "string"}, "line": {"type": "integer"}}}
    tools = [
        {"type": "function", "function": {"name": f"tool_{number}", "description": "d", "parameters": parameters}}
        for number in range(3 if size_bytes < 4096 else 10)
    ]
    call = {"id": "c", "type": "function", "function": {"name": "tool_1", "arguments": '{"path": "a.py"}'}}

    def body(text: str) -> dict[str, Any]:
        hops = max(1, min(20, len(text) // 1000))
        share = len(text) // hops
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "You are an agent."},
            {"role": "user", "content": "Mend the failing test."},
        ]
        for hop in range(hops):
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": "c", "content": text[hop * share : (hop + 1) * share]})
        return {"messages": messages, "tools": tools}

    return _filled(body, size_bytes, "    return value[index] + 1  # off by one\n")


def wide_body(size_bytes: int) -> bytes:
    """Beyond ASCII, where each look at a text costs most."""
    return _filled(
        lambda text: {"messages": [{"role": "user", "content": text}], "stream": True},
        size_bytes,
        "Почему так? 天空。 ",
    )


def _filled(body: Callable[[str], dict[str, Any]], size_bytes: int, piece: str) -> bytes:
    """At most that long, by no more than what a few pieces take."""
    count = size_bytes // len(piece.encode()) + 1
    while len(raw := orjson.dumps({"model": "bench-model", **body(piece * count)})) > size_bytes and count > 1:
        count -= max(1, (len(raw) - size_bytes) // (2 * len(piece.encode())))
    return raw


KINDS: Mapping[str, Callable[[int], bytes]] = {
    "chat": lambda size_bytes: chat_body(size_bytes, stream=True, max_tokens=256),
    "prompt": prompt_body,
    "agent": agent_body,
    "wide": wide_body,
}


def measure(model: Learned, sizes: Sequence[str], rounds: int) -> list[Case]:
    judged = Judged(model, models.vector_of)
    chain, route = Chain(judged=judged), find("POST", PATH)
    cases = []
    for size in sizes:
        for kind, make in KINDS.items():
            body = make(SIZES[size])
            cases.append(case := Case(kind=kind, size=size, body_bytes=len(body)))
            features = read_call(route, body, HEADERS)
            vector = models.vector_of(features)
            steps: dict[str, Callable[[], object]] = {
                "parse": lambda body=body: orjson.loads(body),  # type: ignore[misc]
                "read": lambda body=body: read_call(route, body, HEADERS),  # type: ignore[misc]
                "vector": lambda features=features: models.vector_of(features),  # type: ignore[misc]
                "learned": lambda vector=vector: _learned(model, vector),  # type: ignore[misc]
                "classify": lambda features=features: chain.classify(features),  # type: ignore[misc]
                "decide": lambda body=body: chain.classify(read_call(route, body, HEADERS)),  # type: ignore[misc]
            }
            for _ in range(rounds):
                for name, step in steps.items():
                    case.us.setdefault(name, []).append(_timed_us(step))
    return cases


def _learned(model: Learned, vector: Sequence[float]) -> tuple[str, ...]:
    judgement = model.look(vector)
    return judgement.reasons(judgement.place)


def _timed_us(step: Callable[[], object]) -> float:
    """Mean of one round: CPU time, so that others on the machine are not counted."""
    count, started_s = 0, time.process_time()
    while (spent_s := time.process_time() - started_s) < ROUND_S or count < SHORTEST:
        step()
        count += 1
    return spent_s / count * 1e6


def findings(cases: Sequence[Case], goals: Sequence[Goal] = GOALS) -> list[Finding]:
    """A goal is measured by the dearest kind of call."""
    found = []
    for goal in goals:
        medians = [case.summary(goal.step).median for case in cases if case.size == goal.size]
        worst = max(medians, default=None)
        found.append(
            Finding(
                words=f"{WORDS[goal.step]} <= {goal.limit_us:g} us at {goal.size}",
                limit=goal.limit_us,
                measured=worst,
                holds=None if worst is None else worst <= goal.limit_us,
            )
        )
    return found


def show(cases: Sequence[Case], found: Sequence[Finding], console: Console) -> None:
    table = Table(title="Deciding: median CPU us (x orjson.loads)", title_justify="left")
    for heading in ("body", "call", *(WORDS[step] for step in STEPS)):
        table.add_column(heading, justify="left" if heading in ("body", "call") else "right")
    for case in cases:
        cells = [f"{case.summary(step).median:.1f} ({case.ratio(step):.2f}x)" for step in STEPS]
        table.add_row(case.size, case.kind, *cells)
    console.print(table)
    for finding in found:
        word = {True: "holds", False: "does not hold", None: "not measured"}[finding.holds]
        measured = "" if finding.measured is None else f" (measured: {finding.measured:.3g})"
        console.print(f"{word} {finding.words}{measured}")


def as_json(cases: Sequence[Case], found: Sequence[Finding], facts: Mapping[str, object]) -> bytes:
    """`facts`: date, command, machine and model."""
    return json.dumps(
        {
            **facts,
            "goals": [asdict(finding) for finding in found],
            "cases": [
                {
                    "call": case.kind,
                    "size": case.size,
                    "body_bytes": case.body_bytes,
                    "steps": {
                        step: {**asdict(case.summary(step)), "ratio_to_orjson_loads": case.ratio(step)}
                        for step in STEPS
                    },
                }
                for case in cases
            ],
        },
        indent=1,
    ).encode()


def deciding(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rounds.")] = False,
    model: Annotated[Path | None, typer.Option(metavar="PATH", help="A model; default: the built-in one.")] = None,
    json_path: Annotated[Path, typer.Option("--json", metavar="PATH", help="Where the whole run goes.")] = DEFAULT_JSON,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 where a goal is missed.")] = False,
) -> None:
    """Measure what a decision costs for calls of 1 KB to 1 MB."""
    learned = models.builtin() if model is None else models.parsed(model.read_bytes())
    if learned is None:
        raise typer.BadParameter("this version has no built-in model; name one", param_hint="--model")
    at, load = datetime.now(UTC), os.getloadavg()[0]
    cases = measure(learned, tuple(SIZES), ROUNDS // 4 if quick else ROUNDS)
    found = findings(cases)
    facts = {
        "date": at.isoformat(timespec="seconds"),
        "command": shlex.join(["python", "-m", "bench.deciding", *sys.argv[1:]]),
        "machine": report.machine(),
        "load_average_before": load,
        "model": learned.version,
    }
    json_path.parent.mkdir(parents=True, exist_ok=True)
    json_path.write_bytes(as_json(cases, found, facts))
    console = Console()
    if not console.is_terminal:
        console.width = report.NARROWEST
    show(cases, found, console)
    console.print(f"All figures: {json_path}")
    if check and report.failed(found):
        raise typer.Exit(1)


def main() -> None:
    typer.run(deciding)


if __name__ == "__main__":
    main()
