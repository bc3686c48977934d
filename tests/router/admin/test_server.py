"""The admin port: figures, explanations and controls, as JSON, without a secret."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from classifiers.api import CallClass
from router.app import App
from router.fleet.ledger import Outcome
from router.settings.load import load
from tests.rawclient import Answer, RawClient
from tests.router.running import Running, router_for
from tests.scripted import ScriptedBackend, eventually


def document(answer: Answer) -> dict[str, Any]:
    parsed = answer.json()
    assert isinstance(parsed, dict)
    return parsed


async def test_the_index_lists_what_exists_and_an_unknown_path_points_to_it() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        paths = document(await router.admin("GET", "/"))["paths"]
        assert {"GET /metrics", "GET /health", "GET /ready", "GET /backends", "GET /config"} <= set(paths)
        assert {"POST /explain", "POST /reload", "POST /drain"} <= set(paths)
        missing = await router.admin("GET", "/nope")
        assert missing.status == 404
        assert "GET /" in document(missing)["error"]["message"]


async def test_ready_means_that_a_backend_is_up() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        assert (await router.admin("GET", "/ready")).status == 200
        assert document(await router.admin("GET", "/health"))["status"] == "ok"
    async with ScriptedBackend() as gone:
        await gone.stop()
        async with router_for(gone) as router:
            answer = await router.admin("GET", "/ready")
            assert answer.status == 503
            assert document(answer)["backends"] == {"b0": "down"}


async def test_a_broken_backend_whose_trial_call_is_due_is_ready_for_it() -> None:
    health = {"break_after": 1, "retry_after": "300ms", "interval": "10s"}
    async with ScriptedBackend() as backend, router_for(backend, health=health) as router:
        [broken] = router.app.fleet.backends()
        lease = router.app.fleet.lease(broken, CallClass.TTFT, time.monotonic(), slot=True)
        lease.close(Outcome.FAILED, time.monotonic())
        answer = await router.admin("GET", "/ready")
        assert (answer.status, document(answer)["backends"]) == (503, {"b0": "broken"})
        await eventually(lambda: router.app.ready()[0])
        assert (await router.post("/v1/chat/completions", CHAT)).status == 200
        assert document(await router.admin("GET", "/ready"))["backends"] == {"b0": "up"}


async def test_backends_that_are_taken_out_are_the_reason_for_not_being_ready() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        await router.admin("POST", "/backends/b0/drain")
        answer = await router.admin("GET", "/ready")
        assert (answer.status, document(answer)["backends"]) == (503, {"b0": "drained"})


async def test_backends_show_lane_engine_health_depth_and_models() -> None:
    async with ScriptedBackend(models=("m", "n")) as backend:
        async with router_for((backend, {"max_inflight": 3, "lane": "throughput"})) as router:
            [entry] = document(await router.admin("GET", "/backends"))["backends"]
            assert entry["lane"] == "throughput"
            assert entry["engine"] == "openai"
            assert entry["health"] == "up"
            assert entry["slots"] == 3
            assert entry["models"] == ["m", "n"]
            assert {"running", "waiting", "own", "foreign", "figures_age_s"} <= entry.keys()


async def test_metrics_are_in_the_format_of_prometheus() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        answer = await router.admin("GET", "/metrics")
        assert (answer.header("content-type") or "").startswith("text/plain")
        assert b'twolane_backend_up{backend="b0",engine="openai",lane="latency"} 1.0' in answer.body


async def test_a_scraper_that_asks_for_openmetrics_gets_it() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
        answer = await router.admin("GET", "/metrics", b"", accept)
        assert (answer.header("content-type") or "").startswith("application/openmetrics-text")
        assert answer.body.endswith(b"# EOF\n")


async def test_config_shows_no_secret() -> None:
    async with ScriptedBackend() as backend, router_for((backend, {"api_key": "sk-very-secret"})) as router:
        answer = await router.admin("GET", "/config")
        assert answer.status == 200
        assert b"sk-very-secret" not in answer.body


async def test_explain_says_what_would_happen_and_sends_nothing() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        asked = {
            "path": "/v1/chat/completions",
            "headers": {"x-twolane-class": "batch"},
            "body": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
        }
        told = document(await router.admin("POST", "/explain", orjson.dumps(asked)))
        assert told["class"] == "throughput"
        assert told["confidence"] == 1.0
        assert told["source"] == "header"
        assert told["reasons"]
        assert told["features"]["model"] == "m"
        assert told["decision"] == {"action": "dispatch", "backend": "b0", "reason": told["decision"]["reason"]}
        assert [entry["backend"] for entry in told["considered"]] == ["b0"]
        assert backend.received == []


async def test_the_question_that_the_first_page_shows_is_answered() -> None:
    page = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    [asked] = re.findall(r"/explain -d '(.+?)'", page, re.DOTALL)
    async with ScriptedBackend() as backend, router_for(backend) as router:
        told = await router.admin("POST", "/explain", asked.encode())
        assert (told.status, document(told)["source"]) == (200, "model")


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"path": 5}', b'{"path":"/v1/chat/completions","headers":[1]}'])
async def test_explain_says_what_it_expects(body: bytes) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        answer = await router.admin("POST", "/explain", body)
        assert answer.status == 400
        assert document(answer)["error"]["message"]


async def test_explain_of_an_unknown_model_names_the_known_ones() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        asked = {"path": "/v1/chat/completions", "body": {"model": "x", "messages": [{"role": "user", "content": "a"}]}}
        told = document(await router.admin("POST", "/explain", orjson.dumps(asked)))
        assert told["decision"]["action"] == "reject"
        assert told["decision"]["status"] == 404
        assert told["considered"][0]["usable"] is False


async def test_a_router_without_a_file_cannot_reload_and_says_so() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        answer = await router.admin("POST", "/reload")
        assert answer.status == 422
        assert document(answer)["reloaded"] is False


def write(path: Path, *urls: str, extra: str = "") -> None:
    lines = ["listen: 127.0.0.1:0", "admin: 127.0.0.1:0", "backends:"]
    lines += [f"  - {{name: b{number}, url: '{url}', engine: openai}}" for number, url in enumerate(urls)]
    path.write_text("\n".join(lines) + "\n" + extra, encoding="utf-8")


async def start(path: Path) -> Running:
    loaded = load(path)
    app = App(loaded.settings, loaded.path, loaded.digest)
    listen, admin = await app.start()
    assert admin is not None
    return Running(app, listen.port, admin.port)


CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


async def test_a_reload_takes_over_all_of_a_good_file_and_nothing_of_a_bad_one(tmp_path: Path) -> None:
    path = tmp_path / "twolane.yaml"
    async with ScriptedBackend() as first, ScriptedBackend() as second:
        write(path, first.url)
        router = await start(path)
        try:
            async with await RawClient.connect(router.port) as client:
                write(path, first.url, second.url, extra="expose: nonsense\n")
                refused = await router.admin("POST", "/reload")
                assert refused.status == 422
                assert "expose" in document(refused)["problems"][0]
                assert len(router.app.fleet.backends()) == 1

                write(path, second.url)
                assert (await router.admin("POST", "/reload")).status == 200
                await eventually(lambda: router.app.ready()[0])
                await client.post("/v1/chat/completions", CHAT)
                assert (await client.answer()).status == 200
                assert (len(first.received), len(second.received)) == (0, 1)
        finally:
            await router.app.close()


async def test_a_changed_file_is_taken_over_by_itself_also_by_rename(tmp_path: Path) -> None:
    path, other = tmp_path / "twolane.yaml", tmp_path / "new.yaml"
    async with ScriptedBackend() as first:
        write(path, first.url)
        router = await start(path)
        try:
            write(path, first.url, extra="expose: none\n")
            await eventually(lambda: router.app.settings.expose == "none")
            write(other, first.url, extra="expose: minimal\n")
            other.replace(path)
            await eventually(lambda: router.app.settings.expose == "minimal")
        finally:
            await router.app.close()


async def test_what_needs_a_restart_is_refused_with_its_key(tmp_path: Path) -> None:
    path = tmp_path / "twolane.yaml"
    async with ScriptedBackend() as first:
        write(path, first.url)
        router = await start(path)
        try:
            path.write_text(path.read_text(encoding="utf-8").replace("listen: 127.0.0.1:0", "listen: 127.0.0.1:1"))
            answer = await router.admin("POST", "/reload")
            assert answer.status == 422
            assert "listen" in document(answer)["problems"][0]
        finally:
            await router.app.close()


async def test_running_calls_do_not_notice_a_reload_that_removes_their_backend(tmp_path: Path) -> None:
    import asyncio

    from tests.scripted import Peer, Received

    release = asyncio.Event()

    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        await peer.token("a")
        await release.wait()
        await peer.token("b")
        await peer.last_chunk()

    path = tmp_path / "twolane.yaml"
    async with ScriptedBackend(script) as first, ScriptedBackend() as second:
        write(path, first.url)
        router = await start(path)
        try:
            async with await RawClient.connect(router.port) as client:
                await client.post("/v1/chat/completions", {**CHAT, "stream": True})
                answer = await client.answer(head_only=True)
                await client.piece(answer)
                write(path, second.url)
                assert (await router.admin("POST", "/reload")).status == 200
                release.set()
                await client.rest(answer)
                assert answer.complete
            await eventually(lambda: router.idle)
        finally:
            await router.app.close()


async def test_drain_over_the_admin_port_stops_the_run(tmp_path: Path) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        answer = await router.admin("POST", "/drain")
        assert answer.status == 202
        assert document(answer)["draining"] is True
