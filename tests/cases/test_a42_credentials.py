"""A42: a client's key stays with the router, a backend's key goes to that backend alone, and no log has either."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from bench.servers.process import ROOT
from router.settings.load import SettingsError, load
from tests.cases.apis import CHAT, Api, each_api
from tests.cases.process import connect, router_process
from tests.rawclient import Answer
from tests.router.running import router_for
from tests.scripted import Peer, Received, ScriptedBackend, echo, eventually

CLIENT_KEY = "sk-client-4711-abcdef"
WRONG_KEY = "sk-wrong-0815-abcdef"
BACKEND_KEY = "sk-backend-1234-uvwxyz"
OTHER_KEY = "sk-other-5678-uvwxyz"
PROMPT = "the launch code is 0000"
ANSWER = "aye aye captain"
COOKIE = "session=9f8e7d6c"
SECRETS = (CLIENT_KEY, WRONG_KEY, BACKEND_KEY, OTHER_KEY, PROMPT, ANSWER, COOKIE)

CARRIERS = (f"Authorization: Bearer {CLIENT_KEY}", f"x-api-key: {CLIENT_KEY}", f"api-key: {CLIENT_KEY}")
PROXY = "Proxy-Authorization: Basic c2VjcmV0OnNlY3JldA=="


def keys_in(request: Received) -> list[str]:
    names = ("authorization", "x-api-key", "api-key", "proxy-authorization", "cookie")
    return [value for name in names for value in request.all(name)]


@each_api
async def test_each_backend_sees_its_own_key_and_no_other(api: Api) -> None:
    async with api.backend() as one, api.backend() as two, api.backend() as bare:
        fleet = (
            (one, {**api.settings, "api_key": BACKEND_KEY}),
            (two, {**api.settings, "api_key": OTHER_KEY}),
            (bare, api.settings),
        )
        async with router_for(*fleet, policy="round_robin") as router:
            for number in range(12):
                fields = (CARRIERS[number % 3], PROXY, f"Cookie: {COOKIE}")
                assert (await router.post(api.path, api.body(stream=bool(number % 2)), *fields)).status == 200
        for backend, keys in ((one, [f"Bearer {BACKEND_KEY}"]), (two, [f"Bearer {OTHER_KEY}"]), (bare, [])):
            assert backend.received
            assert all(keys_in(request) == keys for request in backend.received + backend.probed)


async def test_the_next_backend_of_a_call_gets_its_own_key() -> None:
    async with ScriptedBackend() as gone, ScriptedBackend() as other:
        fleet = (gone, {"api_key": BACKEND_KEY}), (other, {"api_key": OTHER_KEY, "lane": "throughput"})
        async with router_for(*fleet) as router:
            await gone.stop()
            answer = await router.post(CHAT.path, CHAT.body(stream=False), CARRIERS[0], "X-Twolane-Class: interactive")
            assert answer.status == 200
            assert keys_in(other.received[0]) == [f"Bearer {OTHER_KEY}"]


@pytest.mark.parametrize("path", ["/tokenize", "/v1/embeddings", "/v1/rerank", "/v1/odd"])
async def test_no_other_path_passes_a_key_on(path: str) -> None:
    body = {"model": "m", "prompt": "x", "input": "x", "query": "x", "documents": ["x"]}
    async with ScriptedBackend() as backend:
        settings = {"engine": "vllm", "api_key": BACKEND_KEY}
        async with router_for((backend, settings), passthrough="b0") as router:
            for carrier in CARRIERS:
                assert (await router.post(path, body, carrier)).status == 200
            assert [keys_in(request) for request in backend.received] == [[f"Bearer {BACKEND_KEY}"]] * 3


async def test_where_keys_are_configured_the_clients_key_still_stays_here() -> None:
    async with ScriptedBackend() as backend:
        keys = [{"name": "editor", "key": CLIENT_KEY}]
        async with router_for((backend, {"api_key": BACKEND_KEY}), keys=keys) as router:
            for carrier in CARRIERS:
                assert (await router.post(CHAT.path, CHAT.body(stream=False), carrier)).status == 200
            assert {tuple(keys_in(request)) for request in backend.received} == {(f"Bearer {BACKEND_KEY}",)}


@each_api
@pytest.mark.parametrize("fields", [(), (f"Authorization: Bearer {WRONG_KEY}",), ("Authorization: Basic eDp5",)])
async def test_a_wrong_key_is_told_no_more_than_that(api: Api, fields: tuple[str, ...]) -> None:
    async with api.backend() as backend:
        keys = [{"name": "editor", "key": CLIENT_KEY}]
        async with router_for((backend, {**api.settings, "api_key": BACKEND_KEY}), keys=keys) as router:
            answer = await router.post(api.path, api.body(stream=True), *fields)
            assert answer.status == 401
            said: Any = answer.json()
            assert said["error"]
            assert "x-twolane-backend" not in {name.lower() for name, _ in answer.headers}
            for secret in (*SECRETS, "editor", "sha256"):
                assert secret.encode() not in answer.body
            assert backend.received == []


async def test_what_a_rule_wants_a_header_to_be_is_told_to_nobody(tmp_path: Path) -> None:
    wanted = {"header": {"x-internal-token": "tok-s3cret"}}
    classify = {"rules": [{"if": {**wanted, "stream": True}, "then": "mixed"}, {"if": wanted, "then": "throughput"}]}
    file = tmp_path / "d.jsonl"
    async with (
        ScriptedBackend() as backend,
        router_for(backend, classify=classify, decisions={"file": str(file)}, log={"calls": True}) as router,
    ):
        with capture_logs() as said:
            answer = await router.post(CHAT.path, CHAT.body(stream=False), "X-Internal-Token: tok-s3cret")
            await eventually(lambda: file.exists() and bool(file.read_bytes()))
        told = await router.admin("POST", "/explain", orjson.dumps({"path": CHAT.path, "body": CHAT.body(stream=True)}))
        tail = await router.admin("GET", "/decisions")
    assert "rule:rule_2+header.x-internal-token; " in (answer.header("x-twolane-reason") or "")
    assert [line["event"] for line in said].count("call") == 1
    assert b"not met: header.x-internal-token" in told.body
    everywhere = (repr(answer.headers), repr(said), told.body.decode(), tail.body.decode(), file.read_text())
    assert all("x-internal-token" in text and "s3cret" not in text for text in everywhere)


# --- logs


async def _tells_all(request: Received, peer: Peer) -> None:
    """A backend that fails in many ways and repeats in each what it was told."""
    user = orjson.loads(request.body).get("user", "")
    text = f"{request.one('authorization')} {request.body.decode()}"
    match user:
        case "500" | "400" | "401" | "503":
            await peer.json({"error": {"message": text}}, f"{user} {text[:40]}")
        case "stream error":
            await peer.stream_head()
            await peer.chunk(CHAT.token(ANSWER))
            await peer.event({"error": {"message": text}})
            await peer.last_chunk()
        case "dies":
            await peer.stream_head()
            await peer.chunk(CHAT.token(ANSWER))
            peer.writer.close()
        case "garbage":
            await peer.send(f"{text}\r\n\r\n".encode())
            peer.writer.close()
        case "bad head":
            await peer.send(f"HTTP/1.1 200 OK\r\n{text}\x00\r\n\r\n".encode())
            peer.writer.close()
        case "stream":
            await peer.stream_head()
            await peer.chunk(CHAT.token(ANSWER))
            await peer.last_chunk()
        case _:
            await echo(request, peer)


USERS = ("", "500", "400", "401", "503", "stream error", "dies", "garbage", "bad head", "stream")


async def _settled(router: Any, calls: int) -> None:
    async with asyncio.timeout(10):
        while await asyncio.to_thread(router.metric, "twolane_calls_total") < calls:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("form", ["json", "console"])
async def test_no_log_at_any_level_has_a_secret(tmp_path: Path, form: str) -> None:
    async with ScriptedBackend(_tells_all) as backend, ScriptedBackend(_tells_all) as second:
        settings = {
            "keys": [{"name": "editor", "key": "${CLIENT_KEY}"}],
            "policy": "round_robin",
            "log": {"level": "debug", "format": form, "calls": True},
            "health": {"break_after": 1000, "interval": "50ms"},
            "timeouts": {"first_byte": "500ms"},
        }
        entry = {"name": "b0", "url": backend.url, "engine": "openai", "api_key": "${BACKEND_KEY}"}
        other = {"name": "b1", "url": second.url, "engine": "openai", "api_key": OTHER_KEY, "models": ["m"]}
        settings["backends"] = [entry, other]
        env = {"CLIENT_KEY": CLIENT_KEY, "BACKEND_KEY": BACKEND_KEY}
        async with router_process(tmp_path, env=env, **settings) as router:
            calls = 0
            for user in USERS:
                for carrier in (CARRIERS[0], f"Authorization: Bearer {WRONG_KEY}"):
                    stream = user in ("stream", "stream error", "dies")
                    messages = [{"role": "user", "content": PROMPT}]
                    body = CHAT.body(stream=stream, user=user, messages=messages, prompt_cache_key=PROMPT)
                    await _call(router, orjson.dumps(body), carrier, f"Cookie: {COOKIE}", f"X-Session-Id: {COOKIE}")
                    calls += 1
            for broken in (
                orjson.dumps({"messages": PROMPT}),
                PROMPT.encode(),
                b'{"model":"' + PROMPT.encode() + b'"}',
            ):
                await _call(router, broken, CARRIERS[0])
                calls += 1
            await second.stop()
            await _call(router, orjson.dumps({**CHAT.call, "user": PROMPT}), CARRIERS[1])
            await _settled(router, calls + 1)
            router.write(
                {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", **settings, "backends": [{"name": CLIENT_KEY}]}
            )
            await asyncio.to_thread(router.ask_admin, "POST", "/reload")
            shown = [
                await asyncio.to_thread(router.ask_admin, "GET", path) for path in ("/config", "/backends", "/health")
            ]
        log = (tmp_path / "router.log").read_text(encoding="utf-8", errors="replace")
        assert "twolane" in log
        assert log.count("editor") >= len(USERS)
        for secret in SECRETS:
            assert secret not in log, _around(log, secret)
            assert secret not in str(shown)


def _around(log: str, secret: str) -> str:
    at = log.index(secret)
    return log[max(0, at - 300) : at + 100]


async def _call(router: Any, body: bytes, *fields: str) -> Answer | None:
    async with await connect(router) as client:
        await client.post(CHAT.path, body, *fields)
        try:
            return await client.answer()
        except (ConnectionError, asyncio.IncompleteReadError):
            return None


# --- start


PLACES: dict[str, dict[str, Any]] = {
    "backends[0].api_key": {"backends": [{"name": "b0", "url": "http://127.0.0.1:9", "api_key": "${KEY}"}]},
    "keys[0].key": {"keys": [{"name": "editor", "key": "${KEY}"}]},
    "admin_key": {"admin_key": "${KEY}"},
}


def written(folder: Path, settings: dict[str, Any]) -> Path:
    file = folder / "twolane.yaml"
    file.write_bytes(orjson.dumps({"backends": [{"name": "b0", "url": "http://127.0.0.1:9"}], **settings}))
    return file


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", [None, "", "two words", "żółw"])
def test_a_key_that_is_not_set_or_cannot_be_one_is_refused(tmp_path: Path, place: str, value: str | None) -> None:
    file = written(tmp_path, PLACES[place])
    with pytest.raises(SettingsError) as caught:
        load(file, {} if value is None else {"KEY": value})
    (problem,) = caught.value.problems
    assert (problem.source, problem.line, problem.key_path) == (str(file), 1, place)
    assert not value or value not in problem.message


async def test_without_its_key_it_does_not_start(tmp_path: Path) -> None:
    written(tmp_path, PLACES["keys[0].key"])
    command = [sys.executable, "-m", "router", "serve", "-c", "twolane.yaml"]
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 2
    assert done.stderr.startswith("twolane.yaml:1:")
    assert "keys[0].key: the environment variable KEY is not set" in done.stderr


async def test_a_key_that_a_backend_refuses_is_the_operators_matter() -> None:
    """The probe says so; calls never hear of it as their own 401."""

    async def refuses(request: Received, peer: Peer) -> None:
        await peer.json({"error": f"bad key {request.one('authorization')}"}, "401 Unauthorized")

    async with ScriptedBackend(refuses, probes={"/v1/models": refuses}) as backend:
        async with router_for((backend, {"api_key": BACKEND_KEY}), health={"interval": "20ms"}) as router:
            await eventually(lambda: "api_key" in router.app.fleet.backends()[0].health.reason)
            answer = await router.post(CHAT.path, CHAT.body(stream=False))
            assert answer.status == 503
            assert b"api_key" in answer.body
            assert BACKEND_KEY.encode() not in answer.body
            assert BACKEND_KEY.encode() not in (await router.admin("GET", "/backends")).body
