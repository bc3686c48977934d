"""The scripted backend answers like a small inference server, at the pace that a call names."""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator

import pytest

from bench.bodies import MODEL, PATH, chat_body, request
from bench.scripted_backend import ANSWER_BYTES, TOKEN
from tests.bench.serving import serving


class Client:
    """A raw connection that reads whole responses."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        self.reader, self.writer, self.port = reader, writer, port

    async def get(self, path: str) -> tuple[int, bytes]:
        self.writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return await self.answer()

    async def post(self, body: bytes, path: str = PATH) -> tuple[int, bytes]:
        self.writer.write(request(body, port=self.port, path=path))
        return await self.answer()

    async def answer(self) -> tuple[int, bytes]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head.split()[1])
        if b"transfer-encoding: chunked" in head:
            return status, b"".join([piece async for piece in self.pieces()])
        length = int(head.partition(b"content-length:")[2].split()[0])
        return status, await self.reader.readexactly(length)

    async def pieces(self) -> AsyncIterator[bytes]:
        while size := int(await self.reader.readline(), 16):
            yield (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readline()


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        yield Client(reader, writer, port)
        writer.close()
        await writer.wait_closed()


async def test_a_plain_call_gets_an_answer_of_one_kilobyte(client: Client) -> None:
    status, body = await client.post(chat_body(1024, stream=False, max_tokens=8))
    assert (status, len(body)) == (200, ANSWER_BYTES)
    assert json.loads(body)["choices"][0]["message"]["role"] == "assistant"


async def test_a_stream_has_the_tokens_that_were_asked_for_and_its_end(client: Client) -> None:
    status, body = await client.post(chat_body(1024, stream=True, max_tokens=5))
    assert status == 200
    assert body.count(TOKEN) == 5
    assert body.endswith(b"data: [DONE]\n\n")


async def test_a_renamed_limit_and_other_spacing_are_understood(client: Client) -> None:
    _, body = await client.post(b'{"messages": [], "max_completion_tokens" : 3, "stream": true}')
    assert body.count(TOKEN) == 3


async def test_tokens_come_at_the_pace_that_the_seed_names(client: Client) -> None:
    client.writer.write(request(chat_body(1024, stream=True, max_tokens=4, interval_ms=20), port=client.port))
    await client.reader.readuntil(b"\r\n\r\n")
    at_s = [time.perf_counter() async for piece in client.pieces() if piece == TOKEN]
    assert len(at_s) == 4
    assert at_s[-1] - at_s[0] > 0.055
    assert all(later >= earlier for earlier, later in itertools.pairwise(at_s))


async def test_calls_follow_each_other_on_one_connection(client: Client) -> None:
    assert [(await client.post(chat_body(600, stream=False, max_tokens=1)))[0] for _ in range(3)] == [200, 200, 200]


async def test_it_says_enough_to_be_taken_for_a_worker(client: Client) -> None:
    assert (await client.get("/health"))[0] == 200
    status, models = await client.get("/v1/models")
    assert (status, json.loads(models)["data"][0]["id"]) == (200, MODEL)
    assert (await client.get("/metrics"))[0] == 200
    assert (await client.get("/server_info"))[0] == 404
