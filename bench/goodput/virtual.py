"""The same workloads and the same judge in virtual time: Twolane in front of modelled engines, in a second or two.

What is left out is the wire and the time that deciding takes, so figures are a little better than over HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from bench.emulator.reading import answer_text, blocks
from bench.goodput.routers import Own, Place, twolane_settings
from bench.goodput.send import PATIENCE_S, Label, Outcome
from bench.mixes.plan import MODEL, PATH, Call, Workload
from policies.api import Policy
from router.settings.load import parse
from router.settings.model import Settings
from router.simulate.calls import Arriving, Became, Change
from router.simulate.driver import Simulation
from router.simulate.pace import DESK, RACK, EngineSpec

BACKENDS: Mapping[str, str] = {"latency": "desk", "throughput": "rack"}
"""Lane to name, as in the settings of the comparison."""
ENGINES: Mapping[str, EngineSpec] = {"desk": DESK, "rack": RACK}


def settings_of(own: Own) -> Settings:
    """As the variant would be served with."""
    place = Place(desk="http://127.0.0.1:1", rack="http://127.0.0.1:2", port=3, side_port=4, folder=Path())
    wanted = twolane_settings(place)
    own.adapt(wanted)
    return parse(yaml.safe_dump(wanted, sort_keys=False), f"{own.name}.yaml", {})


def simulate(
    own: Own,
    workload: Workload,
    engines: Mapping[str, EngineSpec] = ENGINES,
    *,
    seed: int = 0,
    figures_lag_s: float = 0.0,
    policy: Policy | None = None,
) -> Sequence[Outcome]:
    """What clients would have seen, in the order of the workload."""
    simulation = Simulation(
        settings_of(own), engines, model=MODEL, seed=seed, figures_lag_s=figures_lag_s, policy=policy
    )
    became = simulation.run(
        [arriving(call, own.label) for call in workload.calls],
        [
            Change(
                at_s=fault.at_s,
                backend=BACKENDS[fault.lane],
                speed=fault.speed,
                sequences=fault.sequences,
                frozen=fault.frozen,
            )
            for fault in workload.faults
        ],
    )
    return [outcome_of(call, each) for call, each in zip(workload.calls, became, strict=True)]


def arriving(call: Call, label: Label) -> Arriving:
    """As the router would get it, with what an emulated engine would make of it."""
    asked = call.asked
    fields = {
        "Content-Type": "application/json",
        "User-Agent": call.client.user_agent,
        "Authorization": f"Bearer {call.client.key}",
        **call.client.headers,
        **label(call),
    }
    answer = "" if asked.tool else answer_text(asked.seed, asked.output_tokens)
    size = DESK.block_tokens
    return Arriving(
        at_s=call.at_s,
        client=call.client.address,
        path=PATH,
        headers=[(name.encode(), value.encode()) for name, value in fields.items()],
        body=call.data,
        prompt_tokens=asked.prompt_tokens,
        output_tokens=asked.output_tokens,
        blocks=blocks(asked.text, size),
        full_blocks=blocks(asked.text + answer, size),
        leaves_after_s=PATIENCE_S,
        direct=BACKENDS[call.direct] if call.direct else "",
    )


def outcome_of(call: Call, became: Became) -> Outcome:
    outcome = Outcome(call, status=became.status or None)
    if became.status == 200 and became.first_s is not None and became.end_s is not None:
        outcome.end_s = became.end_s - call.at_s
        if call.stream:
            outcome.tokens = call.asked.output_tokens
            outcome.first_s, outcome.last_s = became.first_s - call.at_s, outcome.end_s
    elif became.status != 200:
        outcome.error = "client left" if became.status == 499 else str(became.status)
    return outcome
