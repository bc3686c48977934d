"""Comment lines for streamed calls that wait in the line, and what follows them, byte for byte."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import orjson
import pytest

from router.pings import PING
from router.wire.server_exchange import HttpExchange
from tests.cases.apis import OLLAMA_CHAT
from tests.rawclient import Answer, RawClient
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

CHAT = "/v1/chat/completions"
STREAM = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\r\n\r\n: theirs\n\ndata: [DONE]\n\n'
FEW = {"queue_pings": "30ms"}


def chat(text: str = "hi", **rest: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], "stream": True, **rest}


@dataclass
class Held:
    """A router with one place, which is taken until `free`."""

    router: Running
    backend: ScriptedBackend
    released: asyncio.Event

    def free(self) -> None:
        self.released.set()

    async def pinged(self, target: str = CHAT, document: object = None, *fields: str) -> tuple[RawClient, Answer]:
        """A client whose call waits and has got a ping."""
        client = await self.router.client()
        await client.post(target, chat() if document is None else document, *fields)
        answer = await asyncio.wait_for(client.answer(head_only=True), 5.0)
        assert await client.piece(answer) == PING
        return client, answer


@asynccontextmanager
async def held(
    answer: Any,
    line: dict[str, Any] | None = None,
    *others: ScriptedBackend | tuple[ScriptedBackend, dict[str, Any]],
    **rest: Any,
) -> AsyncIterator[Held]:
    """`answer` is the script for all calls but the first, which is silent until it is let go."""
    released = asyncio.Event()

    async def script(request: Received, peer: Peer) -> None:
        if b"first" in request.body:
            await released.wait()
            await peer.json({"choices": []})
        else:
            await answer(request, peer)

    async with (
        ScriptedBackend(script) as backend,
        router_for(
            (backend, {"max_inflight": 1, "engine": "vllm"}),
            *others,
            line=FEW if line is None else line,
            policy="round_robin",
            **rest,
        ) as router,
    ):
        first = asyncio.get_running_loop().create_task(router.post(CHAT, chat("first", stream=False)))
        await eventually(lambda: len(backend.received) == 1)
        try:
            yield Held(router, backend, released)
        finally:
            released.set()
            await first
        await eventually(lambda: router.idle)


async def streamed(request: Received, peer: Peer) -> None:
    await peer.stream_head("X-Theirs: 1")
    await peer.chunk(STREAM[:20])
    await peer.chunk(STREAM[20:])
    await peer.last_chunk()


def behind_pings(body: bytes) -> bytes:
    while body.startswith(PING):
        body = body.removeprefix(PING)
    return body


async def test_a_call_that_waits_gets_pings_and_then_the_stream_as_it_was_sent() -> None:
    async with held(streamed) as place:
        client, answer = await place.pinged()
        assert answer.status == 200
        assert answer.header("content-type") == "text/event-stream"
        assert answer.header("cache-control") == "no-cache"
        assert answer.header("x-accel-buffering") == "no"
        assert answer.header("x-twolane-class") == "ttft"
        assert answer.header("x-request-id")
        assert answer.header("x-twolane-backend") is None, "nobody knows yet"
        assert await client.piece(answer) == PING
        place.free()
        await client.rest(answer)
        assert answer.complete
        assert answer.body.count(PING) >= 2
        assert behind_pings(answer.body) == STREAM
        assert place.backend.received[1].all("accept-encoding") == ["identity"]
        # The connection is as good as before.
        await client.post(CHAT, chat())
        again = await client.answer()
        assert again.body == STREAM
        assert again.header("x-theirs") == "1"
        assert again.header("x-twolane-backend") == "b0"
        client.close()


@pytest.mark.parametrize(
    ("line", "target", "document"),
    [
        ({}, CHAT, chat()),
        (FEW, CHAT, chat(stream=False)),
        (FEW, OLLAMA_CHAT.path, OLLAMA_CHAT.call),
        ({"queue_pings": "1m"}, CHAT, chat()),
    ],
)
async def test_without_need_the_answer_begins_with_the_backends_own_head(
    line: dict[str, Any], target: str, document: object
) -> None:
    """Off by default; no stream; an API without comments; a wait that is short."""
    async with held(streamed, line) as place, await place.router.client() as client:
        await client.post(target, document)
        if target == CHAT:
            await eventually(lambda: len(place.router.app.line) == 1)
            await asyncio.sleep(0.1)
            place.free()
        answer = await client.answer()
        if target == CHAT:
            assert (answer.status, answer.body, answer.header("x-theirs")) == (200, STREAM, "1")
        else:
            assert answer.status == 404, "no backend offers it, and that is said before any wait"


async def test_ollama_streams_get_no_pings() -> None:
    line = b'{"message":{"content":"a"},"done":false}\n'

    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head(content_type="application/x-ndjson")
        await peer.chunk(line)
        await peer.last_chunk()

    released = asyncio.Event()

    async def slow(request: Received, peer: Peer) -> None:
        if not released.is_set():
            await released.wait()
        await script(request, peer)

    options = {"max_inflight": 1, "engine": "ollama"}
    async with OLLAMA_CHAT.backend(slow) as backend:
        async with router_for((backend, options), line=FEW, policy="round_robin") as router:
            first = asyncio.get_running_loop().create_task(router.post(OLLAMA_CHAT.path, OLLAMA_CHAT.call))
            await eventually(lambda: len(backend.received) == 1)
            second = asyncio.get_running_loop().create_task(router.post(OLLAMA_CHAT.path, OLLAMA_CHAT.call))
            await eventually(lambda: len(router.app.line) == 1)
            await asyncio.sleep(0.1)
            released.set()
            for answer in (await first, await second):
                assert answer.body == line
                assert answer.header("x-twolane-backend") == "b0"


ERRORS = {
    CHAT: b'data: {"error":{"message":"%b","type":"server_error","param":null,"code":"%b"}}\n\n',
    "/v1/messages": b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"%b"}}\n\n',
    "/v1/responses": b'event: error\ndata: {"message":"%b","type":"error","param":null,"code":"%b","error":',
}


@pytest.mark.parametrize("target", ERRORS)
async def test_who_waited_in_vain_is_told_so_in_the_stream(target: str) -> None:
    document = chat(max_tokens=5) if target != "/v1/responses" else {"model": "m", "input": "hi", "stream": True}
    async with held(streamed, classes={"ttft": {"max_wait": "200ms"}}) as place:
        client, answer = await place.pinged(target, document)
        await client.rest(answer)
        assert answer.complete, "nothing of it is missing"
        event = behind_pings(answer.body)
        start, _, end = ERRORS[target].partition(b"%b")
        assert event.startswith(start + b"no backend had room within 0.2 s")
        assert event.endswith(b"\n\n")
        assert end.replace(b"%b", b"waited_too_long") in event
        assert event.count(b"\n\n") == 1
        metric = place.router.metric("twolane_calls_total", outcome="rejected")
        assert metric == 1
        client.close()


REFUSALS: dict[str, tuple[str, object, bytes]] = {
    "openai_400": (
        "400 Bad Request",
        {"error": {"message": "too long", "type": "invalid_request_error", "param": "messages", "code": "ctx"}},
        b'data: {"error":{"message":"too long","type":"invalid_request_error","param":"messages","code":"ctx"}}\n\n',
    ),
    "vllm_404": (
        "404 Not Found",
        {"object": "error", "message": "no such model", "type": "NotFoundError", "param": None, "code": 404},
        b'data: {"error":{"message":"no such model","type":"invalid_request_error","param":null,'
        b'"code":"backend_error"}}\n\n',
    ),
    "fastapi_500": (
        "500 Internal Server Error",
        {"detail": "it broke"},
        b'data: {"error":{"message":"it broke","type":"server_error","param":null,"code":"backend_error"}}\n\n',
    ),
    "not_json": (
        "502 Bad Gateway",
        b"<html>\n\nBad\n</html>",
        b'data: {"error":{"message":"the backend answered with status 502","type":"server_error","param":null,'
        b'"code":"backend_error"}}\n\n',
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
async def test_a_backends_refusal_is_told_in_the_stream_in_its_own_words(case: str) -> None:
    status, said, event = REFUSALS[case]

    async def script(request: Received, peer: Peer) -> None:
        if isinstance(said, bytes):
            await peer.head(status, "Content-Type: text/html", "Transfer-Encoding: chunked")
            await peer.chunk(said)
            await peer.last_chunk()
        else:
            await peer.json(said, status)

    async with held(script) as place:
        client, answer = await place.pinged()
        place.free()
        await client.rest(answer)
        assert answer.complete
        assert behind_pings(answer.body) == event
        await client.post(CHAT, chat())
        assert (await client.answer()).status == int(status[:3]), "without pings it passes as it came"
        client.close()


async def test_an_anthropic_refusal_keeps_its_type() -> None:
    said = {"type": "error", "error": {"type": "invalid_request_error", "message": "max_tokens: too large"}}

    async def script(request: Received, peer: Peer) -> None:
        await peer.json(said, "400 Bad Request")

    async with held(script) as place:
        client, answer = await place.pinged("/v1/messages", chat(max_tokens=5))
        place.free()
        await client.rest(answer)
        assert behind_pings(answer.body) == b"event: error\ndata: %b\n\n" % orjson.dumps(said)
        client.close()


@pytest.mark.parametrize(
    ("fields", "body"),
    [
        (("Content-Type: application/json",), b'{"choices":[]}'),
        (("Content-Type: text/event-stream", "Content-Encoding: sdch"), b"??"),
    ],
)
async def test_what_is_no_stream_cannot_follow(fields: tuple[str, ...], body: bytes) -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.head("200 OK", *fields, f"Content-Length: {len(body)}")
        await peer.send(body)

    async with held(script) as place:
        client, answer = await place.pinged()
        place.free()
        await client.rest(answer)
        assert answer.complete
        event = behind_pings(answer.body)
        assert event.startswith(b'data: {"error":{"message":"the backend answered with ')
        assert b"line.queue_pings" in event
        assert body not in event
        assert place.router.metric("twolane_calls_total", outcome="backend_error") == 1
        client.close()


async def test_a_compressed_stream_is_undone_since_its_head_has_left() -> None:
    async def script(request: Received, peer: Peer) -> None:
        packed = gzip.compress(STREAM)
        await peer.stream_head("Content-Encoding: gzip")
        for start in range(0, len(packed), 7):
            await peer.chunk(packed[start : start + 7])
        await peer.last_chunk()

    async with held(script) as place:
        client, answer = await place.pinged(CHAT, chat(), "Accept-Encoding: gzip")
        place.free()
        await client.rest(answer)
        assert answer.complete
        assert answer.header("content-encoding") is None
        assert behind_pings(answer.body) == STREAM
        client.close()


@pytest.mark.parametrize("behind", [(), (b"\xff\xff\xff",), (b"\xff\xff\xff", b"more")])
async def test_a_compressed_stream_that_is_corrupt_or_cut_off_inside_is_not_made_to_look_complete(
    behind: tuple[bytes, ...],
) -> None:
    event = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'

    async def script(request: Received, peer: Peer) -> None:
        packing = zlib.compressobj(wbits=31)
        await peer.stream_head("Content-Encoding: gzip")
        await peer.chunk(packing.compress(event) + packing.flush(zlib.Z_SYNC_FLUSH))
        for piece in behind:
            await asyncio.sleep(0.05)
            await peer.chunk(piece)
        await peer.last_chunk()

    async with held(script) as place:
        client, answer = await place.pinged()
        place.free()
        await client.rest(answer)
        assert not answer.complete
        text = behind_pings(answer.body)
        assert text.startswith(event)
        assert b'"code":"backend_failed"' in text.removeprefix(event)
        client.close()
        await eventually(lambda: place.router.metric("twolane_calls_total", outcome="backend_error") == 1)


async def test_a_compressed_stream_that_has_said_its_end_lacks_nothing_without_that_of_its_coding() -> None:
    async def script(request: Received, peer: Peer) -> None:
        packing = zlib.compressobj(wbits=31)
        await peer.stream_head("Content-Encoding: gzip")
        await peer.chunk(packing.compress(STREAM) + packing.flush(zlib.Z_SYNC_FLUSH))
        await peer.last_chunk()

    async with held(script) as place:
        client, answer = await place.pinged()
        place.free()
        await client.rest(answer)
        assert answer.complete
        assert behind_pings(answer.body) == STREAM
        client.close()


async def test_a_stream_that_breaks_after_pings_is_not_made_to_look_complete() -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        await peer.token("a")
        await asyncio.sleep(0.05)
        peer.reset()

    async with held(script) as place:
        client, answer = await place.pinged()
        place.free()
        await client.rest(answer)
        assert not answer.complete
        assert b'"content":"a"' in answer.body
        assert b'"code":"backend_failed"' in answer.body
        client.close()


async def test_a_backend_that_dies_before_its_head_is_told_of_in_the_stream() -> None:
    async def script(request: Received, peer: Peer) -> None:
        peer.reset()

    async with held(script) as place:
        client, answer = await place.pinged()
        place.free()
        await client.rest(answer)
        assert answer.complete
        assert b'"code":"backend_failed"' in behind_pings(answer.body)
        client.close()


async def test_another_backend_is_tried_after_pings() -> None:
    """The one that had room turned out to be loading its model; the call waits on and is served by the other."""
    loading = {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}

    async def script(request: Received, peer: Peer) -> None:
        await peer.json(loading, "503 Service Unavailable")

    gone = asyncio.Event()

    async def busy(request: Received, peer: Peer) -> None:
        if b"second" in request.body:
            await gone.wait()
        await streamed(request, peer)

    async with ScriptedBackend(busy) as second:
        async with held(script, FEW, (second, {"max_inflight": 1})) as place:
            other = asyncio.get_running_loop().create_task(place.router.post(CHAT, chat("second")))
            await eventually(lambda: len(second.received) == 1)
            client, answer = await place.pinged()
            place.free()
            await eventually(lambda: len(place.backend.received) == 2)
            for _ in range(2):
                assert await client.piece(answer) == PING
            gone.set()
            await client.rest(answer)
            assert answer.complete
            assert behind_pings(answer.body) == STREAM
            await other
            client.close()


async def test_a_client_that_leaves_while_it_is_pinged_reaches_no_backend() -> None:
    async with held(streamed) as place:
        client, _ = await place.pinged()
        client.close()
        await eventually(lambda: len(place.router.app.line) == 0)
        place.free()
        await eventually(lambda: place.router.idle)
        assert len(place.backend.received) == 1
        assert place.router.metric("twolane_calls_total", outcome="client_gone") == 1


async def test_a_client_that_does_not_read_gets_no_more_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing piles up for it; when it reads again the answer is whole."""
    written: list[bytes] = []
    write = HttpExchange.write

    def slow(exchange: HttpExchange, data: bytes) -> bool:
        written.append(data)
        return write(exchange, data) and data != PING

    monkeypatch.setattr(HttpExchange, "write", slow)
    async with held(streamed) as place:
        client, answer = await place.pinged()
        await asyncio.sleep(0.3)
        assert written.count(PING) == 1
        place.free()
        await client.rest(answer)
        assert answer.complete
        assert answer.body == PING + STREAM
        client.close()


