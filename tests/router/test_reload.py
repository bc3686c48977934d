"""Settings taken over while it runs: nothing ends the following of the file, and nobody waits for the reading."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from router.app import App
from router.settings.load import load
from tests.scripted import eventually

SLOW = "import time\ntime.sleep(0.4)\nfrom policies.least_loaded import LeastLoaded as Mine\n"
UNFINISHED = "class Mine(:\n"
FOR_TYPES_ONLY = """
    from __future__ import annotations
    from dataclasses import dataclass
    from typing import TYPE_CHECKING
    if TYPE_CHECKING:
        from fractions import Fraction

    @dataclass(frozen=True)
    class Mine:
        share: Fraction = 1

        def decide(self, ask, views, *, now_s, chance): ...
"""
ENDS_ALL = "raise SystemExit(3)\n"


class File:
    """A settings file, and modules of policies beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "twolane.yaml"

    def write(self, policy: str, max_waiting: int) -> None:
        self.path.write_text(
            "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nbackends: [{name: a, url: 'http://127.0.0.1:9'}]\n"
            f"policy: {policy}\nline: {{max_waiting: {max_waiting}}}\n",
            encoding="utf-8",
        )

    def module(self, name: str, text: str) -> None:
        (self.folder / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> File:
    monkeypatch.syspath_prepend(tmp_path)
    return File(tmp_path)


@asynccontextmanager
async def started(file: File) -> AsyncIterator[App]:
    file.write("least_loaded", 10)
    loaded = load(file.path)
    app = App(loaded.settings, loaded.path, loaded.digest)
    await app.start()
    try:
        yield app
    finally:
        await app.close()


@pytest.mark.parametrize("text", [UNFINISHED, FOR_TYPES_ONLY, ENDS_ALL])
async def test_a_policy_that_cannot_be_used_is_told_with_its_place_and_the_next_change_counts(
    file: File, text: str, request: pytest.FixtureRequest
) -> None:
    name = f"policy_{request.node.callspec.indices['text']}"
    file.module(name, text)
    async with started(file) as app:
        refused = app.metrics.registry.get_sample_value
        file.write(f"{name}:Mine", 20)
        await eventually(lambda: refused("twolane_reloads_total", {"result": "refused"}) == 1)
        [problem] = (await app.reload())["problems"]
        assert problem.startswith(f"{file.path}:4:")
        assert "policy.use" in problem
        assert app.settings.policy.use == "least_loaded"
        file.write("least_loaded", 30)
        await eventually(lambda: app.line.max_waiting == 30)


async def test_whatever_goes_wrong_in_one_reload_the_next_change_counts(file: File) -> None:
    async with started(file) as app:
        file.path.unlink()
        file.path.mkdir()  # no file at all
        assert not (await app.reload())["reloaded"]
        app.fleet.apply, usual = _fails, app.fleet.apply  # type: ignore[method-assign]
        file.path.rmdir()
        file.write("least_loaded", 20)
        assert (await app.reload())["problems"] == ["an internal error of the router; its log has the details"]
        app.fleet.apply = usual  # type: ignore[method-assign]
        file.write("least_loaded", 30)
        await eventually(lambda: app.line.max_waiting == 30)


def _fails(settings: object) -> None:
    raise RuntimeError("a mistake of ours")


async def test_streams_go_on_while_settings_are_read(file: File) -> None:
    file.module("slow_policy", SLOW)
    async with started(file) as app, asyncio.TaskGroup() as tasks:
        file.write("slow_policy:Mine", 20)
        reload, turns = tasks.create_task(app.reload()), 0
        while not reload.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert reload.result() == {"reloaded": True, "problems": []}
        assert turns > 10, "the loop went on"


async def test_a_reload_that_is_under_way_at_the_end_is_not_taken_over(file: File) -> None:
    file.module("slow_policy_2", SLOW)
    async with started(file) as app, asyncio.TaskGroup() as tasks:
        file.write("slow_policy_2:Mine", 20)
        reload = tasks.create_task(app.reload())
        await asyncio.sleep(0.1)
        await app.close()
        assert (await reload)["problems"] == ["the router is shutting down"]
        assert app.settings.policy.use == "least_loaded"
