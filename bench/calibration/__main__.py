"""`python -m bench.calibration URL --engine llamacpp --slots 4`: a server's pace, and how well the model predicts it.

Without a URL a server of that kind with a random-weight model is started for it (vLLM: from `TWOLANE_VLLM_PYTHON`).
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from os import getloadavg
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench import model_maker
from bench.calibration.fit import Error
from bench.calibration.measure import LOADS, calibrate
from bench.servers.engines import EngineServer, LlamaCppServer, VllmServer
from router.simulate.pace import DESK, RACK, Flavour


def main(
    url: Annotated[str, typer.Argument(help="Of a server; default: one that is started here.")] = "",
    engine: Annotated[Flavour, typer.Option()] = Flavour.SLOTS,
    slots: Annotated[int, typer.Option(help="Calls at once.")] = 4,
    step_tokens: Annotated[int, typer.Option(help="Tokens of a step: batch size of the server.")] = 2_048,
    model: Annotated[str, typer.Option(help="Name that the server knows.")] = "",
    size: Annotated[str, typer.Option(help="Of the random-weight model, where none is served yet.")] = "tiny",
    load: Annotated[list[float] | None, typer.Option(help="Share of what the server can do.")] = None,
) -> None:
    """Fit the modelled engine to a server and say how far off its predictions are."""
    made = DESK if engine is Flavour.SLOTS else RACK
    made = replace(made, sequences=slots, pace=replace(made.pace, step_tokens=step_tokens))
    loads, console = load or LOADS, Console()
    with ExitStack() as stack:
        if not url:
            server = stack.enter_context(_started(engine, size, slots))
            url, model = server.url, server.name
        busy = getloadavg()[0]
        spec, found = calibrate(url, model, made, loads)
    pace = spec.pace
    console.print(
        f"step {1e3 * pace.step_s:.2f} ms + {1e3 * pace.sequence_s:.3f} ms x sequences + "
        f"{1e6 * pace.context_token_s:.3f} us x tokens of context; "
        f"if it prefills, {1e3 * pace.prefill_step_s:.1f} ms + prefilled / {pace.prefill_tokens_per_s:.0f} per s more"
    )
    table = Table("load", "calls", "first token, median", "p90", "whole answer, median", "p90", "bias")
    for share, error in zip(loads, found, strict=True):
        table.add_row(f"{share:.1f}", *_cells(error))
    console.print(table)
    console.print(f"load average of this machine: {busy:.1f} at the beginning, {getloadavg()[0]:.1f} at the end")


def _cells(error: Error) -> list[str]:
    shares = (error.first_median, error.first_p90, error.whole_median, error.whole_p90)
    return [str(error.calls), *(f"{share:.0%}" for share in shares), f"{error.whole_bias:+.0%}"]


def _started(engine: Flavour, size: str, slots: int) -> EngineServer:
    files = model_maker.cached(size)
    if engine is Flavour.SLOTS:
        return LlamaCppServer(files.gguf, slots=slots, ctx=4096)
    return VllmServer(files.hf, max_seqs=slots, ctx=4096)


if __name__ == "__main__":
    typer.run(main)