async def test_a_router_that_shuts_down_says_so_in_the_stream() -> None:
    async with held(streamed, shutdown_grace="100ms") as place:
        client, answer = await place.pinged()
        draining = asyncio.get_running_loop().create_task(place.router.app.drain())
        await asyncio.wait_for(client.rest(answer), 5.0)
        assert answer.complete
        assert b'"code":"shutting_down"' in behind_pings(answer.body)
        place.free()
        await draining
        client.close()


async def test_a_client_of_http_1_0_gets_pings_and_the_end_of_the_connection() -> None:
    async with held(streamed) as place, await place.router.client() as client:
        body = orjson.dumps(chat())
        head = f"POST {CHAT} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        await client.send(head.encode() + body)
        answer = await client.answer(head_only=True)
        assert answer.header("transfer-encoding") is None
        assert await client.reader.readexactly(len(PING)) == PING
        place.free()
        await client.rest(answer)
        assert behind_pings(answer.body) == STREAM


async def test_the_header_tells_how_long_a_call_was_in_the_line() -> None:
    async with held(streamed, {}) as place, await place.router.client() as client:
        await client.post(CHAT, chat())
        await eventually(lambda: len(place.router.app.line) == 1)
        await asyncio.sleep(0.1)
        place.free()
        answer = await client.answer()
        waited_ms = int(answer.header("x-twolane-queue-ms") or "")
        assert 100 <= waited_ms < 20_000
        await eventually(lambda: place.router.idle)
        at_once = await place.router.post(CHAT, chat())
        assert int(at_once.header("x-twolane-queue-ms") or "") < waited_ms


