"""A soak that cannot fail shows nothing: here it meets proxies that lose, double, swap and alter answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.soak.apis import CHAT
from bench.soak.call import Call
from bench.soak.driver import Driver
from bench.soak.fleet import Backends
from bench.soak.judge import Kind
from bench.soak.order import Fault, Order
from bench.soak.tally import Tally
from tests.bench.soak.liar import Lie, lying

CALLS = 40


@pytest.fixture
def backends(tmp_path: Path) -> Iterator[Backends]:
    with Backends(tmp_path) as running:
        yield running


def never(began_s: float, ended_s: float) -> bool:
    """No backend goes down here."""
    return False


async def verdict(lie: Lie, backends: Backends, fault: Fault = Fault.NONE) -> tuple[Tally, list[str]]:
    """What the soak says of `CALLS` calls through that proxy: the counts, and what it calls wrong."""
    tally = Tally(CALLS)
    calls = (
        Call(api=CHAT, order=Order(n=n, stream=True, pieces=6, fault=fault, after=3, torn=True))
        for n in range(1, CALLS + 1)
    )
    async with lying(lie, backends.ports[0]) as port:
        driver = Driver(port, calls, tally.take)
        await driver.run(8)
    wrong = [violation.words for violation in tally.violations(await backends.journal(), never)]
    return tally, [*wrong, *driver.complaints]


async def test_an_honest_proxy_is_found_honest(backends: Backends) -> None:
    tally, wrong = await verdict(Lie.NONE, backends)
    assert wrong == []
    assert tally.kinds == {Kind.COMPLETE: CALLS}


async def test_an_honest_proxy_passes_a_break_on(backends: Backends) -> None:
    tally, _ = await verdict(Lie.NONE, backends, Fault.MID)
    assert set(tally.kinds) <= {Kind.BROKEN, Kind.BAD_ERROR}  # it has no words for its clients


@pytest.mark.parametrize(
    ("lie", "kind"),
    [
        (Lie.ALTERS, Kind.ALTERED),
        (Lie.REPEATS, Kind.ALTERED),
        (Lie.SWAPS, Kind.SWAPPED),
        (Lie.SWALLOWS, Kind.LOST),
    ],
)
async def test_each_wrong_answer_is_found(backends: Backends, lie: Lie, kind: Kind) -> None:
    tally, wrong = await verdict(lie, backends)
    assert tally.kinds[kind] == CALLS // 5
    assert tally.kinds[Kind.COMPLETE] == CALLS - CALLS // 5
    assert len(wrong) >= CALLS // 5


async def test_a_false_end_is_found(backends: Backends) -> None:
    tally, wrong = await verdict(Lie.ENDS, backends, Fault.MID)
    assert tally.kinds == {Kind.FALSE_END: CALLS}
    assert len(wrong) == CALLS


async def test_a_doubled_generation_is_found_though_each_client_is_content(backends: Backends) -> None:
    tally, wrong = await verdict(Lie.DOUBLES, backends)
    assert tally.kinds == {Kind.COMPLETE: CALLS}
    assert wrong == [f"{Kind.COMPLETE}, generated 2 times"] * (CALLS // 5)


async def test_an_answer_that_no_backend_gave_is_found_though_it_is_right(backends: Backends) -> None:
    tally, wrong = await verdict(Lie.MAKES_UP, backends)
    assert tally.kinds == {Kind.COMPLETE: CALLS}
    assert wrong == [f"{Kind.COMPLETE}, and never generated"] * (CALLS // 5)


async def test_a_changed_prompt_is_found(backends: Backends) -> None:
    _, wrong = await verdict(Lie.CHANGES, backends)
    assert len(wrong) == CALLS // 5
    assert all("has changed" in words for words in wrong)


async def test_bytes_behind_an_answer_are_found(backends: Backends) -> None:
    _, wrong = await verdict(Lie.BABBLES, backends)
    assert wrong
