"""A16: what frames a message belongs to one hop. Copied to the other, it breaks the call or smuggles one."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from tests.cases.apis import CHAT, OLLAMA_CHAT, Api
from tests.rawclient import Answer
from tests.router.running import router_for
from tests.scripted import Peer, Received, Script

BODY = orjson.dumps(CHAT.body(stream=False))
WHOLE = orjson.dumps(CHAT.whole)
STREAM = CHAT.opening + CHAT.token("a") + CHAT.ending
JSON = "Content-Type: application/json"
EVENTS = "Content-Type: text/event-stream"
HOP_BY_HOP = (
    "Connection: keep-alive, X-Private",
    "X-Private: 1",
    "Keep-Alive: timeout=5",
    "TE: trailers",
    "Trailer: X-Sum",
    "Proxy-Connection: keep-alive",
)


async def with_length(request: Received, peer: Peer) -> None:
    await peer.head("200 OK", JSON, f"Content-Length: {len(WHOLE)}", *HOP_BY_HOP, "X-Public: 1")
    await peer.send(WHOLE)


async def chunked(request: Received, peer: Peer) -> None:
    await peer.head("200 OK", JSON, "Transfer-Encoding: chunked", *HOP_BY_HOP, "X-Public: 1")
    for start in range(0, len(WHOLE), 7):
        await peer.chunk(WHOLE[start : start + 7])
    await peer.last_chunk()


async def chunked_with_extensions_and_a_trailer(request: Received, peer: Peer) -> None:
    await peer.head("200 OK", JSON, "transfer-encoding: Chunked", *HOP_BY_HOP, "X-Public: 1")
    await peer.send(b'%x;name="a;b"\r\n%b\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\n\r\n' % (len(WHOLE), WHOLE))


async def until_close(request: Received, peer: Peer) -> None:
    await peer.head("200 OK", JSON, "Connection: close, X-Private", "X-Private: 1", "X-Public: 1")
    await peer.send(WHOLE)
    peer.writer.close()


async def http_1_0(request: Received, peer: Peer) -> None:
    await peer.send(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nX-Public: 1\r\n\r\n" + WHOLE)
    peer.writer.close()


async def after_early_hints(request: Received, peer: Peer) -> None:
    await peer.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nX-Early: 1\r\n\r\n")
    await with_length(request, peer)


FRAMINGS = [with_length, chunked, chunked_with_extensions_and_a_trailer, until_close, http_1_0, after_early_hints]
each_framing = pytest.mark.parametrize("script", FRAMINGS, ids=lambda script: script.__name__)


def assert_framed_once(answer: Answer) -> None:
    names = [name.lower() for name, _ in answer.headers]
    assert names.count("content-length") + names.count("transfer-encoding") == 1
    hop_by_hop = {"keep-alive", "te", "trailer", "proxy-connection", "upgrade", "x-private", "x-early", "x-sum"}
    assert hop_by_hop.isdisjoint(names)
    assert answer.header("x-public") == "1"


@each_framing
async def test_every_framing_of_an_answer_becomes_one_of_ours(script: Script) -> None:
    async with CHAT.backend(script) as backend, router_for(backend) as router, await router.client() as client:
        for _ in range(2):  # the client's connection lives on, whatever became of the backend's
            await client.post(CHAT.path, BODY)
            answer = await client.answer()
            assert answer.complete
            assert answer.body == WHOLE
            assert_framed_once(answer)
            assert answer.header("connection") is None
        assert len(backend.received) == 2


@each_framing
async def test_a_client_of_http_1_0_gets_an_end_that_it_knows(script: Script) -> None:
    async with CHAT.backend(script) as backend, router_for(backend) as router, await router.client() as client:
        await client.send(f"POST {CHAT.path} HTTP/1.0\r\nContent-Length: {len(BODY)}\r\n\r\n".encode() + BODY)
        answer = await client.answer()
        assert answer.header("transfer-encoding") is None
        assert answer.body == WHOLE
        assert await client.reader.read() == b""


@pytest.mark.parametrize(
    "cuts", [[7], [1, 2, 3], [len(BODY)], list(range(1, len(BODY)))], ids=["as_reported", "small", "whole", "bytes"]
)
async def test_a_chunked_call_has_a_length_behind_us(cuts: list[int]) -> None:
    async with CHAT.backend() as backend, router_for(backend) as router, await router.client() as client:
        for _ in range(2):
            head = f"POST {CHAT.path} HTTP/1.1\r\nHost: r\r\n{JSON}\r\nTransfer-Encoding: chunked\r\n\r\n"
            pieces, at = [head.encode()], 0
            for cut in [*cuts, len(BODY)]:
                if cut > at:
                    pieces.append(b"%x\r\n%b\r\n" % (cut - at, BODY[at:cut]))
                    at = cut
            for piece in pieces:
                await client.send(piece)
            await client.send(b"0\r\nX-Trailer: 1\r\n\r\n")
            assert (await client.answer()).status == 200
            received = backend.received[-1]
            assert received.body == BODY
            assert received.one("content-length") == str(len(BODY))
            assert received.all("transfer-encoding") == []
            assert received.all("x-trailer") == []


async def test_fields_for_one_hop_do_not_reach_the_backend() -> None:
    async with CHAT.backend() as backend, router_for(backend) as router:
        fields = (*HOP_BY_HOP, "X-Public: 1", "Proxy-Authorization: Basic eDp5")
        assert (await router.post(CHAT.path, BODY, *fields)).status == 200
        received = backend.received[0]
        for name in ("x-private", "keep-alive", "te", "trailer", "proxy-connection", "proxy-authorization", "upgrade"):
            assert received.all(name) == []
        assert received.one("x-public") == "1"
        assert "x-private" not in (received.one("connection") or "")


@pytest.mark.parametrize("upgrade", ["h2c", "websocket"])
async def test_an_offer_to_upgrade_is_not_taken_up_and_the_call_is_served(upgrade: str) -> None:
    """`curl --http2` makes such an offer with every call to a plain http:// address."""
    async with CHAT.backend() as backend, router_for(backend) as router:
        fields = ("Connection: Upgrade, HTTP2-Settings", f"Upgrade: {upgrade}", "HTTP2-Settings: AAMAAABkAAQAAP__")
        answer = await router.post(CHAT.path, BODY, *fields)
        assert answer.status == 200
        assert backend.received[0].body == BODY
        for name in ("upgrade", "http2-settings"):
            assert backend.received[0].all(name) == []


