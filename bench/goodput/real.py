"""`python -m bench.goodput.real`: the same comparison on real servers, smaller: llama.cpp and vLLM on the CPU.

Both serve one random-weight model. A short calibration gives the pace of each, from which follow the rate of arrivals
(as busy as the emulated fleet is with the flood) and what is possible at all. Lengths are an eighth of the flood's,
since the machine that runs the servers runs the routers and the clients as well.

The model never ends an answer by itself, so `max_tokens` does, and every router that reads it knows how long answers
will be. Prompts of each run begin differently, so that no router finds the cache that the one before has filled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from bench import model_maker, report
from bench.calibration.measure import Target, measured_pace, work_s
from bench.goodput.__main__ import select
from bench.goodput.judge import judge
from bench.goodput.routers import Router
from bench.goodput.stage import run_before
from bench.goodput.table import WIDTH, cells, table_of, yardsticks
from bench.goodput.virtual import ENGINES
from bench.mixes.flood import CHAT, HOP, ROW, flood
from bench.mixes.plan import MODEL, Call, Workload
from bench.mixes.senders import Lengths, chats, client, hops, poisson, rows
from bench.peers import Missing
from bench.servers.engines import LlamaCppServer, VllmServer
from bench.servers.process import ROOT, ServerFailed
from router.simulate.pace import DESK, RACK, EngineSpec, Pace

DEFAULT_JSON = ROOT / ".cache" / "bench" / "goodput-real.json"
DEFAULT_ROUTERS = "twolane,twolane +labels,static_lanes +labels,least_loaded,nginx least_conn"
SCALE = 8
SLOTS, SEQUENCES, CONTEXT = 2, 8, 8_192
STEP_TOKENS = 2_048
"""Batch size of llama.cpp, and of vLLM on a CPU, by default."""
_VLLM_START_S = 600.0
"""On a machine that does much else."""
REAL_TOKENS = 2.2
"""Of the random-weight model's tokenizer, for one token as workloads count them (four characters)."""


@contextmanager
def fleet(size: str) -> Iterator[Mapping[str, str]]:
    """URLs of the two servers, by the names of the backends."""
    files = model_maker.cached(size)
    with (
        LlamaCppServer(files.gguf, slots=SLOTS, ctx=CONTEXT, alias=MODEL) as desk,
        VllmServer(files.hf, alias=MODEL, max_seqs=SEQUENCES, ctx=CONTEXT, start_s=_VLLM_START_S) as rack,
    ):
        yield {"desk": desk.url, "rack": rack.url}


async def calibrated(urls: Mapping[str, str]) -> dict[str, EngineSpec]:
    """The servers as modelled engines, whose tokens are those of the workloads."""
    found = {}
    for name, usual, sequences in (("desk", DESK, SLOTS), ("rack", RACK, SEQUENCES)):
        pace = replace(usual.pace, step_tokens=STEP_TOKENS)
        made = replace(usual, pace=pace, sequences=sequences, context_tokens=CONTEXT)
        spec = await measured_pace(Target(url=urls[name], model=MODEL), made, repeats=2, longest_words=800)
        found[name] = replace(spec, pace=as_counted(spec.pace))
    return found


def as_counted(pace: Pace) -> Pace:
    """The same for tokens as workloads count them. Contexts cost nothing, since bounds know no such cost."""
    return replace(
        pace,
        context_token_s=0.0,
        prefill_tokens_per_s=pace.prefill_tokens_per_s / REAL_TOKENS,
        prefill_pair_s=pace.prefill_pair_s * REAL_TOKENS**2,
    )


def small(lengths: Lengths) -> Lengths:
    return replace(
        lengths, prompt=lengths.prompt / SCALE, output=lengths.output / 4, most_prompt=1_500, most_output=200
    )


def small_flood(seed: int, *, load: float, seconds: float) -> Workload:
    """As the flood, with short prompts and answers, and lumps of rows every ten seconds."""
    chance = Random(f"small flood {seed}")
    people = [client(chance, f"person-{number}", browser=True) for number in range(6)]
    agents = [client(chance, f"agent-{number}") for number in range(2)]
    job = client(chance, "job", address=agents[0].address)
    times = sorted(
        lump + chance.uniform(0, 0.5) for lump in range(0, int(seconds), 10) for _ in range(round(30 * load))
    )
    calls = [
        *chats(chance, poisson(chance, 2.0 * load, seconds), small(CHAT), people),
        *hops(chance, poisson(chance, 0.8 * load, seconds), small(HOP), agents),
        *rows(chance, times, small(ROW), job),
    ]
    calls.sort(key=lambda call: call.at_s)
    return Workload(name="small flood", seed=seed, seconds=seconds, calls=[_for_real(call) for call in calls])


