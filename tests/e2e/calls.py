"""Calls as tests make them, and what they look at in the answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson
from openai.types.chat import ChatCompletionToolParam
from yarl import URL

CHAT = "/v1/chat/completions"
QUESTION = "How far is the moon?"
"""A prompt whose first answer word wins by a wide margin: rounding does not turn it, whatever runs beside it."""
ENDLESS_TOKENS = 7000
"""As many as fit one slot of the test servers: several seconds of work."""

WEATHER_PARAMETERS: dict[str, object] = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
    "required": ["city"],
    "additionalProperties": False,
}
WEATHER_TOOL: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": WEATHER_PARAMETERS,
        "strict": True,
    },
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def text(self) -> str:
        """What the model said to a chat call."""
        return str(self.json()["choices"][0]["message"]["content"])

    @property
    def lane(self) -> str:
        """Name of the backend that served it."""
        return self.headers["x-twolane-backend"]

    @property
    def queue_ms(self) -> float:
        """Time in the router's line."""
        found = re.search(r"\bqueue;dur=([0-9.]+)", self.headers["server-timing"])
        assert found, self.headers["server-timing"]
        return float(found[1])


def chat(text: str = QUESTION, *, max_tokens: int = 8, model: str = "chat", **more: Any) -> dict[str, Any]:
    """Body of a chat call with a greedy answer of exactly `max_tokens` tokens."""
    messages = [{"role": "user", "content": text}]
    return {"model": model, "messages": messages, "max_tokens": max_tokens, "temperature": 0, **more}


async def post(
    http: aiohttp.ClientSession, url: str, body: object, *, path: str = CHAT, headers: Mapping[str, str] | None = None
) -> Reply:
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    fields = {"Content-Type": "application/json", **(headers or {})}
    async with http.post(URL(url + path, encoded=True), data=data, headers=fields) as response:
        return Reply(response.status, response.headers.copy(), await response.read())


async def get(http: aiohttp.ClientSession, url: str, path: str) -> Reply:
    async with http.get(url + path) as response:
        return Reply(response.status, response.headers.copy(), await response.read())


@asynccontextmanager
async def running_streams(
    http: aiohttp.ClientSession, url: str, count: int, *, headers: Mapping[str, str] | None = None, model: str = "chat"
) -> AsyncIterator[list[aiohttp.ClientResponse]]:
    """`count` long streams whose first bytes have arrived; the client hangs up at the end of the block."""
    body = orjson.dumps(chat(max_tokens=ENDLESS_TOKENS, stream=True, model=model))
    fields = {"Content-Type": "application/json", **(headers or {})}
    async with AsyncExitStack() as stack:
        streams = []
        for _ in range(count):
            response = await stack.enter_async_context(http.post(url + CHAT, data=body, headers=fields))
            assert response.status == 200, await response.text()
            await response.content.readline()
            streams.append(response)
        yield streams
        for response in streams:
            response.close()


async def gather_posts(http: aiohttp.ClientSession, url: str, bodies: list[dict[str, Any]], **more: Any) -> list[Reply]:
    return list(await asyncio.gather(*(post(http, url, body, **more) for body in bodies)))
