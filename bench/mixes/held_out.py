"""Two workloads for final figures only: other shapes, other lengths, other habits. Nothing is tuned on them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

from bench.mixes.plan import Call, Workload
from bench.mixes.programs import coding_agents
from bench.mixes.senders import Lengths, chats, client, hops, rows
from bench.mixes.traces import load as load_trace
from bench.mixes.traces import window


def office(seed: int, *, load: float = 1.0, seconds: float = 40.0) -> Workload:
    """Bursty people, a nightly job that trickles and then hurries, an assistant whose hops come in runs."""
    chance = Random(f"office {seed * 7_919}")
    people = [client(chance, f"person-{number}", browser=number % 2 == 0) for number in range(20)]
    chat = Lengths(prompt=420, output=140, prompt_sigma=0.9, output_sigma=0.7)
    step = Lengths(prompt=900, output=45, prompt_sigma=0.4, output_sigma=0.6)
    row = Lengths(prompt=1_100, output=220, prompt_sigma=0.3, output_sigma=0.3)
    hurry_s = seconds * chance.uniform(0.3, 0.6)
    trickle = list(_gamma(chance, 1.2 * load, 1.0, seconds))
    hurry = [hurry_s + 0.05 * number for number in range(round(90 * load * seconds / 40))]
    calls: list[Call] = [
        *chats(chance, _gamma(chance, 2.4 * load, 0.35, seconds), chat, people, streamed=0.85),
        *hops(chance, _gamma(chance, 1.1 * load, 0.5, seconds), step, people[:3], streamed=0.0, least_gap_s=1.2),
        *rows(chance, trickle, row, client(chance, "trickle"), streamed=0.0),
        *rows(chance, hurry, row, client(chance, "hurry", address=people[1].address), streamed=1.0, limit=None),
    ]
    calls.sort(key=lambda call: call.at_s)
    return Workload(name="office", seed=seed, seconds=seconds, calls=calls)


def _gamma(chance: Random, rate_per_s: float, shape: float, seconds: float) -> Iterator[float]:
    """Gaps of a gamma distribution: the smaller the shape, the burstier."""
    at_s = 0.0
    while (at_s := at_s + chance.gammavariate(shape, 1 / (rate_per_s * shape))) < seconds:
        yield at_s


def studio(seed: int, *, load: float = 1.0, seconds: float = 40.0) -> Workload:
    """Coding agents and the bursts of an editor's short completions, while documents of recorded lengths come in."""
    chance = Random(f"studio {seed * 104_729}")
    agents = coding_agents(seed + 500, load=0.5 * load, seconds=seconds)
    editors = [client(chance, f"editor-{number}") for number in range(6)]
    calls = list(agents.calls)
    code = window(load_trace("azure2023_code"), chance, calls=max(2, round(1.5 * load * seconds)), seconds=seconds)
    for arrival in code:
        exact = Lengths(
            prompt=min(max(arrival.input_tokens // 3, 16), 2_000),
            output=min(max(arrival.output_tokens, 4), 300),
            prompt_sigma=0.0,
            output_sigma=0.0,
        )
        calls += chats(chance, [arrival.at_s], exact, editors, streamed=0.9)
    lumps = sorted(
        seconds * share + 0.2 * number for share in (0.1, 0.45, 0.7) for number in range(math.ceil(22 * load))
    )
    calls += rows(
        chance,
        [at_s for at_s in lumps if at_s < seconds],
        Lengths(prompt=3_200, output=260, prompt_sigma=0.7, output_sigma=0.6, most_prompt=12_000),
        client(chance, "summaries"),
        streamed=0.5,
    )
    calls.sort(key=lambda call: call.at_s)
    return Workload(name="studio", seed=seed, seconds=seconds, calls=calls)
