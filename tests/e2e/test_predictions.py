"""What the router foretells of real servers is soon right, though it knows nothing of them but their kind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.calibration.foretold import Load, lines_of, off_by, ratios
from bench.model_maker import ModelFiles
from bench.servers.engines import EngineServer, LlamaCppServer, VllmServer, vllm_python

CALLS = 60
LOAD = Load(calls=CALLS, at_once=2, most_words=300, most_tokens=64)


def falls(server: EngineServer, folder: Path, time_: str) -> None:
    """The error of the later calls is a small one, and smaller than what the kind of server made likely."""
    lines = lines_of(server, LOAD, folder)
    assert len(lines) == CALLS
    assert all(line["outcome"] == "completed" for line in lines)
    first, later = ratios(lines[:4], time_), ratios(lines[20:], time_)
    assert off_by(later) < 1.6
    assert off_by(later) < off_by(first)


@pytest.mark.timeout(240)
def test_the_error_shrinks_on_a_real_llamacpp(model: ModelFiles, tmp_path: Path) -> None:
    with LlamaCppServer(model.gguf, slots=4, ctx=2048, log=tmp_path / "server.log") as server:
        falls(server, tmp_path, "complete_s")


@pytest.mark.vllm
@pytest.mark.timeout(600)
def test_the_error_shrinks_on_a_real_vllm(model: ModelFiles, tmp_path: Path) -> None:
    if "TWOLANE_VLLM_PYTHON" not in os.environ and not vllm_python().exists():
        pytest.skip("no vLLM here; `make check-vllm` installs it")
    with VllmServer(model.hf, max_seqs=8, ctx=2048, log=tmp_path / "server.log") as server:
        falls(server, tmp_path, "complete_s")
