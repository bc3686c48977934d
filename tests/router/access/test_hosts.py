"""By which names a router without keys may be called: none that a stranger could point at this machine."""

from __future__ import annotations

from typing import Any

import pytest

from router.access.hosts import Hosts
from router.errors import Forbidden
from router.settings.model import Settings
from tests.rawclient import RawClient
from tests.router.running import router_for
from tests.scripted import ScriptedBackend

KEYS = [{"name": "a", "key": "k"}]


def hosts(**given: Any) -> Hosts:
    return Hosts(Settings.model_validate({"backends": [{"name": "a", "url": "http://127.0.0.1:9"}], **given}))


def refused(found: Hosts, host: str | None) -> bool:
    try:
        found.check(host)
    except Forbidden as error:
        return "`hosts`" in error.message
    return False


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "127.0.0.1:8080",
        "[::1]:8080",
        "[::1]",
        "10.0.0.7",
        "localhost:8080",
        "LOCALHOST.",
        "app.localhost:8080",
        "box",
        "box.local:8080",
        "host.docker.internal:8080",
        "models.example.com",
        "Models.Example.Com.:443",
    ],
)
def test_addresses_names_of_nobody_and_those_in_the_settings_are_taken(host: str | None) -> None:
    found = hosts(hosts=["Models.example.com"])
    for _ in range(2):
        assert not refused(found, host)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "a.b:x", "[::1", "1.2.3"]
)
def test_a_name_that_a_stranger_may_own_is_refused_each_time(host: str) -> None:
    found = hosts()
    for _ in range(2):
        assert refused(found, host)


@pytest.mark.parametrize(
    "given", [{"keys": KEYS}, {"listen": "0.0.0.0:80", "insecure": True}, {"listen": "unix:/run/a"}]
)
def test_where_keys_are_asked_for_or_others_may_come_anyway_names_do_not_matter(given: dict[str, Any]) -> None:
    assert not refused(hosts(**given), "evil.example")


def test_what_is_remembered_is_bounded() -> None:
    found = hosts()
    for number in range(1000):
        found.check(f"box{number}.local")
    assert len(found._known) <= 256


async def _called_as(port: int, host: str, path: str) -> tuple[int, bytes]:
    body = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}'
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
    async with await RawClient.connect(port) as client:
        await client.send(head.encode() + body)
        answer = await client.answer()
        return answer.status, answer.body


@pytest.mark.parametrize(
    ("path", "shape"),
    [
        ("/v1/chat/completions", b'"code":"not_allowed"'),
        ("/v1/messages", b'"type":"permission_error"'),
        ("/api/chat", b'{"error":"without keys'),
        ("/v1/unknown", b'"code":"not_allowed"'),
    ],
)
async def test_a_page_at_a_name_that_leads_here_gets_a_refusal_in_the_shape_of_the_api(path: str, shape: bytes) -> None:
    async with ScriptedBackend() as backend, router_for((backend, {"engine": "vllm"}), passthrough="b0") as router:
        status, body = await _called_as(router.port, f"evil.example:{router.port}", path)
        assert (status, shape in body, backend.received) == (403, True, [])
