"""The emulated servers over real sockets: what routers see of them is what they see of llama.cpp and vLLM."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from bench.bodies import request
from bench.emulator.dialects import LlamaCppDialect, VllmDialect
from bench.emulator.reading import SEED_UNIT, answer_text, blocks, call_id, read
from bench.emulator.server import Connection, Emulator
from router.engines import ENGINES, recognise
from router.engines.api import Answer
from router.simulate.engine import SimulatedEngine
from router.simulate.pace import DESK, RACK, EngineSpec
from tests.bench.serving import serving

MODEL = "emulated"


class Client:
    def __init__(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.port, self.reader, self.writer = port, reader, writer

    async def get(self, path: str) -> Answer:
        self.writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        return await self.answer()

    def send(self, call: dict[str, Any], path: str = "/v1/chat/completions") -> None:
        self.writer.write(request(json.dumps(call).encode(), port=self.port, path=path))

    async def post(self, call: dict[str, Any], path: str = "/v1/chat/completions") -> Answer:
        self.send(call, path)
        return await self.answer()

    async def head(self) -> tuple[int, bytes]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        return int(head.split()[1]), head

    async def answer(self) -> Answer:
        status, head = await self.head()
        if b"transfer-encoding: chunked" in head:
            return Answer(status, b"".join([piece async for piece in self.pieces()]))
        length = int(head.partition(b"content-length:")[2].split()[0])
        return Answer(status, await self.reader.readexactly(length))

    async def pieces(self) -> AsyncIterator[bytes]:
        while size := int(await self.reader.readline(), 16):
            yield (await self.reader.readexactly(size + 2))[:-2]
        await self.reader.readline()


def emulator(name: str, spec: EngineSpec | None = None, *, closes_streams: bool = False) -> Emulator:
    dialect = LlamaCppDialect() if name == "llamacpp" else VllmDialect(prompt_details=True)
    made = (DESK if name == "llamacpp" else RACK).at(20)
    return Emulator(SimulatedEngine(spec or made), dialect, model=MODEL, closes_streams=closes_streams)


@asynccontextmanager
async def served(it: Emulator) -> AsyncIterator[Callable[[], Any]]:
    """A way to open connections to it."""
    async with serving(lambda: Connection(it)) as port:
        opened: list[asyncio.StreamWriter] = []

        async def connect() -> Client:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            opened.append(writer)
            return Client(port, reader, writer)

        yield connect
        for writer in opened:
            writer.close()
        it.driver.close()


def chat(text: str = "How long is the coast of Norway?", *, tokens: int = 8, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    return {"model": MODEL, "messages": messages, "seed": SEED_UNIT * 2 + tokens, **more}


def events(body: bytes) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in body.decode().split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", ["llamacpp", "vllm"])
async def test_the_router_takes_it_for_what_it_plays(name: str) -> None:
    async with served(emulator(name)) as connect:
        client = await connect()
        engine = ENGINES[name]
        answers = {path: await client.get(path) for path in engine.identity_paths}
        identity = recognise(answers)
        assert identity is not None
        assert (identity.engine, identity.models) == (name, (MODEL,))
        assert identity.context_tokens == DESK.context_tokens
        assert identity.slots == (4 if name == "llamacpp" else None)
        assert (await client.get("/nothing")).status == 404


@pytest.mark.parametrize("name", ["llamacpp", "vllm"])
async def test_load_is_read_by_the_routers_own_adapters(name: str) -> None:
    async with served(emulator(name, replace(DESK if name == "llamacpp" else RACK, sequences=2))) as connect:
        clients = [await connect() for _ in range(5)]
        for client in clients:
            client.send(chat(tokens=500))
        probe = await connect()
        await asyncio.sleep(0.1)
        engine = ENGINES[name]
        load = engine.load({"/metrics": await probe.get("/metrics")}, (MODEL,))
        assert load is not None
        assert (load.running, load.waiting) == (2, 3)
        for client in clients:
            client.writer.close()
        await asyncio.sleep(0.1)
        load = engine.load({"/metrics": await probe.get("/metrics")}, (MODEL,))
        assert load is not None
        assert (load.running, load.waiting) == (0, 0)


@pytest.mark.parametrize("name", ["llamacpp", "vllm"])
async def test_a_stream_is_one_chunk_for_each_token_and_whole_answers_say_the_same(name: str) -> None:
    async with served(emulator(name)) as connect:
        client = await connect()
        client.send(chat(tokens=12, stream=True, stream_options={"include_usage": True}))
        await client.head()
        pieces = [piece async for piece in client.pieces()]
        streamed = events(b"".join(pieces))
        text = [chunk["choices"][0]["delta"].get("content") for chunk in streamed if chunk["choices"]]
        said = [piece for piece in text if piece]
        assert len(said) == 12
        assert len(pieces) >= 13
        assert streamed[0]["choices"][0]["delta"]["role"] == "assistant"
        assert streamed[-1]["usage"]["completion_tokens"] == 12
        whole = json.loads((await client.post(chat(tokens=12))).body)
        assert whole["choices"][0]["message"]["content"] == "".join(said)
        assert whole["choices"][0]["finish_reason"] == "stop"
        assert whole["usage"]["prompt_tokens"] == streamed[-1]["usage"]["prompt_tokens"] > 8


@pytest.mark.parametrize("name", ["llamacpp", "vllm"])
@pytest.mark.parametrize("stream", [False, True])
async def test_completions_answer_in_their_own_shape(name: str, stream: bool) -> None:
    async with served(emulator(name)) as connect:
        client = await connect()
        call = {"model": MODEL, "prompt": "Once upon a time", "seed": 5, "stream": stream}
        answer = await client.post(call, "/v1/completions")
        chunks = events(answer.body) if stream else [json.loads(answer.body)]
        assert "".join(chunk["choices"][0]["text"] for chunk in chunks) == answer_text(5, 5)
        assert chunks[0]["object"] == "text_completion"


async def test_llamacpp_says_how_long_it_took_and_what_it_had_cached() -> None:
    async with served(emulator("llamacpp")) as connect:
        client = await connect()
        text = "The same long question. " * 100
        first = json.loads((await client.post(chat(text))).body)
        again = json.loads((await client.post(chat(text))).body)
        assert first["timings"]["cache_n"] == 0
        assert again["timings"]["cache_n"] == again["usage"]["prompt_tokens_details"]["cached_tokens"] > 500
        assert first["timings"]["prompt_ms"] > again["timings"]["prompt_ms"] > 0
        streamed = events((await client.post(chat(text, stream=True))).body)
        assert streamed[-1]["timings"]["predicted_n"] == 8
        slots = json.loads((await client.get("/slots")).body)
        assert [slot["is_processing"] for slot in slots] == [False] * 4


async def test_vllm_counts_what_it_did_in_its_own_names() -> None:
    async with served(emulator("vllm")) as connect:
        client = await connect()
        await client.post(chat(tokens=9))
        text = (await client.get("/metrics")).body.decode()
        values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        labels = f'engine="0",model_name="{MODEL}"'
        assert float(values[f"vllm:generation_tokens_total{{{labels}}}"]) == 9
        assert float(values[f"vllm:inter_token_latency_seconds_count{{{labels}}}"]) == 8
        assert float(values[f'vllm:time_to_first_token_seconds_bucket{{{labels},le="+Inf"}}']) == 1


@pytest.mark.parametrize("name", ["llamacpp", "vllm"])
async def test_limits_cut_answers_and_mistakes_are_refused(name: str) -> None:
    spec = replace((DESK if name == "llamacpp" else RACK).at(20), context_tokens=200)
    async with served(emulator(name, spec)) as connect:
        client = await connect()
        cut = json.loads((await client.post(chat(tokens=50, max_tokens=7))).body)
        assert cut["usage"]["completion_tokens"] == 7
        assert cut["choices"][0]["finish_reason"] == "length"
        too_long = await client.post(chat("x" * 900))
        assert too_long.status == 400
        assert ENGINES[name].context_overflow(too_long)
        assert (await client.post({"model": MODEL, "messages": []})).status == 400
        client.writer.write(request(b'{"model": ', port=client.port))
        assert (await client.answer()).status == 400
        unknown = await client.post({**chat(), "model": "nobody"})
        assert unknown.status == (404 if name == "vllm" else 200)
        prioritised = await client.post(chat(priority=3))
        assert prioritised.status == (400 if name == "vllm" else 200)


async def test_an_offered_tool_is_called_where_the_seed_says_so() -> None:
    tools = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]
    for name, stream in itertools.product(("llamacpp", "vllm"), (False, True)):
        async with served(emulator(name)) as connect:
            client = await connect()
            answer = await client.post(chat(tools=tools, stream=stream) | {"seed": 3 * SEED_UNIT + 6})
            if stream:
                chunks = [chunk["choices"][0] for chunk in events(answer.body)]
                call, reason = chunks[0]["delta"]["tool_calls"][0], chunks[-1]["finish_reason"]
            else:
                choice = json.loads(answer.body)["choices"][0]
                call, reason = choice["message"]["tool_calls"][0], choice["finish_reason"]
            assert call["id"] == call_id(3 * SEED_UNIT + 6)
            assert call["function"]["name"] == "look_up"
            assert reason == "tool_calls"


async def test_a_client_that_leaves_makes_room() -> None:
    async with served(emulator("llamacpp", replace(DESK.at(20), sequences=1))) as connect:
        first, second = await connect(), await connect()
        first.send(chat(tokens=20_000, stream=True))
        await first.head()
        second.send(chat(tokens=2))
        first.writer.close()
        async with asyncio.timeout(2):
            assert (await second.answer()).status == 200


async def test_streams_may_end_with_a_closed_connection_as_those_of_llamacpp_do() -> None:
    async with served(emulator("llamacpp", closes_streams=True)) as connect:
        client = await connect()
        await client.post(chat(stream=True))
        assert await client.reader.read() == b""


async def test_a_benchmark_can_slow_it_down_take_its_slots_and_freeze_what_it_says() -> None:
    async with served(emulator("llamacpp")) as connect:
        client, probe = await connect(), await connect()
        loop = asyncio.get_running_loop()

        async def takes_s() -> float:
            began_s = loop.time()
            await client.post(chat(tokens=100))
            return loop.time() - began_s

        await client.post({"speed": 0.1, "frozen": True}, "/emulator")
        before = await probe.get("/metrics")
        assert await takes_s() > 100 * 0.0092 / 20 / 0.1
        assert await probe.get("/metrics") == before
        await client.post({"speed": 1.0, "frozen": False, "sequences": 0}, "/emulator")
        assert await probe.get("/metrics") != before
        client.send(chat())
        await asyncio.sleep(0.1)
        load = ENGINES["llamacpp"].load({"/metrics": await probe.get("/metrics")}, (MODEL,))
        assert load is not None
        assert (load.running, load.waiting) == (0, 1)
        await probe.post({"sequences": 4}, "/emulator")
        assert (await client.answer()).status == 200


def test_texts_that_begin_alike_share_blocks_and_the_answer_goes_on_from_the_prompt() -> None:
    one, other = "a" * 600 + "b" * 600, "a" * 600 + "c" * 600
    assert blocks(one, 64)[:2] == blocks(other, 64)[:2]
    assert blocks(one, 64)[2] != blocks(other, 64)[2]
    assert blocks(one + answer_text(7, 64), 64)[:4] == blocks(one, 64)[:4]
    asked = read(json.dumps(chat("word " * 80)).encode(), chat=True)
    assert asked.prompt_tokens == -(-len(asked.text) // 4)


async def test_times_are_those_of_the_modelled_engine() -> None:
    """Not before the model says; how much later is up to the machine."""
    async with served(emulator("llamacpp", DESK)) as connect:
        client = await connect()
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        client.send(chat("x" * 6_000, tokens=31, stream=True))
        await client.head()
        arrivals = [loop.time() - began_s async for _ in client.pieces()]
        first_s = 3 * 0.008 + 1_500 / 6_000
        assert arrivals[0] >= first_s
        assert arrivals[-1] >= first_s + 30 * 0.0092
