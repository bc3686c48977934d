"""A18: a backend behind a proxy that goes by names refuses the router's own Host."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cases.apis import CHAT, Api, each_api
from tests.router.running import router_for
from tests.scripted import Peer, Received, ScriptedBackend


class ByName:
    """Serves only those who call it by its own name."""

    backend: ScriptedBackend
    host = ""

    async def __call__(self, request: Received, peer: Peer) -> None:
        if request.all("host") == [self.host or self.backend.url.removeprefix("http://")]:
            await peer.json(CHAT.whole)
        else:
            await peer.json({"error": "no such site"}, "400 Bad Request")


def by_name(api: Api = CHAT, **options: Any) -> ScriptedBackend:
    script = ByName()
    script.backend = api.backend(script, **options)
    return script.backend


@each_api
async def test_the_host_is_that_of_the_backend(api: Api) -> None:
    async with by_name(api) as backend, router_for((backend, api.settings)) as router:
        assert (await router.post(api.path, api.body(stream=False))).status == 200


@pytest.mark.parametrize(
    "lines",
    [
        ("POST {path} HTTP/1.1", "Host: api.example.com"),
        ("POST {path} HTTP/1.1", "Host: [::1]:8080", "X-Forwarded-Host: other.example"),
        ("POST {path} HTTP/1.1", "Host:"),
        ("POST http://api.example.com:99{path} HTTP/1.1", "Host: api.example.com:99"),
        ("POST {path} HTTP/1.0",),
    ],
)
async def test_whatever_the_client_calls_the_router(lines: tuple[str, ...]) -> None:
    names = ["api.example.com"]
    async with by_name() as backend, router_for(backend, hosts=names) as router, await router.client() as client:
        body = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
        head = "\r\n".join((*lines, f"Content-Length: {len(body)}", "", "")).format(path=CHAT.path)
        await client.send(head.encode() + body)
        assert (await client.answer()).status == 200


async def test_a_second_backend_gets_its_own_name() -> None:
    async with by_name() as first, by_name() as second, router_for(first, second, policy="round_robin") as router:
        for _ in range(4):
            assert (await router.post(CHAT.path, CHAT.body(stream=False))).status == 200
        assert len(first.received) == len(second.received) == 2


async def test_a_call_that_goes_to_another_backend_gets_the_name_of_that_one() -> None:
    async with ScriptedBackend() as gone, by_name() as alive, router_for(gone, alive) as router:
        await gone.stop()
        for _ in range(2):
            assert (await router.post(CHAT.path, CHAT.body(stream=False))).status == 200


@pytest.mark.parametrize("host", ["localhost", "[::1]"])
async def test_a_name_and_an_address_of_version_six(host: str) -> None:
    async with by_name(host="::1" if host == "[::1]" else "127.0.0.1") as backend:
        script = backend.script
        assert isinstance(script, ByName)
        script.host = f"{host}:{backend.port}"
        async with router_for((backend, {"url": f"http://{host}:{backend.port}"})) as router:
            assert (await router.post(CHAT.path, CHAT.body(stream=False))).status == 200
