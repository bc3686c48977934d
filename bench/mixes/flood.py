"""The flood: people chat and agents work while somebody sends sixty rows of a job every fifteen seconds."""

from __future__ import annotations

from random import Random

from bench.mixes.plan import Workload
from bench.mixes.senders import Lengths, chats, client, hops, poisson, rows

CHAT = Lengths(prompt=250, output=90)
HOP = Lengths(prompt=1_500, output=70)
ROW = Lengths(prompt=2_000, output=150, prompt_sigma=0.5)


def flood(seed: int, *, load: float = 1.0, seconds: float = 40.0) -> Workload:
    """`load` multiplies the rates of chats and hops and the size of each lump of rows."""
    chance = Random(f"flood {seed}")
    people = [client(chance, f"person-{number}", browser=True) for number in range(8)]
    agents = [client(chance, f"agent-{number}") for number in range(3)]
    # The job runs on the machine of one of the agents, and somebody chats from there, too.
    job = client(chance, "job", address=agents[0].address)
    people.append(client(chance, "colleague", address=agents[0].address))
    lumps = [lump_s for lump_s in range(0, int(seconds), 15)]
    row_times = [lump_s + chance.uniform(0, 0.5) for lump_s in lumps for _ in range(round(60 * load))]
    calls = [
        *chats(chance, poisson(chance, 2.0 * load, seconds), CHAT, people),
        *hops(chance, poisson(chance, 0.8 * load, seconds), HOP, agents),
        *rows(chance, sorted(row_times), ROW, job),
    ]
    calls.sort(key=lambda call: call.at_s)
    return Workload(name="flood", seed=seed, seconds=seconds, calls=calls)
