"""A12: a picture or a long history is larger than what a web framework takes by default."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Any

import orjson
import pytest

from tests.cases.apis import CHAT, MESSAGES, OLLAMA_CHAT, RESPONSES, Api
from tests.router.running import router_for

PICTURE = b64encode(bytes(range(256)) * 15_360).decode()
"""Five megabytes, as text."""
DATA_URL = f"data:image/png;base64,{PICTURE}"
SAYS = {"type": "text", "text": "What is this?"}

WITH_PICTURE: list[tuple[Api, dict[str, Any]]] = [
    (CHAT, {"messages": [{"role": "user", "content": [SAYS, {"type": "image_url", "image_url": {"url": DATA_URL}}]}]}),
    (
        RESPONSES,
        {
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "What is this?"},
                        {"type": "input_image", "image_url": DATA_URL},
                    ],
                }
            ]
        },
    ),
    (
        MESSAGES,
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        SAYS,
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
                    ],
                }
            ]
        },
    ),
    (OLLAMA_CHAT, {"messages": [{"role": "user", "content": "What is this?", "images": [PICTURE]}]}),
]
each_picture = pytest.mark.parametrize(("api", "fields"), WITH_PICTURE, ids=lambda value: str(value)[:12])


@each_picture
async def test_a_picture_of_five_megabytes_arrives_as_it_was_sent(api: Api, fields: dict[str, Any]) -> None:
    async with api.backend() as backend, router_for((backend, api.settings)) as router:
        body = orjson.dumps(api.body(stream=False, **fields))
        assert len(body) > 5_000_000
        assert (await router.post(api.path, body)).status == 200
        assert sha256(backend.received[0].body).digest() == sha256(body).digest()


@each_picture
async def test_a_picture_is_no_text_so_a_small_context_takes_it(api: Api, fields: dict[str, Any]) -> None:
    async with api.backend() as small, api.backend() as large:
        sizes = [(small, {**api.settings, "context_tokens": 2048}), (large, {**api.settings, "context_tokens": 2**20})]
        async with router_for(*sizes, policy="round_robin") as router:
            for _ in range(4):
                assert (await router.post(api.path, api.body(stream=False, **fields))).status == 200
            assert len(small.received) == 2


async def test_a_long_history_arrives_as_it_was_sent_also_where_the_model_is_renamed() -> None:
    history = [{"role": role, "content": "żółć 😀 " * 20_000} for role in ("user", "assistant", "user")] * 4
    async with CHAT.backend() as backend, router_for(backend, models={"fast": {"b0": "m"}}) as router:
        body = orjson.dumps({"messages": history, "model": "fast", "stream": False})
        assert (await router.post(CHAT.path, body)).status == 200
        assert backend.received[0].body == body.replace(b'"model":"fast"', b'"model":"m"')


async def test_a_large_body_in_chunks_of_any_size_arrives_whole() -> None:
    async with CHAT.backend() as backend, router_for(backend) as router, await router.client() as client:
        body = orjson.dumps(CHAT.body(stream=False, **WITH_PICTURE[0][1]))
        await client.send(f"POST {CHAT.path} HTTP/1.1\r\nHost: r\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        start, size = 0, 1
        while start < len(body):
            piece = body[start : start + size]
            await client.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            start, size = start + size, min(size * 3, 700_000)
        await client.send(b"0\r\n\r\n")
        assert (await client.answer()).status == 200
        assert sha256(backend.received[0].body).digest() == sha256(body).digest()


async def test_a_body_of_exactly_the_limit_passes_and_one_more_byte_does_not() -> None:
    async with CHAT.backend() as backend, router_for(backend, limits={"max_body": "64KiB"}) as router:
        room = 65536 - len(orjson.dumps(CHAT.body(stream=False, user="")))
        assert (await router.post(CHAT.path, CHAT.body(stream=False, user="x" * room))).status == 200
        assert len(backend.received[0].body) == 65536
        refused = await router.post(CHAT.path, CHAT.body(stream=False, user="x" * (room + 1)))
        assert refused.status == 413
        assert b"limits.max_body" in refused.body
        assert len(backend.received) == 1
