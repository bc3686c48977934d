"""Who may use the admin port: who shows its key, or else who is on this machine and is no page of a stranger."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.settings.load import load
from tests.rawclient import Answer, RawClient
from tests.router.running import Running, router_for
from tests.scripted import ScriptedBackend

KEY = "admin-s3cret"
SHOWN = f"Authorization: Bearer {KEY}"


async def raw(router: Running, head: str) -> Answer:
    """A request whose head is written out."""
    async with await RawClient.connect(router.admin_port) as client:
        await client.send((head + "\r\n\r\n").encode())
        return await client.answer()


@pytest.mark.parametrize("target", ["/", "/metrics", "/backends", "/config", "/nope"])
async def test_with_a_key_everything_needs_it(target: str) -> None:
    async with ScriptedBackend() as backend, router_for(backend, admin_key=KEY) as router:
        for fields in ((), ("Authorization: Bearer wrong",), (f"Authorization: Basic {KEY}",), (f"X-Api-Key: {KEY}",)):
            answer = await router.admin("GET", target, None, *fields)
            assert (answer.status, answer.header("www-authenticate")) == (401, "Bearer")
            assert KEY.encode() not in answer.body
        assert (await router.admin("GET", target, None, SHOWN)).status == (404 if target == "/nope" else 200)


async def test_controls_need_the_key_too() -> None:
    async with ScriptedBackend() as backend, router_for(backend, admin_key=KEY) as router:
        for target in ("/reload", "/drain", "/explain"):
            assert (await router.admin("POST", target, b"")).status == 401
        assert not router.app.gateway.draining


async def test_probes_need_no_key_and_learn_one_word() -> None:
    async with ScriptedBackend() as backend, router_for(backend, admin_key=KEY) as router:
        assert (await router.admin("GET", "/health")).json() == {"status": "ok"}
        assert (await router.admin("GET", "/ready")).json() == {"ready": True}
        known = (await router.admin("GET", "/ready", None, SHOWN)).json()
        assert isinstance(known, dict)
        assert known["backends"] == {"b0": "up"}


async def test_a_page_of_another_origin_cannot_control_a_port_without_a_key() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        for origin in ("http://evil.example", "null", f"http://127.0.0.1:{router.admin_port + 1}"):
            answer = await router.admin("POST", "/drain", b"", f"Origin: {origin}")
            assert answer.status == 403
        assert not router.app.gateway.draining
        own = f"127.0.0.1:{router.admin_port}"
        head = f"POST /explain HTTP/1.1\r\nHost: {own}\r\nOrigin: http://{own}\r\nContent-Length: 0"
        assert (await raw(router, head)).status == 400  # let in, and an empty body is no question


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8081", 200),
        ("twolane.localhost:1", 200),
        ("127.0.0.1:8081", 200),
        ("[::1]:8081", 200),
        ("192.168.1.5", 200),
        ("evil.example", 403),
        ("evil.example:8081", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example", 403),
        ("[::1", 403),
    ],
)
async def test_without_a_key_only_names_that_nobody_can_point_elsewhere_are_answered(host: str, status: int) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        assert (await raw(router, f"GET /config HTTP/1.1\r\nHost: {host}")).status == status


async def test_with_a_key_any_name_will_do() -> None:
    async with ScriptedBackend() as backend, router_for(backend, admin_key=KEY) as router:
        assert (await raw(router, f"GET /config HTTP/1.1\r\nHost: router.example\r\n{SHOWN}")).status == 200


async def test_a_reload_brings_another_key(tmp_path: Path) -> None:
    path = tmp_path / "twolane.yaml"
    async with ScriptedBackend() as backend:
        text = (
            f"listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nbackends: [{{name: b0, url: '{backend.url}', engine: openai}}]\n"
        )
        path.write_text(text + "admin_key: old\n", encoding="utf-8")
        assert load(path, {}).settings.admin_key is not None
        options = {"engine": "openai", "lane": None}
        async with router_for((backend, options), path=path, admin_key="old") as router:
            path.write_text(text + "admin_key: new\n", encoding="utf-8")
            assert (await router.admin("POST", "/reload", b"", "Authorization: Bearer old")).status == 200
            assert (await router.admin("GET", "/", None, "Authorization: Bearer old")).status == 401
            assert (await router.admin("GET", "/", None, "Authorization: Bearer new")).status == 200


async def test_the_key_is_not_in_the_settings_that_are_shown() -> None:
    async with (
        ScriptedBackend() as backend,
        router_for(backend, admin_key=KEY, keys=[{"name": "a", "key": "k-s3cret"}]) as router,
    ):
        shown = (await router.admin("GET", "/config", None, SHOWN)).body
        assert b"s3cret" not in shown
        assert b'"admin_key"' in shown
