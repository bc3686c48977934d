"""An inference server that computes nothing: the same answers for everybody who relays them, at a known pace.

`python -m bench.scripted_backend --port PORT`. It speaks the OpenAI chat API as far as routers need it:

- `POST /v1/chat/completions` without `stream`: an answer of 1 KB after `seed` milliseconds.
- with `stream`: `max_tokens` tokens, the first at once, then one each `seed` milliseconds on a fixed schedule (a late
  token does not delay the next), then the usual end.
- `/health`, `/v1/models` and `/metrics` say enough to be accepted as a worker; all other paths are a 404.

Raw protocol, answers built beforehand: it must cost less than those who are measured with it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal

import uvloop

from bench.bodies import MODEL, PATH
from bench.servers.requests import RequestProtocol

ANSWER_BYTES = 1024
WORD = " token"

_STREAM = re.compile(rb'"stream"\s*:\s*true')
_TOKENS = re.compile(rb'"max_(?:completion_)?tokens"\s*:\s*(\d+)')  # some routers rename the field on the way
_PACE = re.compile(rb'"seed"\s*:\s*(\d+)')


def _json_response(body: bytes, *, status: str = "200 OK", kind: str = "application/json") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def _whole_answer() -> bytes:
    def answer(text: str) -> bytes:
        message = {"role": "assistant", "content": text}
        return json.dumps(
            {
                "id": "chatcmpl-bench",
                "object": "chat.completion",
                "created": 1700000000,
                "model": MODEL,
                "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 230, "completion_tokens": 128, "total_tokens": 358},
            },
            separators=(",", ":"),
        ).encode()

    return answer("x" * (ANSWER_BYTES - len(answer(""))))


def _event(delta: dict[str, str], finish_reason: str | None) -> bytes:
    chunk = {
        "id": "chatcmpl-bench",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": MODEL,
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}],
    }
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


TOKEN = _event({"content": WORD}, None)
WHOLE = _json_response(_whole_answer())
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    b"Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
)
TOKEN_CHUNK = _chunk(TOKEN)
STREAM_END = _chunk(_event({}, "stop")) + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
NOT_FOUND = _json_response(b'{"detail":"Not Found"}', status="404 Not Found")
_MODELS = {
    "object": "list",
    "data": [{"id": MODEL, "object": "model", "created": 1700000000, "owned_by": "bench", "max_model_len": 32768}],
}
FIXED = {
    b"/health": _json_response(b"{}"),
    b"/v1/models": _json_response(json.dumps(_MODELS).encode()),
    b"/metrics": _json_response(b"# TYPE bench_up gauge\nbench_up 1\n", kind="text/plain; version=0.0.4"),
}


def _number(pattern: re.Pattern[bytes], body: bytes, default: int) -> int:
    found = pattern.search(body)
    return int(found[1]) if found else default


class ScriptedServer(RequestProtocol):
    """One connection: one call at a time, kept alive."""

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._left = 0
        self._interval_s = 0.0
        self._due_s = 0.0

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def requested(self, target: bytes, body: bytes) -> None:
        if target == PATH.encode():
            self._answer(body)
        else:
            self._transport.write(FIXED.get(target, NOT_FOUND))

    def _answer(self, body: bytes) -> None:
        self._interval_s = _number(_PACE, body, 0) / 1000
        if _STREAM.search(body):
            self._left = _number(_TOKENS, body, 16) - 1
            self._due_s = self._loop.time()
            self._transport.write(STREAM_HEAD + TOKEN_CHUNK)
            self._next()
        elif self._interval_s:
            self._timer = self._loop.call_later(self._interval_s, self._transport.write, WHOLE)
        else:
            self._transport.write(WHOLE)

    def _next(self) -> None:
        if self._left <= 0:
            self._transport.write(STREAM_END)
        elif self._interval_s:
            self._due_s += self._interval_s
            self._timer = self._loop.call_at(self._due_s, self._token)
        else:
            self._transport.write(TOKEN_CHUNK * self._left + STREAM_END)

    def _token(self) -> None:
        self._left -= 1
        self._transport.write(TOKEN_CHUNK)
        self._next()


async def serve(port: int) -> None:
    """On the loopback address, until SIGTERM or Ctrl-C."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    server = await loop.create_server(ScriptedServer, "127.0.0.1", port, backlog=4096)
    await stop.wait()
    server.close()


def main() -> None:
    options = argparse.ArgumentParser(description="A scripted OpenAI-like server for measurements.")
    options.add_argument("--port", type=int, required=True)
    uvloop.run(serve(options.parse_args().port))


if __name__ == "__main__":
    main()
