"""A15: clients compress what they send; proxies answer 400 or 502, or fill their memory with what comes out."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import brotli
import orjson
import pytest
import zstandard

from tests.cases.apis import CHAT, Api, each_api
from tests.cases.compressing import CODINGS, compressed
from tests.cases.process import connect, resident_bytes, router_process
from tests.rawclient import Answer
from tests.router.running import Running, router_for
from tests.scripted import eventually

each_coding = pytest.mark.parametrize("coding", CODINGS)
SYSTEM = {"role": "system", "content": "You label rows."}
MOST_GROWTH_BYTES = 32 * 2**20
"""A brotli decoder alone may need half of it, for its window."""


async def post(router: Running, api: Api, body: bytes, *codings: str) -> Answer:
    return await router.post(api.path, body, *(f"Content-Encoding: {coding}" for coding in codings))


@each_api
async def test_the_call_is_read_and_reaches_the_backend_in_a_form_that_it_understands(api: Api) -> None:
    async with api.backend() as backend, router_for((backend, api.settings)) as router:
        body = orjson.dumps(api.body(stream=False))
        for coding in CODINGS:
            answer = await post(router, api, compressed(coding, body), coding)
            assert (coding, answer.status) == (coding, 200)
            received = backend.received[-1]
            assert received.body == body
            assert received.all("content-encoding") == []
            assert received.one("content-length") == str(len(body))


@each_coding
async def test_the_class_is_that_of_the_call_inside(coding: str) -> None:
    rules = {"rules": [{"if": {"prompt_tokens": ">500", "stream": True}, "then": "throughput"}], "builtin": False}
    async with CHAT.backend() as backend, router_for(backend, classify=rules) as router:
        for words, expected in ((1, "ttft"), (2000, "throughput")):
            body = CHAT.body(stream=True, messages=[{"role": "user", "content": "word " * words}])
            answer = await post(router, CHAT, compressed(coding, orjson.dumps(body)), coding)
            assert answer.header("x-twolane-class") == expected


@each_coding
async def test_the_model_is_renamed_inside(coding: str) -> None:
    async with CHAT.backend() as backend, router_for(backend, models={"fast": {"b0": "m"}}) as router:
        body = orjson.dumps({**CHAT.body(stream=False), "model": "fast"})
        assert (await post(router, CHAT, compressed(coding, body), coding)).status == 200
        assert backend.received[0].body == body.replace(b'"fast"', b'"m"')
        assert backend.received[0].all("content-encoding") == []


@pytest.mark.parametrize(
    "fields", [("zstd, gzip",), ("zstd", "gzip"), ("identity, zstd", "GZIP"), ("zstd", "identity", "x-gzip")]
)
async def test_several_codings_in_one_field_or_in_many(fields: tuple[str, ...]) -> None:
    async with CHAT.backend() as backend, router_for(backend) as router:
        body = orjson.dumps(CHAT.body(stream=False))
        assert (await post(router, CHAT, gzip.compress(zstandard.compress(body)), *fields)).status == 200
        assert backend.received[0].body == body


@pytest.mark.parametrize("coding", ["compress", "made-up", "gzip, made-up", ",".join(["gzip"] * 9)])
async def test_a_coding_that_is_not_known_is_415(coding: str) -> None:
    async with CHAT.backend() as backend, router_for(backend) as router:
        answer = await post(router, CHAT, gzip.compress(orjson.dumps(CHAT.body(stream=False))), coding)
        assert answer.status == 415
        assert b"unsupported_content_encoding" in answer.body
        assert backend.received == []


@each_api
async def test_what_is_corrupt_or_cut_off_is_400_in_the_words_of_the_api(api: Api) -> None:
    plain = orjson.dumps(api.body(stream=False))
    async with api.backend() as backend, router_for((backend, api.settings)) as router:
        for coding in CODINGS:
            body = compressed(coding, plain)
            for broken in (body[:-3], b"plain " + body, plain):
                answer = await post(router, api, broken, coding)
                assert (coding, answer.status) == (coding, 400)
                assert b"Content-Encoding" in answer.body
        assert backend.received == []


async def test_an_empty_body_is_empty_whatever_its_coding() -> None:
    async with CHAT.backend() as backend, router_for(backend) as router:
        answer = await post(router, CHAT, b"", "gzip")
        assert answer.status == 400
        assert b"the body is empty" in answer.body
        assert (await router.get("/v1/models", "Content-Encoding: gzip")).status == 200


async def test_identity_is_no_coding() -> None:
    async with CHAT.backend() as backend, router_for(backend) as router:
        body = orjson.dumps(CHAT.body(stream=False))
        assert (await post(router, CHAT, body, "identity")).status == 200
        assert backend.received[0].body == body


def bombs() -> dict[str, bytes]:
    """Some kilobytes each, which hold a gigabyte, or a good part of one."""
    zeros = bytes(2**20)
    br = brotli.Compressor(quality=2, lgwin=24)
    zstd = zstandard.ZstdCompressor(level=1).compressobj()
    inner = zlib.compressobj(6, wbits=31)
    brotlied, framed, gzipped = b"", b"", b""
    for number in range(1024):
        if number < 512:
            brotlied += br.process(zeros)
        framed += zstd.compress(zeros)
        if number < 128:
            gzipped += inner.compress(zeros)
    return {
        "br": brotlied + br.finish(),
        "zstd": framed + zstd.flush(),
        "gzip, gzip": gzip.compress(gzipped + inner.flush(), 9),
    }


async def test_a_bomb_is_413_and_leaves_the_memory_flat(tmp_path: Path) -> None:
    async with CHAT.backend() as backend, router_process(tmp_path, backend) as router:
        async with await connect(router) as client:
            body = compressed("gzip", orjson.dumps(CHAT.body(stream=False, messages=[SYSTEM])))
            await client.post(CHAT.path, body, "Content-Encoding: gzip")
            assert (await client.answer()).status == 200
            before_bytes = resident_bytes(router)
            for coding, bomb in bombs().items():
                assert len(bomb) < 64 * 2**10
                for _ in range(3):
                    await client.post(CHAT.path, bomb, f"Content-Encoding: {coding}")
                    answer = await client.answer()
                    assert (coding, answer.status) == (coding, 413)
                    assert resident_bytes(router) - before_bytes < MOST_GROWTH_BYTES
        await eventually(lambda: router.metric("twolane_open_calls") == 0)
        assert len(backend.received) == 1
