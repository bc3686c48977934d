"""The page at the admin port over plain HTTP: its files, its figures, its stream, its buttons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from router.dashboard.assets import assets
from tests.rawclient import Answer
from tests.router.running import Running, router_for
from tests.scripted import ScriptedBackend, eventually

KEY = "admin-s3cret"
HTML = "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"
CHAT = {"model": "m", "messages": [{"role": "user", "content": "a very private question"}]}


def document(answer: Answer) -> Any:
    return answer.json()


async def test_browsers_get_the_page_and_programs_the_list() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        page = await router.admin("GET", "/", None, HTML)
        assert (page.header("content-type") or "").startswith("text/html")
        assert b"<title>Twolane</title>" in page.body
        for accept in ("Accept: application/json", "Accept: */*"):
            assert "paths" in document(await router.admin("GET", "/", None, accept))


async def test_the_page_may_load_nothing_from_elsewhere_and_run_nothing_inline() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        page = await router.admin("GET", "/", None, HTML)
        policy = page.header("content-security-policy") or ""
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert b"<script>" not in page.body
        assert b" style=" not in page.body
        assert b"://" not in page.body


@pytest.mark.parametrize("name", sorted(assets()))
async def test_each_file_of_the_page_is_served_and_asked_for_again_costs_nothing(name: str) -> None:
    async with ScriptedBackend() as backend, router_for(backend, admin_key=KEY) as router:
        answer = await router.admin("GET", f"/dashboard/{name}")
        assert (answer.status, answer.header("x-content-type-options")) == (200, "nosniff")
        etag = answer.header("etag")
        again = await router.admin("GET", f"/dashboard/{name}", None, f"If-None-Match: {etag}")
        assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize("name", ["", "nope.js", "..%2f..%2fapp.py", "%2e%2e/board.py", "board.py"])
async def test_nothing_else_is_served(name: str) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        assert (await router.admin("GET", f"/dashboard/{name}")).status == 404


async def test_with_a_key_the_page_comes_without_it_and_no_figure_does() -> None:
    async with ScriptedBackend() as backend, router_for(backend, admin_key=KEY) as router:
        assert (await router.admin("GET", "/", None, HTML)).status == 200
        assert (await router.admin("POST", "/", b"", HTML)).status == 401
        for target in ("/events", "/figures", "/history", "/decisions"):
            assert (await router.admin("GET", target, None, HTML)).status == 401
        assert (await router.admin("POST", "/backends/b0/drain", b"")).status == 401
        assert not router.app.fleet.backends()[0].health.drained
        assert (await router.admin("GET", "/figures", None, f"Authorization: Bearer {KEY}")).status == 200


async def test_the_figures_tell_of_lanes_line_goodput_and_the_call_that_just_ended_without_its_text() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        await router.post("/v1/chat/completions", CHAT, "x-twolane-class: ttft")
        answer = await router.admin("GET", "/figures")
        figures = document(answer)
        [lane] = figures["backends"]
        assert (lane["name"], lane["health"], lane["drained"], lane["dispatched"]) == ("b0", "up", False, 1)
        assert [row["class"] for row in figures["line"]] == ["ttft", "throughput", "mixed"] or len(figures["line"]) == 3
        assert figures["goodput"]["windows"]["5m"]["class"]["ttft"]["calls"] == 1
        [call] = figures["calls"]
        assert (call["class"], call["backend"], call["outcome"]) == ("ttft", "b0", "completed")
        [[_, length_s, by_class]] = figures["series"]
        assert (length_s, by_class["ttft"][0]) == (10, 1)
        assert b"private" not in answer.body
        assert [each["id"] for each in document(await router.admin("GET", "/decisions"))["calls"]] == [call["id"]]
        assert document(await router.admin("GET", "/decisions?after=1")) == {"last": 1, "calls": []}


@pytest.mark.parametrize("target", ["/decisions?after=x", "/decisions?after=-1", "/history?hours=nan"])
async def test_numbers_of_a_query_are_checked(target: str) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        assert (await router.admin("GET", target)).status == 400


async def events(session: aiohttp.ClientSession, url: str, count: int, **more: Any) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    async with session.get(url, **more) as answer:
        assert answer.status == 200
        assert answer.content_type == "text/event-stream"
        while len(found) < count:
            name = (await answer.content.readline()).decode().removeprefix("event: ").strip()
            found.append((name, orjson.loads((await answer.content.readline()).removeprefix(b"data: "))))
            await answer.content.readline()
    return found


async def test_the_stream_begins_with_everything_and_goes_on_with_what_is_new() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router, aiohttp.ClientSession() as session:
        await router.post("/v1/chat/completions", CHAT)
        (first, everything), (second, frame) = await events(session, f"http://127.0.0.1:{router.admin_port}/events", 2)
        assert (first, second) == ("all", "frame")
        assert len(everything["calls"]) == 1
        assert frame["calls"] == []
        assert frame["backends"][0]["name"] == "b0"


async def test_a_stream_ends_when_another_key_is_asked_for_and_when_the_router_closes(tmp_path: Path) -> None:
    path = tmp_path / "twolane.yaml"
    async with ScriptedBackend() as backend, aiohttp.ClientSession() as session:
        text = (
            f"listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nbackends: [{{name: b0, url: '{backend.url}', engine: openai}}]\n"
        )
        path.write_text(text + "admin_key: new\n", encoding="utf-8")
        async with router_for((backend, {"lane": None}), path=path, admin_key="old") as router:
            url = f"http://127.0.0.1:{router.admin_port}/events"
            async with session.get(url, headers={"Authorization": "Bearer old"}) as answer:
                await answer.content.readline()
                await router.admin("POST", "/reload", b"", "Authorization: Bearer old")
                await answer.content.read()  # to its end
            async with session.get(url, headers={"Authorization": "Bearer new"}) as answer:
                await answer.content.readline()
                await router.app.close()
                await answer.content.read()


async def drained(router: Running) -> bool:
    return bool(document(await router.admin("GET", "/backends"))["backends"][0]["drained"])


async def test_a_backend_is_drained_and_put_back() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        answer = document(await router.admin("POST", "/backends/b0/drain", b""))
        assert answer == {"backend": "b0", "drained": True, "running": 0}
        assert await drained(router)
        refused = await router.post("/v1/chat/completions", CHAT)
        assert refused.status == 503
        assert b"b0 is drained" in refused.body
        assert (await router.admin("GET", "/ready")).status == 503
        await router.admin("POST", "/backends/b0/undrain", b"")
        assert not await drained(router)
        assert (await router.post("/v1/chat/completions", CHAT)).status == 200
        missing = await router.admin("POST", "/backends/nope/drain", b"")
        assert missing.status == 404
        assert "b0" in document(missing)["error"]["message"]


async def test_a_page_of_another_origin_cannot_drain() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        answer = await router.admin("POST", "/backends/b0/drain", b"", "Origin: http://evil.example")
        assert answer.status == 403
        assert not await drained(router)


async def test_a_restart_finds_its_history_again_and_another_file_is_taken_over(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"dashboard": {"history": tmp_path / "h.sqlite"}}
    async with ScriptedBackend() as backend:
        async with router_for(backend, **settings) as router:
            await router.post("/v1/chat/completions", CHAT)
        async with router_for(backend, **settings) as router:
            figures = document(await router.admin("GET", "/figures"))
            assert figures["history"] == {"problem": "", "dropped": 0}
            assert sum(counts[0] for _, _, by in figures["series"] for counts in by.values()) == 1
            past = document(await router.admin("GET", "/history?hours=24"))["series"]
            assert [length_s for _, length_s, _ in past] == [60]
            assert figures["calls"] == []


async def test_without_a_history_its_endpoint_says_how_to_switch_it_on() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        answer = await router.admin("GET", "/history")
        assert answer.status == 404
        assert "dashboard: {history: FILE}" in document(answer)["error"]["message"]


async def test_calls_are_served_whatever_the_history_is(tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    path.write_bytes(b"SQLite format 3\0" + b"nonsense" * 1000)
    async with ScriptedBackend() as backend, router_for(backend, dashboard={"history": path}) as router:
        assert (await router.post("/v1/chat/completions", CHAT)).status == 200
        await eventually(lambda: bool(router.app.board._quick()["history"]["problem"]))
