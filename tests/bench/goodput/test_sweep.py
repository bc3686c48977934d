"""The sweep compares variants over seeds and keeps what it found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from bench.goodput.sweep import SEARCHED, SKETCH, Block, numbers, sweep


def test_a_sweep_has_a_row_for_each_router_and_a_figure_for_each_seed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "sweep.json"
    sweep(mixes="rows_and_a_few", seeds=2, loads="0.3", only="twolane", tries=3, json_path=path)
    (block,) = json.loads(path.read_text())["blocks"]
    assert (block["mix"], block["load"]) == ("rows_and_a_few", 0.3)
    assert set(block["routers"]) == {"twolane", SKETCH, SEARCHED}
    row = block["routers"]["twolane"]
    assert len(row["seeds"]) == 2
    assert row["worst_share"] <= row["mean_share"] <= 1.0
    assert 0 < row["of_bound"] <= 1.0 + 1e-6
    assert "rows_and_a_few" in capsys.readouterr().out


def test_the_same_seed_gives_the_same_figures() -> None:
    blocks = [Block(mix="rows_and_a_few", load=0.3) for _ in range(2)]
    for block in blocks:
        block.add(3, ["twolane"])
    assert blocks[0].cells["twolane"].figures == blocks[1].cells["twolane"].figures


@pytest.mark.parametrize("wrong", [{"mixes": "nothing"}, {"only": "nobody"}])
def test_names_that_nobody_has_are_refused(wrong: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="no such"):
        sweep(**{"mixes": "", "seeds": 1, "loads": "1", "only": "", "tries": 0, "json_path": tmp_path / "x", **wrong})  # type: ignore[arg-type]


def test_numbers_are_read_from_a_list() -> None:
    assert numbers("0.5, 1,") == [0.5, 1.0]
