"""`python -m bench.calibration URL --engine llamacpp --slots 4`: a server's pace, and how well the model predicts it.

Without a URL a server of that kind with a random-weight model is started for it (vLLM: from `TWOLANE_VLLM_PYTHON`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench import model_maker
from bench.calibration.measure import LOADS, Checked, Target, calibrate
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
            target = Target(url=server.url, model=server.name, pid=server.process.pid)
        else:
            target = Target(url=url, model=model)
        spec, found = calibrate(target, made, loads)
    pace = spec.pace
    console.print(
        f"step {1e3 * pace.step_s:.2f} ms + {1e3 * pace.sequence_s:.3f} ms x sequences + "
        f"{1e6 * pace.context_token_s:.3f} us x tokens of context; "
        f"if it prefills, {1e3 * pace.prefill_step_s:.1f} ms + prefilled / {pace.prefill_tokens_per_s:.0f} per s + "
        f"{1e6 * pace.prefill_pair_s:.3f} us x pairs of them"
    )
    console.print(_table(found))


def _table(found: Sequence[Checked]) -> Table:
    """By the clock on the wall, and by that of the server where it had to wait for a processor."""
    table = Table(
        "load", "calls", "stood still", "clock", "first token: median, p90", "whole answer: median, p90, bias"
    )
    for each in found:
        clocks = {"wall": each.error, "server's": each.by_its_clock} if each.stood_still_0_1 else {"wall": each.error}
        for name, error in clocks.items():
            table.add_row(
                f"{each.load:.1f}",
                str(error.calls),
                f"{each.stood_still_0_1:.0%}",
                name,
                f"{error.first_median:.0%}, {error.first_p90:.0%}",
                f"{error.whole_median:.0%}, {error.whole_p90:.0%}, {error.whole_bias:+.0%}",
            )
    return table


def _started(engine: Flavour, size: str, slots: int) -> EngineServer:
    files = model_maker.cached(size)
    if engine is Flavour.SLOTS:
        return LlamaCppServer(files.gguf, slots=slots, ctx=4096)
    return VllmServer(files.hf, max_seqs=slots, ctx=4096)


if __name__ == "__main__":
    typer.run(main)
