"""A14: a body is decoded on the way and its header is left, or the other way round; compressed errors crash proxies."""

from __future__ import annotations

import orjson
import pytest

from tests.cases.apis import CHAT, OUTPUT_TOKENS, PROMPT_TOKENS, Api, each_api
from tests.cases.compressing import CODINGS, compressed, decompressed, flushed
from tests.cases.staged import staged
from tests.rawclient import Answer
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, Script, eventually

each_coding = pytest.mark.parametrize("coding", CODINGS)
ERROR = {"error": {"message": "no", "type": "invalid_request_error", "param": None, "code": 400}}


def encoded(document: object, coding: str, status: str = "200 OK", *, chunked: bool = False) -> Script:
    """Answers with a compressed document, whether or not it was asked to compress."""
    body = compressed(coding, orjson.dumps(document))

    async def script(request: Received, peer: Peer) -> None:
        framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
        fields = ("Content-Type: application/json", f"Content-Encoding: {coding}", "Vary: Accept-Encoding", framing)
        await peer.head(status, *fields)
        if chunked:
            await peer.chunk(body)
            await peer.last_chunk()
        else:
            await peer.send(body)

    return script


def read(answer: Answer) -> object:
    """As a client that goes by the header."""
    coding = answer.header("content-encoding")
    return orjson.loads(decompressed(coding, answer.body) if coding else answer.body)


def assert_tokens_booked(router: Running, calls: int = 1) -> None:
    assert router.metric("twolane_tokens_total", direction="in") == PROMPT_TOKENS * calls
    assert router.metric("twolane_tokens_total", direction="out") == OUTPUT_TOKENS * calls
    assert router.metric("twolane_watch_failures_total") == 0


@each_coding
@pytest.mark.parametrize("chunked", [False, True])
async def test_header_and_body_agree_whatever_was_asked_for(coding: str, chunked: bool) -> None:
    async with CHAT.backend(encoded(CHAT.whole, coding, chunked=chunked)) as backend, router_for(backend) as router:
        for number, accepted in enumerate((None, "gzip", "identity", "gzip, deflate, br, zstd"), 1):
            fields = [f"Accept-Encoding: {accepted}"] if accepted else []
            answer = await router.post(CHAT.path, CHAT.body(stream=False), *fields)
            assert answer.status == 200
            assert read(answer) == CHAT.whole
            assert backend.received[-1].one("accept-encoding") == accepted
            await eventually(lambda number=number: router.metric("twolane_calls_total") == number)  # type: ignore[misc]
            assert_tokens_booked(router, calls=number)


@each_coding
async def test_a_compressed_error_keeps_its_status_and_its_words(coding: str) -> None:
    async with CHAT.backend() as backend, router_for(backend, health={"break_after": 99}) as router:
        for status in ("400 Bad Request", "429 Too Many Requests", "500 Oh No", "503 Busy"):
            backend.script = encoded(ERROR, coding, status)
            for stream in (False, True):
                answer = await router.post(CHAT.path, CHAT.body(stream=stream))
                assert answer.status == int(status.split(" ")[0])
                assert answer.complete
                assert read(answer) == ERROR


@each_coding
@each_api
async def test_a_compressed_stream_arrives_event_by_event_and_is_timed_and_counted(api: Api, coding: str) -> None:
    stages = flushed(coding, (api.opening, api.token("a"), api.ending))
    fields = (f"Content-Encoding: {coding}",)
    async with staged(api, *stages, fields=fields, gap_s=0.003) as (script, router, answer):
        assert answer.header("content-encoding") == coding
        assert decompressed(coding, answer.body) == api.opening + api.token("a") + api.ending
        script.assert_first_token_in(1, router)
        assert_tokens_booked(router)


@each_coding
async def test_a_compressed_stream_that_breaks_gets_nothing_of_ours_between_its_bytes(coding: str) -> None:
    start = b"".join(flushed(coding, (CHAT.opening, CHAT.token("a")))[:-1])

    async def breaks(request: Received, peer: Peer) -> None:
        await peer.stream_head(f"Content-Encoding: {coding}")
        await peer.chunk(start)
        peer.writer.close()

    async with CHAT.backend(breaks) as backend, router_for(backend) as router:
        answer = await router.post(CHAT.path, CHAT.body(stream=True))
        assert not answer.complete
        assert answer.body == start


@pytest.mark.parametrize("coding", ["compress", "gzip, gzip", "gzip, br", "made-up"])
async def test_codings_that_we_do_not_undo_pass_and_cost_only_the_sample(coding: str) -> None:
    fields = (f"Content-Encoding: {coding}",)
    async with staged(CHAT, b"\x1f\x9d", b"anything", fields=fields, gap_s=0.0) as (_, router, answer):
        assert answer.header("content-encoding") == coding
        assert router.metric("twolane_ttft_seconds_count") == 0
        assert router.metric("twolane_calls_total", outcome="completed") == 1


async def test_bytes_that_are_not_of_the_coding_pass_as_they_came() -> None:
    fields = ("Content-Encoding: gzip",)
    async with staged(CHAT, CHAT.token("a"), CHAT.ending, fields=fields, gap_s=0.0) as (_, router, answer):
        assert answer.header("content-encoding") == "gzip"
        assert router.metric("twolane_calls_total", outcome="completed") == 1


@each_coding
async def test_a_compressed_refusal_for_a_prompt_too_long_is_understood(coding: str) -> None:
    error = {"error": {"code": 400, "type": "exceed_context_size_error", "message": "too long", "n_ctx": 4}}
    async with CHAT.backend(encoded(error, coding, "400 Bad Request")) as small, CHAT.backend() as large:
        narrow = (small, {"context_tokens": 4096})
        async with router_for(narrow, (large, {"context_tokens": 32768, "lane": "throughput"})) as router:
            answer = await router.post(CHAT.path, CHAT.body(stream=False), "X-Twolane-Class: interactive")
            assert answer.header("x-twolane-backend") == "b1"
            assert len(small.received) == 1
        async with router_for(narrow) as router:
            answer = await router.post(CHAT.path, CHAT.body(stream=False))
            assert answer.status == 400
            assert read(answer) == error


@each_coding
async def test_a_compressed_refusal_while_the_model_loads_is_understood(coding: str) -> None:
    error = {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}
    async with CHAT.backend(encoded(error, coding, "503 Service Unavailable")) as first, CHAT.backend() as second:
        async with router_for(first, (second, {"lane": "throughput"})) as router:
            answer = await router.post(CHAT.path, CHAT.body(stream=False), "X-Twolane-Class: interactive")
            assert answer.header("x-twolane-backend") == "b1"
            assert len(first.received) == 1
