"""In a simulation the router learns the pace of its engines as it would on the wire, and foretells what they do."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from random import Random
from statistics import median

import pytest

from policies.api import Lane, Pace, View
from policies.outlook import outlook
from router.fleet.backend import Backend
from router.fleet.ledger import Lease
from router.simulate.driver import Simulation
from router.simulate.engine import SimulatedEngine
from router.simulate.pace import DESK, RACK, EngineSpec
from tests.policies.test_outlook import wants
from tests.router.simulate.test_driver import ENGINES, call, settings

SPECS = {"desk": DESK, "rack": RACK}


def simulated(seconds: float, each_s: float, seed: int = 1) -> tuple[list[Lease], dict[str, Backend]]:
    """All leases of a run with calls of both lanes, and the backends as they are at its end."""
    chance, calls, at_s = Random(seed), [], 0.0
    while (at_s := at_s + chance.expovariate(1 / each_s)) < seconds:
        label = chance.choice(("ttft", "throughput"))
        prompt_tokens = min(4_000, max(10, round(chance.lognormvariate(6.0, 0.8))))
        made = call(at_s, label=label, tokens=chance.randint(20, 120), prompt_tokens=prompt_tokens)
        said = {"role": "user", "content": " tree" * prompt_tokens}
        body = json.dumps({"model": "emulated", "messages": [said], "stream": True}).encode()
        calls.append(replace(made, body=body))
    simulation, leases = Simulation(settings(), ENGINES), list[Lease]()
    fleet = simulation._fleet
    closed = fleet.ledger._on_close

    def kept(lease: Lease, now_s: float) -> None:
        leases.append(lease)
        closed(lease, now_s)

    fleet.ledger._on_close = kept
    simulation.run(calls)
    return leases, {backend.name: backend for backend in fleet.backends()}


@pytest.mark.parametrize("name", SPECS)
def test_the_pace_of_each_engine_is_found(name: str) -> None:
    _, backends = simulated(60.0, 0.3)
    true, pace = SPECS[name].pace, backends[name].pacer.pace
    assert pace.seen > 40
    assert 0.8 < pace.prefill_token_s * true.prefill_tokens_per_s < 1.25
    for rows in (1, 3):
        assert 0.8 < (pace.step_s + rows * pace.sequence_s) / (true.step_s + rows * true.sequence_s) < 1.25


@pytest.mark.parametrize("name", SPECS)
def test_after_twenty_calls_first_tokens_come_when_they_were_foretold(name: str) -> None:
    leases, _ = simulated(60.0, 0.3)
    ratios = []
    for lease in [each for each in leases if each.backend == name][20:]:
        assert lease.running is not None
        assert lease.running.predicted is not None
        assert lease.first_s is not None
        ratios.append((lease.first_s - lease.opened_s) / lease.running.predicted.first_s)
    assert len(ratios) > 20
    assert median(abs(math.log(ratio)) for ratio in ratios) < math.log(1.25)


@pytest.mark.parametrize("spec", [DESK, RACK])
def test_what_is_foretold_of_a_known_pace_is_what_the_engine_does(spec: EngineSpec) -> None:
    """The formulas of the outlook and the engine of the simulation are of one model."""
    engine, true = SimulatedEngine(spec), spec.pace
    sequence = engine.submit(0.0, prompt_tokens=3_000, output_tokens=50)
    while engine.next_s() < math.inf:
        engine.run(engine.next_s())
    pace = Pace(
        step_s=true.step_s,
        sequence_s=true.sequence_s,
        prefill_token_s=1 / true.prefill_tokens_per_s,
        step_tokens=true.step_tokens,
    )
    view = View(name="it", lane=Lane.LATENCY, engine="any", cap=None, own=0, pace=pace)
    seen = outlook(wants(3_000, (50, 50)), view, 0.0)
    assert seen.first_s == pytest.approx(sequence.first_s)
    assert seen.whole_s == pytest.approx(sequence.end_s)
