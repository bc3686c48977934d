"""`twolane top`: the same figures in a terminal."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from router.commands import cli
from router.settings.reaching import Door
from router.tasks import Tasks
from router.top import NoFigures, follow
from tests.router.running import Running, router_for
from tests.scripted import ScriptedBackend, eventually

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
KEY = "admin-s3cret"


def paper(width: int = 160, *, terminal: bool = False) -> Console:
    return Console(file=io.StringIO(), width=width, height=50, markup=False, highlight=False, force_terminal=terminal)


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def frame(router: Running, key: str | None = None, width: int = 160) -> str:
    console = paper(width)
    await follow(Door(f"http://127.0.0.1:{router.admin_port}", key), console, once=True)
    return shown(console)


async def test_one_frame_has_lanes_promises_line_and_the_last_calls() -> None:
    async with ScriptedBackend() as backend, router_for((backend, {"max_inflight": 3})) as router:
        assert "no call has ended yet" in await frame(router)
        answer = await router.post("/v1/chat/completions", CHAT, "x-twolane-class: mixed")
        assert answer.status == 200
        text = await frame(router)
    lines = {line.split()[0]: line for line in text.splitlines() if line.split()}
    assert "b0" in lines["latency"]
    assert "..." in lines["latency"], "three free slots"
    assert "100.0 %" in lines["mixed"]
    assert "kept" in lines["mixed"]
    assert "no calls" in lines["ttft"]
    assert "header: class_header" in text


@pytest.mark.parametrize("width", [40, 80, 250])
async def test_it_is_drawn_at_any_width(width: int) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        await router.post("/v1/chat/completions", CHAT)
        text = await frame(router, width=width)
        assert max(map(len, text.splitlines())) <= width
        assert ("openai" in text) == (width > 100), "what is less needed gives way"


async def test_it_goes_on_when_the_stream_ends() -> None:
    console = paper(terminal=True)
    async with ScriptedBackend() as backend, router_for(backend) as router:
        tasks = Tasks()
        door = Door(f"http://127.0.0.1:{router.admin_port}")
        tasks.spawn(follow(door, console, once=False), name="top")
        await eventually(lambda: "b0" in shown(console), within_s=20)
        router.app.board.end_streams()
        await eventually(lambda: "trying again" in shown(console), within_s=20)
        before = len(shown(console))
        await eventually(lambda: len(shown(console)) > before + 500, within_s=20)
        await tasks.close()


async def test_with_a_key_it_says_how_to_give_it() -> None:
    async with ScriptedBackend() as backend, router_for(backend, admin_key=KEY) as router:
        for key in (None, "wrong"):
            with pytest.raises(NoFigures, match="--key or in TWOLANE_ADMIN_KEY"):
                await frame(router, key)
        assert "b0" in await frame(router, KEY)


async def test_a_port_that_is_no_admin_port_is_told_from_one() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        with pytest.raises(NoFigures, match="no admin port"):
            await follow(Door(f"http://127.0.0.1:{router.port}"), paper(), once=True)


async def test_over_a_unix_socket(tmp_path: Path) -> None:
    async with ScriptedBackend() as backend:
        from router.app import App
        from tests.router.running import settings_for

        path = tmp_path / "admin.sock"
        app = App(settings_for(backend).model_copy(update={"admin": _unix(path)}))
        await app.start()
        try:
            console = paper()
            await asyncio.wait_for(follow(Door(f"unix:{path}"), console, once=True), 20)
            assert "b0" in shown(console)
        finally:
            await app.close()


def _unix(path: Path) -> object:
    from router.settings.model import Settings

    entry = {"name": "a", "url": "http://127.0.0.1:1"}
    return Settings.model_validate({"admin": f"unix:{path}", "backends": [entry]}).admin


def test_the_command_ends_with_an_error_where_nothing_answers() -> None:
    done = CliRunner().invoke(cli, ["top", "--once", "--url", "http://127.0.0.1:1"])
    assert done.exit_code == 1
    assert "--admin" in done.output
    done = CliRunner().invoke(cli, ["top", "--once", "--admin", "nowhere"])
    assert (done.exit_code, "expected the address of its admin port" in done.output) == (1, True)
