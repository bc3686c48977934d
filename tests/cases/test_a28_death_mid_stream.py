"""A28: an answer that broke off must never look complete, in whichever way the backend died."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import struct
from collections.abc import Awaitable, Callable

import orjson
import pytest

from tests.cases.apis import APIS, CHAT, COMPLETIONS, DONE, MESSAGES, RESPONSES, Api, delta, each_api, line, sse, typed
from tests.rawclient import Answer
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

Death = Callable[[Peer], Awaitable[None]]


async def closes(peer: Peer) -> None:
    peer.writer.close()


async def resets(peer: Peer) -> None:
    await _what_was_sent_is_read()
    linger = struct.pack("ii", 1, 0)
    peer.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    peer.writer.transport.abort()


async def garbles(peer: Peer) -> None:
    await _what_was_sent_is_read()
    await peer.send(b"zz\r\nthis is no chunk\r\n")


async def _what_was_sent_is_read() -> None:
    await asyncio.sleep(0.02)


async def falls_silent(peer: Peer) -> None:
    await peer.until_closed()


each_death = pytest.mark.parametrize("death", [closes, resets, garbles, falls_silent], ids=lambda death: death.__name__)


def says_error(api: Api, event: bytes) -> bool:
    """Whether this is an error as clients of the API know it, inside a stream."""
    document = orjson.loads(event.partition(b"data: ")[2] or event)
    match api.name:
        case "messages":
            return event.startswith(b"event: error\n") and document["type"] == "error" and bool(document["error"])
        case "responses":
            return event.startswith(b"event: error\n") and document["type"] == "error" and bool(document["message"])
        case "ollama_chat" | "ollama_generate":
            return isinstance(document["error"], str)
        case _:
            return bool(document["error"]["message"])


async def assert_given_back(router: Running) -> None:
    await eventually(lambda: router.idle)
    assert router.metric("twolane_backend_inflight") == 0
    assert router.metric("twolane_calls_total", outcome="backend_error") == 1
    assert router.metric("twolane_calls_total") == 1


def dies_after(events: bytes, death: Death, api: Api, *fields: str) -> ScriptedBackend:
    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head(*fields, content_type=api.content_type)
        await peer.chunk(events)
        await death(peer)

    return api.backend(script)


@each_api
@each_death
async def test_between_two_events(api: Api, death: Death) -> None:
    sent = api.opening + api.token("a") + api.token("b") + api.token("c")
    async with dies_after(sent, death, api) as backend:
        async with router_for((backend, api.settings), timeouts={"idle": "150ms"}) as router:
            answer = await router.post(api.path, api.body(stream=True))
            assert answer.status == 200
            assert not answer.complete
            assert answer.body.startswith(sent)
            assert says_error(api, answer.body.removeprefix(sent))
            await assert_given_back(router)


@each_api
@each_death
async def test_inside_an_event_nothing_is_glued_on(api: Api, death: Death) -> None:
    sent = api.opening + api.token("a") + api.token("b")[:-7]
    async with dies_after(sent, death, api) as backend:
        async with router_for((backend, api.settings), timeouts={"idle": "150ms"}) as router:
            answer = await router.post(api.path, api.body(stream=True))
            assert answer.body == sent
            assert not answer.complete
            await assert_given_back(router)


@each_api
async def test_before_the_first_event(api: Api) -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head(content_type=api.content_type)
        peer.writer.close()

    async with api.backend(script) as backend, router_for((backend, api.settings)) as router:
        answer = await router.post(api.path, api.body(stream=True))
        assert not answer.complete
        assert says_error(api, answer.body)
        await assert_given_back(router)


async def test_inside_a_compressed_stream_nothing_is_glued_on() -> None:
    sent = gzip.compress(CHAT.token("a"))
    async with dies_after(sent, closes, CHAT, "Content-Encoding: gzip") as backend, router_for(backend) as router:
        answer = await router.post(CHAT.path, CHAT.body(stream=True), "Accept-Encoding: gzip")
        assert answer.body == sent
        assert not answer.complete
        await assert_given_back(router)


@each_api
async def test_after_the_end_mark_nothing_is_added_and_nobody_is_blamed(api: Api) -> None:
    """Only the last chunk is missing: whoever reads to the mark has all of it."""
    sent = api.opening + api.token("a") + api.ending
    async with dies_after(sent, closes, api) as backend:
        async with router_for((backend, api.settings), health={"break_after": 1}) as router:
            answer = await router.post(api.path, api.body(stream=True))
            assert answer.body == sent
            assert not answer.complete
            await eventually(lambda: router.metric("twolane_calls_total", outcome="completed") == 1)
            assert router.metric("twolane_backend_up") == 1


# --- an answer that ends with the connection ends like one that broke off


def until_close(sent: bytes, api: Api) -> ScriptedBackend:
    async def script(request: Received, peer: Peer) -> None:
        await peer.head("200 OK", f"Content-Type: {api.content_type}")
        await peer.send(sent)
        peer.writer.close()

    return api.backend(script)


@each_api
async def test_a_stream_without_framing_is_complete_only_with_its_end_mark(api: Api) -> None:
    begun = api.opening + api.token("a")
    for sent, whole in ((begun + api.ending, True), (begun, False)):
        async with until_close(sent, api) as backend, router_for((backend, api.settings)) as router:
            answer = await router.post(api.path, api.body(stream=True))
            assert answer.body.startswith(sent)
            assert answer.complete is whole
            assert (answer.body == sent) is whole
            if not whole:
                assert says_error(api, answer.body.removeprefix(sent))
                await assert_given_back(router)


@each_api
async def test_a_stream_without_framing_that_was_cut_inside_an_event_gets_nothing_glued_on(api: Api) -> None:
    sent = api.opening + api.token("a") + api.token("b")[:-7]
    async with until_close(sent, api) as backend, router_for((backend, api.settings)) as router:
        answer = await router.post(api.path, api.body(stream=True))
        assert answer.body == sent
        assert not answer.complete


@pytest.mark.parametrize(
    ("api", "ending"),
    [
        (CHAT, delta({}, "stop")),
        (COMPLETIONS, sse({"choices": [{"index": 0, "text": "", "finish_reason": "length"}]})),
        (CHAT, DONE),
        (CHAT, DONE.rstrip()),
        (RESPONSES, typed("response.incomplete", response={"id": "r1", "status": "incomplete"})),
        (MESSAGES, typed("message_stop")),
    ],
)
async def test_less_than_the_usual_end_will_do(api: Api, ending: bytes) -> None:
    sent = api.opening + api.token("a") + (delta({}, "stop") if ending == DONE.rstrip() else b"") + ending
    async with until_close(sent, api) as backend, router_for((backend, api.settings)) as router:
        answer = await router.post(api.path, api.body(stream=True))
        assert answer.body == sent
        assert answer.complete


async def test_whole_answers_and_errors_without_framing_pass() -> None:
    async def script(request: Received, peer: Peer) -> None:
        status = "200 OK" if b'"stream":false' in request.body else "500 Internal Server Error"
        await peer.head(status, "Content-Type: application/json")
        await peer.send(orjson.dumps(CHAT.whole))
        peer.writer.close()

    async with CHAT.backend(script) as backend, router_for(backend) as router:
        for stream in (False, True):
            answer = await router.post(CHAT.path, CHAT.body(stream=stream))
            assert (answer.complete, answer.json()) == (True, CHAT.whole)


# --- answers that are not streamed


@each_api
@pytest.mark.parametrize("framing", ["length", "chunked"])
async def test_a_whole_answer_that_is_cut_off(api: Api, framing: str) -> None:
    body = orjson.dumps(api.whole)
    half = body[: len(body) // 2]

    async def script(request: Received, peer: Peer) -> None:
        if framing == "length":
            await peer.head("200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}")
            await peer.send(half)
        else:
            await peer.head("200 OK", "Content-Type: application/json", "Transfer-Encoding: chunked")
            await peer.chunk(half)
        peer.writer.close()

    async with api.backend(script) as backend, router_for((backend, api.settings)) as router:
        answer = await _cut(router, api)
        assert not answer.complete
        assert answer.body in (half, b"")
        await assert_given_back(router)


async def _cut(router: Running, api: Api) -> Answer:
    async with await router.client() as client:
        await client.post(api.path, api.body(stream=False))
        answer = await client.answer(head_only=True)
        with contextlib.suppress(ConnectionError):
            await client.rest(answer)
        return answer


# --- what the backend itself says


@pytest.mark.parametrize(
    ("api", "error"),
    [
        *(
            (api, sse({"error": {"message": "CUDA out of memory", "code": 500}}))
            for api in APIS
            if api.name in ("chat", "completions", "llamacpp")
        ),
        (MESSAGES, typed("error", error={"type": "overloaded_error", "message": "m"})),
        (RESPONSES, typed("response.failed", response={"id": "r1", "status": "failed", "error": {"code": "x"}})),
        *((api, line({"error": "model crashed"})) for api in APIS if api.engine == "ollama"),
    ],
)
async def test_an_error_of_the_backend_inside_the_stream_passes_once_and_is_counted(api: Api, error: bytes) -> None:
    sent = api.opening + api.token("a") + error

    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head(content_type=api.content_type)
        await peer.chunk(sent)
        await peer.last_chunk()

    async with api.backend(script) as backend, router_for((backend, api.settings)) as router:
        answer = await router.post(api.path, api.body(stream=True))
        assert answer.body == sent
        assert answer.complete
        await assert_given_back(router)


async def test_a_reader_that_only_counts_done_is_not_deceived_by_text_that_says_so() -> None:
    sent = CHAT.opening + CHAT.token("data: [DONE]\n\n") + CHAT.token('"finish_reason":"stop"')
    async with until_close(sent, CHAT) as backend, router_for(backend) as router:
        answer = await router.post(CHAT.path, CHAT.body(stream=True))
        assert not answer.complete
