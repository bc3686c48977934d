"""A42: a client's key is for the router alone, a backend's key for that backend alone, and no log ever has either."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from bench.servers.process import ROOT
from bench.servers.router import RouterProcess
from tests.cases.apis import Api, each_api
from tests.cases.process import connect
from tests.rawclient import Answer, RawClient
from tests.router.running import router_for
from tests.scripted import Peer, Received, ScriptedBackend, echo, eventually

CHAT = "/v1/chat/completions"
ROUTERKEY, BACKENDKEY, ADMINKEY = "ROUTERKEY-7f3a9c", "BACKENDKEY-51be02", "ADMINKEY-c0ffee"
WRONGKEY, COOKIE, PROMPT = "WRONGKEY-deadbeef", "session-0badf00d", "what nobody else should read"
KEYS = [{"name": "editor", "key": ROUTERKEY}]
SHOWN = tuple(
    f"{name}{ROUTERKEY}" for name in ("Authorization: Bearer ", "authorization: bearer ", "X-Api-Key: ", "api-key: ")
)


def call(**more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": PROMPT}], **more}


def everything(request: Received) -> str:
    return f"{request.method} {request.target} {request.headers} {request.body!r}"


# --- to whom keys go


@pytest.mark.parametrize("shown", SHOWN)
async def test_a_backend_sees_its_own_key_or_none(shown: str) -> None:
    async with ScriptedBackend() as own, ScriptedBackend(models=("n",)) as none:
        options: dict[str, Any] = {"api_key": BACKENDKEY}
        async with router_for((own, options), none, keys=KEYS) as router:
            for model in ("m", "n"):
                answer = await router.post(CHAT, call(model=model), shown, f"Cookie: a={COOKIE}", f"cookie: b={COOKIE}")
                assert answer.status == 200
        assert own.received[0].all("authorization") == [f"Bearer {BACKENDKEY}"]
        assert none.received[0].all("authorization") == []
        for request in (*own.received, *none.received, *own.probed, *none.probed):
            assert ROUTERKEY not in everything(request)
            assert COOKIE not in everything(request)
        for request in (*none.received, *none.probed):
            assert BACKENDKEY not in everything(request)


async def test_where_no_key_is_wanted_none_goes_on_either() -> None:
    async with ScriptedBackend() as backend, router_for(backend, passthrough="b0") as router:
        for target in (CHAT, "/some/other/path"):
            for shown in (*SHOWN, f"Proxy-Authorization: Bearer {ROUTERKEY}"):
                assert (await router.post(target, call(), shown, f"Cookie: {COOKIE}")).status == 200
        assert len(backend.received) == 10
        assert all(ROUTERKEY not in everything(request) for request in backend.received)
        assert all(COOKIE not in everything(request) for request in backend.received)


# --- who is refused, and how


def refused(answer: Answer) -> bytes:
    """The body of a refusal, after a look at its head."""
    assert (answer.status, answer.header("www-authenticate")) == (401, "Bearer")
    assert answer.header("content-type") == "application/json"
    return answer.body


@each_api
async def test_a_wrong_key_and_a_missing_one_get_the_same_answer_in_the_shape_of_the_api(api: Api) -> None:
    async with api.backend() as backend, router_for((backend, api.settings), keys=KEYS) as router:
        tried = (
            (),
            (f"Authorization: Bearer {WRONGKEY}",),
            (f"x-api-key: {WRONGKEY}",),
            ("Authorization: Basic eDp5",),
        )
        bodies = [refused(await router.post(api.path, api.body(stream=True), *fields)) for fields in tried]
        assert len(set(bodies)) == 1
        assert WRONGKEY.encode() not in bodies[0]
        error = orjson.loads(bodies[0])["error"]
        message = error if isinstance(error, str) else error["message"]
        assert message.startswith("the API key is missing or wrong; send it as")
        if isinstance(error, dict):
            assert error["type"] == "authentication_error"
        assert backend.received == []
        assert (await router.post(api.path, api.body(stream=False), SHOWN[0])).status == 200


@pytest.mark.parametrize("passthrough", [None, "b0"])
@pytest.mark.parametrize("target", ["/v1/models", "/api/tags", "/nothing/here", "/v1/responses/r1", "/"])
async def test_without_a_key_nothing_can_be_learned(target: str, passthrough: str | None) -> None:
    async with ScriptedBackend() as backend, router_for(backend, keys=KEYS, passthrough=passthrough) as router:
        assert b'"m"' not in refused(await router.get(target))
        assert backend.received == []


async def test_a_body_is_not_waited_for_before_the_key_is_known() -> None:
    async with ScriptedBackend() as backend, router_for(backend, keys=KEYS) as router, await router.client() as client:
        await client.send(
            f"POST {CHAT} HTTP/1.1\r\nHost: r\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n".encode()
        )
        refused(await asyncio.wait_for(client.answer(), 2.0))


# --- what keeps it from starting


def start(folder: Path, settings: dict[str, Any] | None, *words: str) -> subprocess.CompletedProcess[str]:
    """`twolane serve`, which is expected to end by itself."""
    if settings is not None:
        (folder / "twolane.yaml").write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "router", "serve", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


BACKENDS = {"backends": [{"name": "a", "url": "http://127.0.0.1:9"}], "listen": "127.0.0.1:0", "admin": None}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"keys": [{"name": "a", "key": "${NOT_SET_ANYWHERE}"}]}, "keys[0].key: the environment variable NOT_SET"),
        ({"keys": [{"name": "a", "key": "${EMPTY}"}]}, "keys[0].key: expected text that is not empty"),
        ({"keys": [{"name": "a", "key_file": "missing.key"}]}, "keys[0].key_file: cannot be read: No such file"),
        ({"listen": "0.0.0.0:0"}, "listen: others than this machine can reach this address, and no keys are set"),
        ({"listen": "[::]:0", "keys": []}, "listen: others than this machine can reach this address, and no keys are"),
        ({"admin": "0.0.0.0:0"}, "admin: others than this machine can reach this address: add an `admin_key`"),
    ],
)
def test_it_does_not_start_without_the_keys_that_it_needs(
    tmp_path: Path, settings: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMPTY", "")
    done = start(tmp_path, {**BACKENDS, **settings})
    assert done.returncode == 2
    assert f"{said}" in done.stderr
    assert "twolane.yaml:" in done.stderr


def test_without_a_file_it_has_to_be_said_that_everybody_may_call(tmp_path: Path) -> None:
    done = start(tmp_path, None, "http://127.0.0.1:9", "--listen", "0.0.0.0:0")
    assert done.returncode == 2
    assert "--insecure" in done.stderr


# --- what is written down


def traces(secret: str) -> list[str]:
    """The secret, and what it would look like on the way."""
    raw = secret.encode()
    return [secret, hashlib.sha256(raw).hexdigest(), base64.b64encode(raw).decode(), raw.hex(), secret[:12]]


@pytest.mark.parametrize("form", ["json", "console"])
async def test_no_secret_is_in_the_most_talkative_log_nor_in_what_the_admin_port_shows(
    tmp_path: Path, form: str
) -> None:
    async def moods(request: Received, peer: Peer) -> None:
        match orjson.loads(request.body).get("user"):
            case "breaks":
                await peer.stream_head()
                await peer.token(PROMPT)
                peer.writer.transport.abort()
            case "garbage":
                await peer.send(f"nonsense {request.headers} {PROMPT}\r\n\r\n".encode())
                peer.writer.close()
            case "error":
                await peer.json({"error": {"message": f"no: {PROMPT} {request.headers}"}}, "500 Internal Server Error")
            case _:
                await echo(request, peer)

    async with ScriptedBackend(moods) as backend, ScriptedBackend(models=("gone",)) as gone:
        settings = {
            "backends": [
                {"name": "b0", "url": backend.url, "engine": "openai", "api_key": "${BACKENDKEY}"},
                {"name": "b1", "url": gone.url, "engine": "openai", "api_key": "${BACKENDKEY}", "models": ["gone"]},
            ],
            "keys": [{"name": "editor", "key": "${ROUTERKEY}", "tokens_per_minute": 10_000}],
            "admin_key": "${ADMINKEY}",
            "log": {"level": "debug", "format": form, "calls": True},
        }
        env = {"ROUTERKEY": ROUTERKEY, "BACKENDKEY": BACKENDKEY, "ADMINKEY": ADMINKEY}
        router = await asyncio.to_thread(RouterProcess, settings, folder=tmp_path, env=env)
        try:
            await gone.stop()
            shown: list[bytes] = []
            for fields in ((SHOWN[0],), (f"x-api-key: {WRONGKEY}",), ("X-Request-Id: by-this-id", SHOWN[2])):
                for document in (
                    call(),
                    call(stream=True, user="breaks"),
                    call(user="garbage"),
                    call(user="error"),
                    call(model="gone"),
                    call(model=["not", "a", "name"]),
                    f'{{"messages": "{PROMPT}'.encode(),
                ):
                    async with await connect(router) as client:
                        await client.post(CHAT, document, *fields, f"Cookie: {COOKIE}")
                        answer = await asyncio.wait_for(client.answer(), 10.0)
                        shown += [f"{name}: {value}".encode() for name, value in answer.headers]
            for target in ("/config", "/backends", "/metrics", "/"):
                for key in (ADMINKEY, WRONGKEY):
                    async with await RawClient.connect(int(router.admin.rpartition(":")[2])) as client:
                        await client.request("GET", target, None, f"Authorization: Bearer {key}")
                        shown.append((await client.answer()).body)
            router.process.signal(signal.SIGHUP)
            await eventually(lambda: "reloaded" in router.process.output())
        finally:
            await asyncio.to_thread(router.stop)
    said = router.process.output()
    assert "by-this-id" in said
    assert "editor" in said
    assert "denied" in said
    for secret in (ROUTERKEY, BACKENDKEY, ADMINKEY, WRONGKEY, COOKIE, PROMPT):
        for trace in traces(secret):
            assert trace not in said
            assert trace.encode() not in b"\n".join(shown)
