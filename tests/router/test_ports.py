"""Where the router listens and over what: TLS, unix sockets, both families of addresses; and likewise its backends."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from router.app import App
from router.settings.load import load
from router.settings.model import Settings
from tests.certificates import Authority, Pair
from tests.rawclient import Answer, RawClient
from tests.router.running import router_for, settings_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

CHAT = "/v1/chat/completions"
CALL = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def sockets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose path is short enough for a socket."""
    return tmp_path_factory.mktemp("s")


async def asked(client: RawClient, target: str = CHAT) -> Answer:
    async with client:
        await client.post(target, CALL)
        return await asyncio.wait_for(client.answer(), 5.0)


async def status_of_admin(client: RawClient) -> int:
    async with client:
        await client.request("GET", "/health")
        return (await asyncio.wait_for(client.answer(), 5.0)).status


@asynccontextmanager
async def started(settings: Settings, path: Path | None = None) -> AsyncIterator[App]:
    app = App(settings, path)
    try:
        await app.start()
        yield app
    finally:
        await app.close()


async def stream(request: Received, peer: Peer) -> None:
    await peer.stream_head()
    for text in "abc":
        await peer.token(text)
    await peer.last_chunk()


# --- TLS in front


async def test_both_ports_speak_tls_with_one_certificate(authority: Authority) -> None:
    pair = authority.pair("localhost")
    async with ScriptedBackend(stream) as backend, router_for(backend, tls=pair.settings) as router:
        client = await RawClient.connect(router.port, tls=authority.trusted())
        answer = await asked(client)
        assert (answer.status, answer.complete, answer.body.count(b"data: ")) == (200, True, 3)
        assert backend.received[0].one("x-forwarded-proto") == "https"
        assert await status_of_admin(await RawClient.connect(router.admin_port, tls=authority.trusted())) == 200
        for port in (router.port, router.admin_port):
            with pytest.raises(ssl.SSLCertVerificationError):
                await RawClient.connect(port, tls=ssl.create_default_context())


async def test_a_connection_over_tls_is_kept_for_further_calls(authority: Authority) -> None:
    async with ScriptedBackend() as backend, router_for(backend, tls=authority.pair("localhost").settings) as router:
        async with await RawClient.connect(router.port, tls=authority.trusted()) as client:
            for _ in range(3):
                await client.post(CHAT, CALL)
                assert (await client.answer()).status == 200