# --- real clients


CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}


async def openai_stream(request: Received, peer: Peer) -> None:
    await peer.stream_head()
    for word in ["one", "two", "three"]:
        await peer.event({**CHUNK, "choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]})
    await peer.chunk(b"data: [DONE]\n\n")
    await peer.last_chunk()


async def anthropic_stream(request: Received, peer: Peer) -> None:
    message: dict[str, Any] = {
        "id": "x",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *[{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in "abc"],
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    await peer.stream_head()
    for event in events:
        await peer.chunk(b"event: %b\ndata: %b\n\n" % (event["type"].encode(), orjson.dumps(event)))
    await peer.last_chunk()


async def _released_after_pings(place: Held) -> None:
    await eventually(lambda: len(place.router.app.line) == 1)
    await asyncio.sleep(0.2)
    place.free()


async def test_the_openai_client_passes_over_pings() -> None:
    async with (
        held(openai_stream) as place,
        openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{place.router.port}/v1", api_key="x", max_retries=0) as client,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(_released_after_pings(place))
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        assert stream.response.headers.get("x-twolane-backend") is None
        words = [chunk.choices[0].delta.content async for chunk in stream]
        assert words == ["one", "two", "three"]


async def test_the_openai_client_raises_what_comes_in_the_stream() -> None:
    async with (
        held(openai_stream, classes={"ttft": {"max_wait": "200ms"}}) as place,
        openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{place.router.port}/v1", api_key="x", max_retries=0) as client,
    ):
        stream = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        with pytest.raises(openai.APIError, match="no backend had room"):
            async for _ in stream:
                pass


async def test_the_anthropic_client_passes_over_pings_and_raises_what_comes_in_the_stream() -> None:
    async with (
        held(anthropic_stream) as place,
        anthropic.AsyncAnthropic(
            base_url=f"http://127.0.0.1:{place.router.port}", api_key="x", max_retries=0
        ) as client,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(_released_after_pings(place))
        async with client.messages.stream(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
        ) as stream:
            assert "".join([text async for text in stream.text_stream]) == "abc"
    async with (
        held(anthropic_stream, classes={"ttft": {"max_wait": "200ms"}}) as place,
        anthropic.AsyncAnthropic(
            base_url=f"http://127.0.0.1:{place.router.port}", api_key="x", max_retries=0
        ) as client,
    ):
        with pytest.raises(anthropic.APIStatusError, match="no backend had room"):
            await _read_all(client)


async def _read_all(client: anthropic.AsyncAnthropic) -> None:
    async with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as stream:
        async for _ in stream:
            pass
