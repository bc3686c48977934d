"""A44: a name means several addresses, not all of which listen, and not the same ones for ever."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases.apis import CHAT
from tests.rawclient import Answer
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually, nobody_accepts

SOON_S = 1.5
"""The case allows 250 ms more than usual; what it must not cost is the two seconds and more of a silent retry."""

needs_ipv6 = pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")


class Names:
    """A resolver whose answers a test can change."""

    def __init__(self) -> None:
        self.addresses: dict[str, list[str]] = {}
        self.asked = 0
        self.slow = threading.Event()
        self.slow.set()
        self._real = socket.getaddrinfo

    def __call__(self, host: Any, port: Any, *args: Any, **more: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name not in self.addresses:
            return self._real(host, port, *args, **more)
        if more.get("flags", args[3] if len(args) > 3 else 0) & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "not a number")
        self.asked += 1
        self.slow.wait(10)
        if not self.addresses[name]:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (
                socket.AF_INET6 if ":" in address else socket.AF_INET,
                socket.SOCK_STREAM,
                socket.IPPROTO_TCP,
                "",
                (address, port, 0, 0) if ":" in address else (address, port),
            )
            for address in self.addresses[name]
        ]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[Names]:
    fake = Names()
    monkeypatch.setattr(socket, "getaddrinfo", fake)
    yield fake
    fake.slow.set()


def at(backend: ScriptedBackend, host: str) -> tuple[ScriptedBackend, dict[str, Any]]:
    """The backend under another name of its host."""
    return backend, {"url": f"http://{host}:{backend.port}"}


async def call(router: Running) -> Answer:
    return await asyncio.wait_for(router.post(CHAT.path, CHAT.body(stream=False)), SOON_S)


@pytest.mark.parametrize("listens", ["127.0.0.1", pytest.param("::1", marks=needs_ipv6)])
@pytest.mark.parametrize("order", [["::1", "127.0.0.1"], ["127.0.0.1", "::1"]], ids=["six first", "four first"])
async def test_localhost_is_whichever_address_listens(names: Names, listens: str, order: list[str]) -> None:
    names.addresses["localhost"] = order
    async with ScriptedBackend(host=listens) as backend, router_for(at(backend, "localhost")) as router:
        for _ in range(3):
            assert (await call(router)).status == 200
        assert backend.received[0].one("host") == f"localhost:{backend.port}"


async def test_localhost_as_this_machine_has_it() -> None:
    async with ScriptedBackend() as backend, router_for(at(backend, "localhost")) as router:
        assert (await call(router)).status == 200


@needs_ipv6
async def test_an_address_in_brackets() -> None:
    async with ScriptedBackend(host="::1") as backend, router_for(backend) as router:
        assert backend.url.startswith("http://[::1]:")
        assert (await call(router)).status == 200
        assert backend.received[0].one("host") == f"[::1]:{backend.port}"


async def test_an_address_that_never_answers_does_not_hold_up_the_next(names: Names) -> None:
    async with ScriptedBackend(host="127.0.0.2") as backend:
        names.addresses["backend.test"] = ["127.0.0.1", "127.0.0.2"]
        with nobody_accepts(backend.port):
            async with router_for(at(backend, "backend.test")) as router:
                for _ in range(3):
                    assert (await call(router)).status == 200


async def test_a_container_that_comes_back_elsewhere_is_found(names: Names) -> None:
    names.addresses["backend.test"] = ["127.0.0.1"]
    quick = {"interval": "50ms"}
    async with ScriptedBackend() as before, router_for(at(before, "backend.test"), health=quick) as router:
        assert (await call(router)).status == 200
        await before.stop()
        names.addresses["backend.test"] = ["127.0.0.2"]
        async with ScriptedBackend(host="127.0.0.2", port=before.port) as after:
            # No longer than the time for which an answer of the resolver is believed.
            await eventually(lambda: len(after.probed) > 0, within_s=5.0)
            await eventually(lambda: router.metric("twolane_backend_up") == 1, within_s=5.0)
            assert (await call(router)).status == 200
            assert len(after.received) == 1


async def test_a_call_finds_the_new_address_before_any_probe_does(names: Names) -> None:
    names.addresses["backend.test"] = ["127.0.0.1"]
    async with ScriptedBackend() as before, router_for(at(before, "backend.test"), health={"interval": "1h"}) as router:
        assert (await call(router)).status == 200
        await before.stop()
        names.addresses["backend.test"] = ["127.0.0.2"]
        async with ScriptedBackend(host="127.0.0.2", port=before.port) as after:
            assert (await call(router)).status == 200
            assert len(after.received) == 1


async def test_an_old_address_that_still_answers_is_left_within_seconds(names: Names) -> None:
    """Another container may have taken it over."""
    names.addresses["backend.test"] = ["127.0.0.1"]

    async def closing(request: Received, peer: Peer) -> None:
        await peer.json(CHAT.whole, "200 OK", "Connection: close")

    async with ScriptedBackend(closing) as old, router_for(at(old, "backend.test")) as router:
        assert (await call(router)).status == 200
        names.addresses["backend.test"] = ["127.0.0.2"]
        async with ScriptedBackend(closing, host="127.0.0.2", port=old.port) as new:
            async with asyncio.timeout(5.0):
                while not new.received:
                    assert (await call(router)).status == 200
                    await asyncio.sleep(0.1)


async def test_a_name_that_is_gone_is_an_error_that_says_so_and_no_pause(names: Names) -> None:
    names.addresses["backend.test"] = ["127.0.0.1"]
    async with (
        ScriptedBackend() as backend,
        router_for(at(backend, "backend.test"), health={"interval": "1h"}) as router,
    ):
        await backend.stop()
        names.addresses["backend.test"] = []
        answer = await call(router)
        assert answer.status == 503
        assert router.app.fleet.backends()[0].health.reason == "the backend's host name is unknown; check its url"


async def test_a_resolver_that_hangs_holds_up_only_its_own_backend(names: Names) -> None:
    names.addresses["slow.test"] = ["127.0.0.1"]
    async with ScriptedBackend() as slow, ScriptedBackend() as other:
        limits = {"connect": "1s"}
        async with router_for(at(slow, "slow.test"), other, timeouts=limits, health={"interval": "1h"}) as router:
            names.slow.clear()
            answers = await asyncio.gather(*(call(router) for _ in range(20)))
            assert {answer.status for answer in answers} == {200}
            assert {answer.header("x-twolane-backend") for answer in answers} == {"b1"}
            names.slow.set()


async def test_many_calls_at_once_ask_the_resolver_once(names: Names) -> None:
    names.addresses["backend.test"] = ["127.0.0.1"]
    async with ScriptedBackend() as backend:
        async with router_for(at(backend, "backend.test"), health={"interval": "1h"}) as router:
            before = names.asked
            answers = await asyncio.gather(*(call(router) for _ in range(50)))
            assert {answer.status for answer in answers} == {200}
            assert names.asked - before == 1