async def test_who_speaks_plain_http_to_it_gets_nothing_and_disturbs_nobody(authority: Authority) -> None:
    async with ScriptedBackend() as backend, router_for(backend, tls=authority.pair("localhost").settings) as router:
        async with await RawClient.connect(router.port) as plain:
            await plain.send(b"GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b"HTTP" not in await asyncio.wait_for(plain.reader.read(), 5.0)
        assert (await asked(await RawClient.connect(router.port, tls=authority.trusted()))).status == 200


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_versions_that_hold_are_spoken(authority: Authority, version: ssl.TLSVersion) -> None:
    context = authority.trusted()
    context.minimum_version = context.maximum_version = version
    async with ScriptedBackend() as backend, router_for(backend, tls=authority.pair("localhost").settings) as router:
        assert (await asked(await RawClient.connect(router.port, tls=context))).status == 200


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_older_versions_are_not(authority: Authority) -> None:
    context = authority.trusted()
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with ScriptedBackend() as backend, router_for(backend, tls=authority.pair("localhost").settings) as router:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await RawClient.connect(router.port, tls=context)


async def test_an_answer_that_ends_the_connection_arrives_whole(authority: Authority) -> None:
    async with ScriptedBackend() as backend, router_for(backend, tls=authority.pair("localhost").settings) as router:
        async with await RawClient.connect(router.port, tls=authority.trusted()) as client:
            await client.send(b"GET /v1/models HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            answer = await client.answer()
            assert (answer.status, answer.complete) == (200, True)
            assert await asyncio.wait_for(client.reader.read(), 5.0) == b""
        async with await RawClient.connect(router.port, tls=authority.trusted()) as client:
            await client.send(b"nonsense\r\n\r\n" + b"x" * 1000)
            assert (await client.answer()).status == 400


async def test_a_client_that_leaves_over_tls_ends_its_call(authority: Authority) -> None:
    ended = asyncio.Event()

    async def silent(request: Received, peer: Peer) -> None:
        await peer.until_closed()
        ended.set()

    async with (
        ScriptedBackend(silent) as backend,
        router_for(backend, tls=authority.pair("localhost").settings) as router,
    ):
        async with await RawClient.connect(router.port, tls=authority.trusted()) as client:
            await client.post(CHAT, CALL)
            await eventually(lambda: bool(backend.received))
        await asyncio.wait_for(ended.wait(), 5.0)
        await eventually(lambda: router.idle)


async def test_a_broken_answer_does_not_look_complete_over_tls(authority: Authority) -> None:
    async def breaks(request: Received, peer: Peer) -> None:
        await peer.head("200 OK", "Content-Type: application/json", "Content-Length: 1000")
        await peer.send(b"{")
        peer.writer.transport.abort()

    async with (
        ScriptedBackend(breaks) as backend,
        router_for(backend, tls=authority.pair("localhost").settings) as router,
    ):
        async with await RawClient.connect(router.port, tls=authority.trusted()) as client:
            await client.post(CHAT, CALL)
            answer = await client.answer(head_only=True)
            with pytest.raises((ConnectionError, ssl.SSLError, asyncio.IncompleteReadError)):
                await client.reader.readexactly(int(answer.header("content-length") or 0))


def certificate_of(client: RawClient) -> object:
    """Serial number of what the server showed."""
    return client.writer.get_extra_info("peercert")["serialNumber"]


def write(path: Path, backend: ScriptedBackend, pair: Pair) -> None:
    entry = {"name": "b0", "url": backend.url, "engine": "openai", "lane": "latency"}
    listen = "127.0.0.1:0"
    document = {"listen": listen, "admin": listen, "backends": [entry], "tls": pair.settings}
    path.write_text(yaml.safe_dump(document), encoding="utf-8")


async def test_a_renewed_certificate_is_shown_without_a_restart_and_open_connections_stay(
    authority: Authority, tmp_path: Path
) -> None:
    pair, path = authority.pair("localhost"), tmp_path / "twolane.yaml"
    async with ScriptedBackend() as backend:
        write(path, backend, pair)
        async with router_for(backend, path=path, digest=load(path, {}).digest, tls=pair.settings) as router:
            first = await RawClient.connect(router.port, tls=authority.trusted())
            old = certificate_of(first)
            authority.pair("localhost")  # nothing but the two files changes
            await eventually(lambda: router.metric("twolane_reloads_total", result="ok") >= 1)
            for port in (router.port, router.admin_port):
                async with await RawClient.connect(port, tls=authority.trusted()) as client:
                    assert certificate_of(client) != old
            assert (await asked(first)).status == 200


async def test_a_bad_certificate_is_not_taken_over(authority: Authority, tmp_path: Path) -> None:
    pair, path = authority.pair("localhost"), tmp_path / "twolane.yaml"
    async with ScriptedBackend() as backend:
        write(path, backend, pair)
        async with router_for(backend, path=path, tls=pair.settings) as router:
            pair.cert.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", encoding="utf-8")
            refused = await router.app.reload()
            assert refused["reloaded"] is False
            assert "tls.cert: expected a certificate and a private key in PEM form" in refused["problems"][0]
            assert (await asked(await RawClient.connect(router.port, tls=authority.trusted()))).status == 200


# --- TLS behind


@pytest.mark.parametrize(
    ("names", "options", "works"),
    [
        (("localhost", "127.0.0.1"), {"ca_file": True}, True),
        (("localhost", "127.0.0.1"), {}, False),
        (("other.example",), {"ca_file": True}, False),
        (("other.example",), {"insecure_skip_verify": True}, True),
    ],
)
async def test_a_backend_has_to_prove_who_it_is(
    authority: Authority, names: tuple[str, ...], options: dict[str, Any], works: bool
) -> None:
    given = {**options, **({"ca_file": str(authority.file)} if "ca_file" in options else {})}
    async with ScriptedBackend(stream, tls=authority.pair(*names).context()) as backend:
        async with router_for((backend, given)) as router:
            answer = await asked(await router.client())
            assert answer.status == (200 if works else 503)
            assert bool(backend.received) is works
            states = set(router.app.fleet.states().values())
            assert states == ({"up"} if works else {"down"})
            if works:
                assert answer.body.count(b"data: ") == 3


async def test_another_authority_counts_after_a_reload(authority: Authority, tmp_path: Path) -> None:
    path = tmp_path / "twolane.yaml"
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    ca_file = tmp_path / "ca.pem"
    ca_file.write_bytes(Authority(wrong).file.read_bytes())
    async with ScriptedBackend(tls=authority.pair("127.0.0.1").context()) as backend:
        options = {"ca_file": str(ca_file)}
        entry = {"name": "b0", "url": backend.url, "engine": "openai", "lane": "latency", **options}
        listen = "127.0.0.1:0"
        path.write_text(yaml.safe_dump({"listen": listen, "admin": listen, "backends": [entry]}), encoding="utf-8")
        async with router_for((backend, options), path=path) as router:
            assert (await asked(await router.client())).status == 503
            ca_file.write_bytes(authority.file.read_bytes())
            await router.app.reload()
            await eventually(lambda: router.app.ready()[0])
            assert (await asked(await router.client())).status == 200


# --- unix sockets


def on_sockets(folder: Path, *backends: ScriptedBackend, **rest: Any) -> Settings:
    """Settings of a router that listens on two sockets in this folder."""
    return settings_for(*backends, listen=f"unix:{folder}/public", admin=f"unix:{folder}/admin", **rest)


async def test_clients_backends_and_the_admin_may_all_use_unix_sockets(sockets: Path) -> None:
    async with ScriptedBackend(stream, path=f"{sockets}/backend") as backend:
        async with started(on_sockets(sockets, backend)):
            answer = await asked(await RawClient.connect_unix(f"{sockets}/public"))
            assert (answer.status, answer.complete, answer.body.count(b"data: ")) == (200, True, 3)
            assert backend.received[0].one("host") == "localhost"
            assert backend.received[0].all("x-forwarded-for") == []
            assert await status_of_admin(await RawClient.connect_unix(f"{sockets}/admin")) == 200


async def test_connections_to_a_unix_socket_are_kept_and_a_closed_one_is_replaced(sockets: Path) -> None:
    async with ScriptedBackend(path=f"{sockets}/backend", keep_alive_s=0.05) as backend:
        async with started(on_sockets(sockets, backend)) as app:
            for pause_s in (0.0, 0.0, 0.2):
                await asyncio.sleep(pause_s)
                assert (await asked(await RawClient.connect_unix(f"{sockets}/public"))).status == 200
            pool = app.upstreams.pool(app.fleet.backends()[0])
            assert "1 idle" in repr(pool)
        assert len(backend.received) == 3


async def test_a_backend_whose_socket_is_not_there_is_down_and_comes_back(sockets: Path) -> None:
    backend = ScriptedBackend(path=f"{sockets}/backend")
    async with started(on_sockets(sockets, backend)) as app:
        assert (await asked(await RawClient.connect_unix(f"{sockets}/public"))).status == 503
        async with backend:
            await eventually(lambda: app.ready()[0])
            assert (await asked(await RawClient.connect_unix(f"{sockets}/public"))).status == 200


@pytest.mark.parametrize(("mode", "bits"), [("660", 0o660), ("600", 0o600), ("666", 0o666)])
async def test_sockets_have_the_permissions_that_were_asked_for(sockets: Path, mode: str, bits: int) -> None:
    before = os.umask(0o077)
    try:
        async with ScriptedBackend() as backend, started(on_sockets(sockets, backend, socket_mode=mode)):
            for name in ("public", "admin"):
                found = (sockets / name).stat().st_mode
                assert stat.S_ISSOCK(found)
                assert stat.S_IMODE(found) == bits
    finally:
        os.umask(before)


async def test_sockets_go_when_the_router_goes(sockets: Path) -> None:
    async with ScriptedBackend() as backend:
        async with started(on_sockets(sockets, backend)) as app:
            await app.drain()
            assert not (sockets / "public").exists()
            assert (sockets / "admin").exists()
        assert not (sockets / "admin").exists()


async def test_what_a_killed_router_left_is_replaced(sockets: Path) -> None:
    for name in ("public", "admin"):
        left = socket.socket(socket.AF_UNIX)
        left.bind(f"{sockets}/{name}")
        left.close()
    async with ScriptedBackend() as backend, started(on_sockets(sockets, backend)):
        assert (await asked(await RawClient.connect_unix(f"{sockets}/public"))).status == 200


async def test_a_socket_on_which_somebody_listens_is_left_alone(sockets: Path) -> None:
    async with ScriptedBackend() as backend, started(on_sockets(sockets, backend)):
        with pytest.raises(OSError, match="another process listens on this socket"):
            async with started(on_sockets(sockets, backend)):
                raise AssertionError("two routers on one socket")
        assert (await asked(await RawClient.connect_unix(f"{sockets}/public"))).status == 200


async def test_a_file_that_is_no_socket_is_left_alone(sockets: Path) -> None:
    (sockets / "public").write_text("precious", encoding="utf-8")
    async with ScriptedBackend() as backend:
        with pytest.raises(OSError, match="a file that is no socket has this path"):
            async with started(on_sockets(sockets, backend)):
                raise AssertionError("it listens")
    assert (sockets / "public").read_text(encoding="utf-8") == "precious"


async def test_a_socket_that_somebody_else_put_there_meanwhile_is_not_removed(sockets: Path) -> None:
    async with ScriptedBackend() as backend:
        async with started(on_sockets(sockets, backend)):
            (sockets / "public").unlink()
            (sockets / "public").write_text("a successor's", encoding="utf-8")
        assert (sockets / "public").exists()


# --- addresses


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_ipv6_is_an_address_like_any_other_on_both_sides(host: str) -> None:
    shown = f"[{host}]:0" if ":" in host else f"{host}:0"
    async with ScriptedBackend(host=host) as backend:
        app = App(settings_for(backend, listen=shown, admin=shown))
        try:
            listen, admin = await app.start()
            assert admin is not None
            assert (await asked(await RawClient.connect(listen.port, host=host))).status == 200
            assert await status_of_admin(await RawClient.connect(admin.port, host=host)) == 200
            assert backend.received[0].one("x-forwarded-for") == host
        finally:
            await app.close()


async def test_every_address_means_both_families() -> None:
    async with ScriptedBackend() as backend:
        everywhere = {"listen": "[::]:0", "admin": "[::]:0", "insecure": True, "admin_key": "k"}
        app = App(settings_for(backend, **everywhere))
        try:
            listen, admin = await app.start()
            assert admin is not None
            for host in ("::1", "127.0.0.1"):
                assert (await asked(await RawClient.connect(listen.port, host=host))).status == 200
                assert await status_of_admin(await RawClient.connect(admin.port, host=host)) == 200
            assert [request.one("x-forwarded-for") for request in backend.received] == ["::1", "127.0.0.1"]
        finally:
            await app.close()


# --- who is said to be calling


@pytest.mark.parametrize(
    ("trusted", "told"),
    [((), ("127.0.0.1", "http", [])), (("127.0.0.0/8",), ("1.2.3.4, 127.0.0.1", "https", ["chat.example"]))],
)
async def test_claims_of_the_caller_pass_only_from_trusted_proxies(
    trusted: tuple[str, ...], told: tuple[str, str, list[str]]
) -> None:
    claims = ("X-Forwarded-For: 1.2.3.4", "X-Forwarded-Proto: https", "X-Forwarded-Host: chat.example")
    async with ScriptedBackend() as backend, router_for(backend, trusted_proxies=trusted) as router:
        assert (await router.post(CHAT, CALL, *claims)).status == 200
        seen = backend.received[0]
        assert (seen.one("x-forwarded-for"), seen.one("x-forwarded-proto"), seen.all("x-forwarded-host")) == told