def _for_real(call: Call) -> Call:
    """What a model without sense can be asked for: plain text of a given length."""
    kept = {key: value for key, value in call.body.items() if key not in ("tools", "response_format")}
    return replace(call, body={**kept, "max_tokens": call.asked.output_tokens, "temperature": 0})


def begun(workload: Workload, number: int) -> Workload:
    """The same, with prompts that begin with a number."""

    def changed(call: Call) -> Call:
        first, *others = call.body["messages"]
        told = {**first, "content": f"{number:04d} {first['content']}"}
        return replace(call, body={**call.body, "messages": [told, *others]})

    return replace(workload, calls=[changed(call) for call in workload.calls])


def busy(workload: Workload, engines: Mapping[str, EngineSpec]) -> float:
    """Share of its time that the fleet needs for a workload, both servers as full as they go; caches left out."""
    per_s = 0.0
    for spec in engines.values():
        asked = (call.asked for call in workload.calls)
        per_s += workload.seconds / sum(work_s(spec, each.prompt_tokens, each.output_tokens) for each in asked)
    return 1 / per_s


def compared(
    urls: Mapping[str, str], routers: Sequence[Router], workload: Workload, told: Console
) -> Iterator[tuple[str, Any]]:
    """Each router's outcomes, or why there are none."""
    for number, router in enumerate(routers):
        told.print(f"{router.name} ({number + 1} of {len(routers)})")
        with TemporaryDirectory(prefix="twolane-real-") as folder:
            try:
                ran = run_before(urls["desk"], urls["rack"], router, begun(workload, number + 1), Path(folder))
            except (Missing, ServerFailed) as error:
                yield router.name, str(error).splitlines()[0]
            else:
                yield router.name, judge(ran.outcomes)


def main(
    seconds: Annotated[float, typer.Option(help="Of arrivals.")] = 40.0,
    load: Annotated[float, typer.Option(help="1: as busy as the emulated fleet is with the flood.")] = 1.0,
    seed: Annotated[int, typer.Option()] = 1,
    size: Annotated[str, typer.Option(help="Of the random-weight model.")] = "tiny",
    only: Annotated[str, typer.Option(metavar="NAMES", help="Comma-separated routers.")] = DEFAULT_ROUTERS,
    tries: Annotated[int, typer.Option(help="Changes that the search for the best schedule tries.")] = 0,
    json_path: Annotated[Path, typer.Option("--json", metavar="PATH")] = DEFAULT_JSON,
) -> None:
    """Compare routers in front of a real llama.cpp and a real vLLM."""
    try:
        routers, told = select(only), Console(stderr=True)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    told.print("starting llama.cpp and vLLM")
    try:
        _compare(fleet(size), routers, told, seconds=seconds, load=load, seed=seed, tries=tries, json_path=json_path)
    except ServerFailed as error:
        told.print(str(error).splitlines()[0], markup=False)
        raise typer.Exit(1) from None


def _compare(
    servers: AbstractContextManager[Mapping[str, str]],
    routers: Sequence[Router],
    told: Console,
    *,
    seconds: float,
    load: float,
    seed: int,
    tries: int,
    json_path: Path,
) -> None:
    with servers as urls:
        told.print("calibrating them")
        engines = asyncio.run(calibrated(urls))
        wanted = load * busy(flood(seed), ENGINES)
        rate = wanted / busy(small_flood(seed, load=1.0, seconds=seconds), engines)
        workload = small_flood(seed, load=rate, seconds=seconds)
        most = yardsticks(workload, engines, tries=tries, seed=seed)
        table = table_of(workload, most)
        results: dict[str, Any] = {}
        for name, found in compared(urls, routers, workload, told):
            if isinstance(found, str):
                table.add_row(name, *["-"] * 10, found)
                results[name] = {"missing": found}
                continue
            of = most.of(found.mean_share)
            table.add_row(name, *cells(found, *of))
            results[name] = {**found.as_json(), "of_bound": of[0], "of_clairvoyant": of[1]}
    console = Console()
    if not console.is_terminal:
        console.width = max(report.NARROWEST, WIDTH)
    for name, spec in engines.items():
        console.print(f"{name}: {spec.sequences} at once, {spec.pace}")
    console.print(f"rates of the flood x {rate:.2f}, the fleet {wanted:.0%} busy")
    console.print(table)
    json_path.parent.mkdir(parents=True, exist_ok=True)
    json_path.write_bytes(
        orjson.dumps(
            {
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "machine": report.machine(),
                "seed": seed,
                "seconds": seconds,
                "rate": rate,
                "engines": {name: {"sequences": spec.sequences, "pace": spec.pace} for name, spec in engines.items()},
                "bound": most.bound,
                "clairvoyant": most.clairvoyant,
                "routers": results,
            },
            option=orjson.OPT_INDENT_2,
        )
    )


if __name__ == "__main__":
    typer.run(main)
