"""In what order hops of different tasks stand in the line, and that lies about it gain nothing lasting."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from router.settings.load import parse
from router.simulate.calls import Arriving, Became
from router.simulate.driver import Simulation
from router.simulate.pace import DESK

SETTINGS = """
backends:
  - {name: desk, url: "http://127.0.0.1:1", lane: latency}
classes:
  mixed: {slo: {complete: 20s}}
"""


def call(at_s: float, client: str, headers: dict[str, str], number: int = 0) -> Arriving:
    messages = [{"role": "user", "content": f"{client} {number} " + "word " * 200}]
    body = {"model": "emulated", "messages": messages}
    fields = {"user-agent": client, "content-type": "application/json", **headers}
    return Arriving(
        at_s=at_s,
        client=client,
        path="/v1/chat/completions",
        headers=[(name.encode(), value.encode()) for name, value in fields.items()],
        body=orjson.dumps(body),
        prompt_tokens=260,
        output_tokens=100,
    )


def closed_loop(tags: dict[str, dict[str, str]], *, workers: int, seconds: float) -> dict[str, list[float]]:
    """Each client keeps so many calls going; how long each of them took."""
    took: dict[str, list[float]] = {client: [] for client in tags}
    sent = 0

    def then(became: Became) -> Iterable[Arriving]:
        nonlocal sent
        client = became.call.client
        ended_s = became.ended_s or 0.0
        if became.status == 200:
            took[client].append(ended_s - became.call.at_s)
        sent += 1
        return [call(ended_s, client, tags[client], sent)] if ended_s < seconds else []

    simulation = Simulation(parse(SETTINGS, "test.yaml", {}), {"desk": DESK}, then=then)
    simulation.run(
        [call(0.001 * number, client, tags[client], -number) for client in tags for number in range(workers)]
    )
    return took


def test_a_client_that_says_final_of_everything_gets_no_more_than_its_share() -> None:
    honest = {"x-twolane-hop": "internal"}
    liar = {"x-twolane-hop": "final"}
    took = closed_loop({"honest": honest, "liar": liar}, workers=6, seconds=60.0)
    assert len(took["liar"]) <= 1.25 * len(took["honest"])


def test_a_client_that_puts_everything_under_one_old_task_gets_no_more_than_its_share() -> None:
    honest = {"x-twolane-hop": "internal"}
    liar = {"x-twolane-hop": "internal", "x-twolane-pipeline": "always the same"}
    took = closed_loop({"honest": honest, "liar": liar}, workers=6, seconds=60.0)
    assert len(took["liar"]) <= 1.25 * len(took["honest"])


def test_a_client_whose_deadlines_are_all_impossible_gets_no_more_than_its_share() -> None:
    honest = {"x-twolane-hop": "internal"}
    liar = {"x-twolane-hop": "internal", "x-twolane-deadline-ms": "1", "x-twolane-hops-left": "0"}
    took = closed_loop({"honest": honest, "liar": liar}, workers=6, seconds=60.0)
    assert len(took["liar"]) <= 1.25 * len(took["honest"])
    assert took["liar"], "a deadline that is out of reach is no reason to be dropped"