@pytest.mark.parametrize("api", [CHAT, OLLAMA_CHAT], ids=str)
async def test_a_stream_that_ends_with_the_connection_flows_and_ends_in_chunks(api: Api) -> None:
    go_on = asyncio.Event()

    async def script(request: Received, peer: Peer) -> None:
        await peer.head("200 OK", f"Content-Type: {api.content_type}", "Connection: close")
        await peer.send(api.token("a"))
        await go_on.wait()
        await peer.send(api.ending)
        peer.writer.close()

    async with api.backend(script) as backend, router_for((backend, api.settings)) as router:
        async with await router.client() as client:
            await client.post(api.path, api.body(stream=True))
            answer = await client.answer(head_only=True)
            assert await client.piece(answer) == api.token("a")
            go_on.set()
            await client.rest(answer)
            assert answer.header("transfer-encoding") == "chunked"
            assert answer.complete
            assert answer.body == api.token("a") + api.ending


async def test_a_stream_flows_to_a_client_of_http_1_0_as_well() -> None:
    go_on = asyncio.Event()

    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        await peer.chunk(CHAT.token("a"))
        await go_on.wait()
        await peer.chunk(CHAT.ending)
        await peer.last_chunk()

    async with CHAT.backend(script) as backend, router_for(backend) as router, await router.client() as client:
        body = orjson.dumps(CHAT.body(stream=True))
        await client.send(f"POST {CHAT.path} HTTP/1.0\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await client.answer(head_only=True)
        assert answer.header("transfer-encoding") is None
        assert await client.reader.readexactly(len(CHAT.token("a"))) == CHAT.token("a")
        go_on.set()
        assert await client.reader.read() == CHAT.ending


async def test_a_stream_of_known_length_keeps_its_length() -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.head("200 OK", EVENTS, f"Content-Length: {len(STREAM)}")
        await peer.send(STREAM)

    async with CHAT.backend(script) as backend, router_for(backend) as router:
        answer = await router.post(CHAT.path, CHAT.body(stream=True))
        assert answer.header("content-length") == str(len(STREAM))
        assert answer.header("transfer-encoding") is None
        assert answer.body == STREAM


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"Content-Length: -5\r\n\r\nhello",
        b"Content-Length: 5, 5\r\n\r\nhello",
    ],
)
async def test_an_answer_whose_framing_can_be_read_in_two_ways_is_not_passed_on(head: bytes) -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 200 OK\r\n" + head)

    async with CHAT.backend(script) as backend, router_for(backend) as router, await router.client() as client:
        await client.post(CHAT.path, BODY)
        answer = await client.answer()
        assert answer.status == 502
        assert b"hello" not in answer.body


async def test_bytes_behind_the_end_of_an_answer_are_nobodys() -> None:
    async def script(request: Received, peer: Peer) -> None:
        await with_length(request, peer)
        await peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")

    async with CHAT.backend(script) as backend, router_for(backend) as router, await router.client() as client:
        for _ in range(5):
            await client.post(CHAT.path, BODY)
            assert (await client.answer()).body == WHOLE
