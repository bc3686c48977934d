"""Servers are measured through a socket: an emulated one of known pace, a real llama.cpp, and a real vLLM."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from bench.calibration.client import NotMeasured, Wanted, ask, prompt
from bench.calibration.measure import Target, check, measured_pace
from bench.model_maker import ModelFiles
from bench.servers.engines import LlamaCppServer, VllmServer
from bench.servers.process import ServerProcess, answers, free_port
from router.simulate.pace import DESK, RACK


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of an emulated server with the pace of `DESK`."""
    port = free_port()
    command = [sys.executable, "-m", "bench.emulator", "--engine", "llamacpp", "--port", str(port)]
    with ServerProcess(command, log=tmp_path_factory.mktemp("desk") / "log") as process:
        url = f"http://127.0.0.1:{port}"
        process.wait_until(lambda: answers(f"{url}/health") == 200, timeout_s=30, what="a healthy server")
        yield url


async def test_the_pace_of_an_emulated_server_is_found_and_predicts_it(desk: str) -> None:
    """A busy machine makes it look slower, hardly ever faster."""
    spec = await measured_pace(Target(url=desk, model="emulated"), DESK, repeats=3, longest_words=768)
    pace, true = spec.pace, DESK.pace
    assert 0.4 * true.prefill_tokens_per_s < pace.prefill_tokens_per_s < 1.3 * true.prefill_tokens_per_s
    alone, four = (pace.step_s + number * pace.sequence_s for number in (1, 4))
    assert 0.9 * 0.0092 < alone < 2 * 0.0092
    assert 0.9 * 0.0128 < four < 2 * 0.0128
    error = (await check(Target(url=desk, model="emulated"), DESK, seconds=3.0)).error
    assert error.whole_median < 0.3
    assert error.first_median <= error.first_p90


async def test_a_real_llamacpp_is_measured(model: ModelFiles) -> None:
    with LlamaCppServer(model.gguf, slots=2, ctx=2048) as server:
        target = Target(url=server.url, model=server.name, pid=server.process.pid)
        spec = await measured_pace(target, DESK, repeats=1, longest_words=256)
        assert 10 < spec.pace.prefill_tokens_per_s < 1e7
        assert 0 < spec.pace.step_s + spec.pace.sequence_s < 1.0
        error = (await check(target, spec, seconds=1.0)).by_its_clock
        assert 0 <= error.whole_median <= error.whole_p90


@pytest.mark.vllm
@pytest.mark.timeout(900)
async def test_a_real_vllm_is_measured_and_predicted(model: ModelFiles) -> None:
    """Twice or half as long is what a busy machine makes of it; it was five times where the numbers were wrong."""
    with VllmServer(model.hf, max_seqs=4, ctx=2048) as server:
        target = Target(url=server.url, model=server.name, pid=server.process.pid)
        spec = await measured_pace(target, replace(RACK, sequences=4), repeats=2, longest_words=768)
        error = (await check(target, spec, load=0.3)).by_its_clock
    assert error.first_median < 1.0
    assert error.whole_median < 1.0


async def test_a_server_that_refuses_is_not_measured(desk: str) -> None:
    with pytest.raises(NotMeasured, match="status 404"):
        await ask(f"{desk}/nowhere", "emulated", [Wanted(at_s=0.0, prompt="hello", output_tokens=1)])


def test_prompts_are_new_each_time_and_as_long_as_asked() -> None:
    chance = Random(1)
    one, other = prompt(chance, 50), prompt(chance, 50)
    assert len(one.split()) == len(other.split()) == 50
    assert one != other
