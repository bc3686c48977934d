"""Tasks over HTTP: emulated or real servers, any router of `bench.goodput.routers` in front of them.

    python -m bench.pipelines.stage --only twolane,cache_aware    the emulated fleet
    python -m bench.pipelines.stage --real --only twolane         llama.cpp and vLLM with a random-weight model

Twolane is run three times: with tags, without, and without looking for tasks, which shows what these cost the chats
beside them. Routers take turns with each seed, so that what else the machine does meets all of them.

Each step of a task is sent a twentieth of a second after it could have been, for every router alike.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple

import orjson
import typer
import uvloop
from rich.console import Console

from bench import report
from bench.emulator.reading import SEED_UNIT
from bench.goodput import real
from bench.goodput.__main__ import select
from bench.goodput.routers import Router, twolane_router
from bench.goodput.send import Outcome, send
from bench.goodput.stage import emulator, standing
from bench.mixes.plan import Call, Workload
from bench.peers import Missing
from bench.pipelines.__main__ import cells, figures, table_of, tags_alone
from bench.pipelines.tasks import MIXES, Mix, mix
from bench.pipelines.virtual import Ran, Result
from bench.servers.process import ROOT, ServerFailed

_CHARS = 1_200
"""Of each message that a small model is sent."""
DEFAULT_JSON = ROOT / ".cache" / "bench" / "pipelines-http.json"


def _workload(made: Mix, calls: Sequence[Call]) -> Workload:
    return Workload(name=made.name, seed=made.seed, seconds=made.seconds, calls=calls)


async def play(made: Mix, router: Router, port: int, *, tagged: bool) -> Result:
    """All tasks and the calls beside them."""
    ran = [Ran(task) for task in made.tasks]
    beside = asyncio.ensure_future(send(_workload(made, made.calls), port, router.label))
    await asyncio.gather(*(_task(made, each, router, port, tagged=tagged) for each in ran))
    return Result(ran, list(await beside))


async def _task(made: Mix, ran: Ran, router: Router, port: int, *, tagged: bool) -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(ran.task.at_s)
    began_s = loop.time()
    for number, step in enumerate(ran.task.steps):
        await asyncio.sleep(step.gap_s)
        ran.step = number
        calls = ran.task.calls(number, 0.0, tagged=tagged)
        ran.calls += len(calls)
        outcomes: Sequence[Outcome] = await send(_workload(made, calls), port, router.label)
        if step.final:
            ran.final_s = outcomes[-1].first_s
        if not all(outcome.complete for outcome in outcomes):
            ran.failed = True
            return
    ran.end_s = loop.time() - began_s


def for_real(made: Mix) -> Mix:
    """What a small model without sense can be asked for: short plain text, and answers of a given length."""

    def body(given: Mapping[str, Any]) -> dict[str, Any]:
        fields = {key: value for key, value in given.items() if key not in ("tools", "response_format")}
        messages = [{**message, "content": message["content"][:_CHARS]} for message in given["messages"]]
        return {**fields, "messages": messages, "max_tokens": max(4, given["seed"] % SEED_UNIT // 4), "temperature": 0}

    kept = [task for task in made.tasks if task.kind != "tool_loop"]
    return _with_bodies(replace(made, tasks=kept), body)


def begun(made: Mix, number: int) -> Mix:
    """The same, with prompts that begin with a number: no router finds the caches that the one before has filled."""

    def body(given: Mapping[str, Any]) -> dict[str, Any]:
        first, *others = given["messages"]
        return {**given, "messages": [{**first, "content": f"{number:04d} {first['content']}"}, *others]}

    return _with_bodies(made, body)


def _with_bodies(made: Mix, body: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Mix:
    tasks = [
        replace(task, steps=[replace(step, bodies=[body(each) for each in step.bodies]) for step in task.steps])
        for task in made.tasks
    ]
    return replace(made, tasks=tasks, calls=[replace(call, body=body(call.body)) for call in made.calls])


@contextmanager
def emulated() -> Iterator[Mapping[str, str]]:
    """URLs of the two servers."""
    with TemporaryDirectory(prefix="twolane-pipelines-") as name, ExitStack() as stack:
        desk = stack.enter_context(emulator("llamacpp", (), Path(name) / "desk.log"))
        rack = stack.enter_context(emulator("vllm", (), Path(name) / "rack.log"))
        yield {"desk": desk, "rack": rack}


class Variant(NamedTuple):
    """A router, and whether programs tag their calls."""

    name: str
    router: Router
    tagged: bool = False


def variants(only: str) -> list[Variant]:
    """Raises `ValueError`."""
    found = []
    for router in select(only):
        found.append(Variant(router.name, router))
        if router.name == "twolane":
            found.append(Variant("twolane tagged", router, tagged=True))
            found.append(Variant("twolane, tasks off", twolane_router("twolane, tasks off", tags_alone)))
    return found


def measured(urls: Mapping[str, str], variant: Variant, made: Mix) -> Result:
    """Raises `Missing` or `ServerFailed`."""
    with (
        TemporaryDirectory(prefix="twolane-pipelines-") as folder,
        standing(urls["desk"], urls["rack"], variant.router, Path(folder)) as (place, _),
    ):
        return uvloop.run(play(made, variant.router, place.port, tagged=variant.tagged))


def _all_of(
    among: Sequence[Variant], mixes: Sequence[Mix], shared: Mapping[str, str] | None, told: Console
) -> dict[str, list[tuple[Mix, Result]]]:
    """What became of each mix with each of them. Those that cannot be run are said and left out."""
    found: dict[str, list[tuple[Mix, Result]]] = {variant.name: [] for variant in among}
    for mixed in mixes:
        for number, variant in enumerate(among):
            made = mixed if shared is None else begun(mixed, 100 * mixed.seed + number)
            told.print(f"seed {made.seed}: {variant.name}")
            try:
                # Emulated servers begin anew for each, with empty caches.
                with nullcontext(shared) if shared is not None else emulated() as urls:
                    found[variant.name].append((made, measured(urls, variant, made)))
            except (Missing, ServerFailed) as error:
                told.print(str(error).splitlines()[0], markup=False)
    return {name: results for name, results in found.items() if results}


def stage(
    only: Annotated[str, typer.Option(metavar="NAMES", help="Comma-separated routers.")] = "twolane,cache_aware",
    name: Annotated[str, typer.Option("--mix", help=f"One of {', '.join(MIXES)}.")] = "all_kinds",
    first_seed: Annotated[int, typer.Option(help="The seeds are those from this one on.")] = 1,
    seeds: Annotated[int, typer.Option()] = 1,
    load: Annotated[float, typer.Option(help="Multiplies all rates.")] = 0.6,
    seconds: Annotated[float, typer.Option(help="Of arrivals.")] = 40.0,
    on_real: Annotated[bool, typer.Option("--real", help="On llama.cpp and vLLM, without tool loops.")] = False,
    json_path: Annotated[Path, typer.Option("--json", metavar="PATH", help="Where the figures go.")] = DEFAULT_JSON,
) -> None:
    """Measure tasks over HTTP."""
    try:
        among = variants(only)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    mixes = [mix(name, first_seed + number, load=load, seconds=seconds) for number in range(seeds)]
    mixes = [for_real(made) for made in mixes] if on_real else mixes
    load_before = os.getloadavg()
    with real.fleet("tiny") if on_real else nullcontext(None) as shared:
        results = _all_of(among, mixes, shared, Console(stderr=True))
    tasks = sum(len(made.tasks) for made in mixes)
    servers = "llama.cpp and vLLM" if on_real else "emulated servers"
    table = table_of(f"{name} over HTTP, {servers}, {seeds} seeds from {first_seed}, load {load:g}: {tasks} tasks")
    found = {called: figures(each) for called, each in results.items()}
    for called, row in found.items():
        table.add_row(called, *cells(row))
    console = Console()
    if not console.is_terminal:
        console.width = report.NARROWEST
    console.print(table)
    document = {
        "argv": sys.argv[1:],
        "load_average": [load_before, os.getloadavg()],
        "machine": report.machine(),
        "routers": found,
    }
    json_path.parent.mkdir(parents=True, exist_ok=True)
    json_path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))


if __name__ == "__main__":
    typer.run(stage)
