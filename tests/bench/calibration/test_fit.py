"""The fit finds the numbers of a server whose numbers are known, and its error is that of the predictions."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from random import Random

import pytest

from bench.calibration.client import NotMeasured, Seen, Wanted, ask, prompt
from bench.calibration.fit import check, errors, measured_pace, predicted
from bench.model_maker import ModelFiles
from bench.servers.engines import LlamaCppServer
from bench.servers.process import ServerProcess, answers, free_port
from router.simulate.pace import DESK


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
    spec = await measured_pace(desk, "emulated", DESK, repeats=3, longest_words=768)
    pace, true = spec.pace, DESK.pace
    assert 0.4 * true.prefill_tokens_per_s < pace.prefill_tokens_per_s < 1.3 * true.prefill_tokens_per_s
    alone, four = (pace.step_s + number * pace.sequence_s for number in (1, 4))
    assert 0.9 * 0.0092 < alone < 2 * 0.0092
    assert 0.9 * 0.0128 < four < 2 * 0.0128
    error = await check(desk, "emulated", DESK, seconds=3.0)
    assert error.whole_median < 0.3
    assert error.first_median <= error.first_p90


async def test_a_real_llamacpp_is_measured(model: ModelFiles) -> None:
    with LlamaCppServer(model.gguf, slots=2, ctx=2048) as server:
        spec = await measured_pace(server.url, server.name, DESK, repeats=1, longest_words=256)
        assert 10 < spec.pace.prefill_tokens_per_s < 1e7
        assert 0 < spec.pace.step_s + spec.pace.sequence_s < 1.0
        error = await check(server.url, server.name, spec, seconds=1.0)
        assert 0 <= error.whole_median <= error.whole_p90


def test_errors_are_relative_and_zero_for_a_perfect_model() -> None:
    wanted = [Wanted(at_s=0.0, prompt="x", output_tokens=11), Wanted(at_s=0.1, prompt="x", output_tokens=5)]
    seen = [Seen(0.0, 300, [0.1, 0.2]), Seen(0.1, 500, [0.3, 0.4])]
    guesses = predicted(DESK, wanted, seen)
    exact = [
        Seen(each.sent_s, each.prompt_tokens, [each.sent_s + first_s, each.sent_s + whole_s])
        for each, (first_s, whole_s) in zip(seen, guesses, strict=True)
    ]
    assert errors(exact, guesses).whole_p90 == pytest.approx(0.0)
    doubled = [(2 * first_s, 2 * whole_s) for first_s, whole_s in guesses]
    error = errors(exact, doubled)
    assert (error.first_median, error.whole_median, error.whole_bias) == pytest.approx((1.0, 1.0, 1.0))
    assert not math.isnan(error.first_p90)


async def test_a_server_that_refuses_is_not_measured(desk: str) -> None:
    with pytest.raises(NotMeasured, match="status 404"):
        await ask(f"{desk}/nowhere", "emulated", [Wanted(at_s=0.0, prompt="hello", output_tokens=1)])


def test_prompts_are_new_each_time_and_as_long_as_asked() -> None:
    chance = Random(1)
    one, other = prompt(chance, 50), prompt(chance, 50)
    assert len(one.split()) == len(other.split()) == 50
    assert one != other
