"""How llama.cpp and vLLM say the same things: heads, chunks, whole answers, errors.

Shapes are those of llama.cpp b10434..b11549 and vLLM 0.32.0 as they were recorded; figures that no router reads are
left out. What comes once for each token is built once for each call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import orjson

from bench.emulator.reading import Asked, call_id
from router.simulate.sequence import Sequence

CREATED = 1_796_000_000
_MARK = "\u0001"
"""Stands for the token in the template of a chunk."""

Json = dict[str, Any]


class Pattern(NamedTuple):
    """A chunk of one token without the token, framed; all tokens have the same length."""

    before: bytes
    after: bytes

    def with_token(self, token: str) -> bytes:
        return self.before + token.encode() + self.after


def event(data: Json) -> bytes:
    return b"data: " + orjson.dumps(data) + b"\n\n"


def framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def response(status: str, head: str, body: bytes, kind: str = "application/json") -> bytes:
    start = f"HTTP/1.1 {status}\r\n{head}Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return start.encode() + body


class Dialect(Protocol):
    name: str
    head: str
    """Fields of every response."""

    def stream_head(self) -> bytes: ...

    def role(self, asked: Asked, number: int) -> bytes:
        """The chunk before the first token; empty where there is none."""
        ...

    def token(self, asked: Asked, number: int) -> Pattern: ...

    def end(self, asked: Asked, number: int, done: Sequence) -> bytes:
        """All chunks after the last token, and the end of the body."""
        ...

    def whole(self, asked: Asked, number: int, done: Sequence, text: str) -> bytes: ...

    def refusal(self, reason: str, **facts: object) -> bytes: ...


def id_of(asked: Asked, number: int) -> str:
    return f"{'chatcmpl' if asked.chat else 'cmpl'}-{number:032x}"


def pattern(chunk: Json) -> Pattern:
    before, _, after = framed(event(chunk)).partition(orjson.dumps(_MARK)[1:-1])
    # the mark is six characters in JSON, a token is four: the size of the frame is two less
    size, _, rest = before.partition(b"\r\n")
    return Pattern(b"%x\r\n%s" % (int(size, 16) - 2, rest), after)


def delta(asked: Asked, *, content: str) -> Json:
    if asked.tool:
        return {"tool_calls": [{"index": 0, "function": {"arguments": content}}]}
    return {"content": content}


def message(asked: Asked, text: str) -> Json:
    if not asked.tool:
        return {"role": "assistant", "content": text}
    function = {"name": asked.tool, "arguments": orjson.dumps({"query": text.strip()}).decode()}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id(asked.seed), "type": "function", "function": function}],
    }


def opening(asked: Asked) -> Json:
    if not asked.tool:
        return {"role": "assistant"}
    function = {"name": asked.tool, "arguments": ""}
    return {
        "role": "assistant",
        "tool_calls": [{"index": 0, "id": call_id(asked.seed), "type": "function", "function": function}],
    }


def finish_reason(asked: Asked) -> str:
    if asked.limited:
        return "length"
    return "tool_calls" if asked.tool else "stop"


def usage(done: Sequence) -> Json:
    return {
        "prompt_tokens": done.prompt_tokens,
        "completion_tokens": done.output_tokens,
        "total_tokens": done.prompt_tokens + done.output_tokens,
    }


class LlamaCppDialect:
    name = "llamacpp"
    head = "Server: llama.cpp\r\n"

    def stream_head(self) -> bytes:
        return (
            f"HTTP/1.1 200 OK\r\n{self.head}X-Accel-Buffering: no\r\n"
            "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        ).encode()

    def _chunk(self, asked: Asked, number: int, choice: Mapping[str, object] | None, **more: object) -> Json:
        return {
            "choices": [] if choice is None else [{"index": 0, **choice}],
            "created": CREATED,
            "id": id_of(asked, number),
            "model": asked.model,
            "system_fingerprint": "b11549-emulated",
            "object": "chat.completion.chunk" if asked.chat else "text_completion",
            **more,
        }

    def role(self, asked: Asked, number: int) -> bytes:
        if not asked.chat:
            return b""
        choice = {"finish_reason": None, "delta": {"content": None, **opening(asked)}}
        return framed(event(self._chunk(asked, number, choice)))

    def token(self, asked: Asked, number: int) -> Pattern:
        said = {"delta": delta(asked, content=_MARK)} if asked.chat else {"text": _MARK}
        return pattern(self._chunk(asked, number, {"finish_reason": None, **said}))

    def end(self, asked: Asked, number: int, done: Sequence) -> bytes:
        empty: Json = {"delta": {}} if asked.chat else {"text": ""}
        choice = {"finish_reason": finish_reason(asked), **empty}
        figures: Json = {"usage": self._usage(done), "timings": timings(done)}
        if not asked.chat:
            events = [self._chunk(asked, number, choice, **figures)]
        elif asked.usage_in_stream:
            events = [self._chunk(asked, number, choice), self._chunk(asked, number, None, **figures)]
        else:
            events = [self._chunk(asked, number, choice, timings=figures["timings"])]
        return framed(b"".join(map(event, events))) + framed(b"data: [DONE]\n\n") + b"0\r\n\r\n"

    def whole(self, asked: Asked, number: int, done: Sequence, text: str) -> bytes:
        said: Json = {"message": message(asked, text)} if asked.chat else {"text": text, "logprobs": None}
        body = {
            **self._chunk(asked, number, {"finish_reason": finish_reason(asked), **said}),
            "object": "chat.completion" if asked.chat else "text_completion",
            "usage": self._usage(done),
            "timings": timings(done),
        }
        return response("200 OK", self.head, orjson.dumps(body))

    def _usage(self, done: Sequence) -> Json:
        return {**usage(done), "prompt_tokens_details": {"cached_tokens": done.cached_tokens}}

    def refusal(self, reason: str, **facts: object) -> bytes:
        error: Json = {"code": 400, "message": f"'{reason}' is required", "type": "invalid_request_error"}
        if reason == "json":
            error["message"] = "[json.exception.parse_error.101] parse error: syntax error while parsing value"
        elif reason == "n":
            error["message"] = "one answer at a time is emulated"
        elif reason == "context":
            error["message"] = (
                f"request ({facts['tokens']} tokens) exceeds the available context size ({facts['limit']} tokens),"
                " try increasing it"
            )
            error |= {"type": "exceed_context_size_error", "n_prompt_tokens": facts["tokens"], "n_ctx": facts["limit"]}
        return response("400 Bad Request", self.head, orjson.dumps({"error": error}))


def timings(done: Sequence) -> Json:
    """llama.cpp's own account: milliseconds from the moment at which a slot began on the call."""
    assert done.admitted_s is not None
    assert done.first_s is not None
    assert done.end_s is not None
    prompt_n, prompt_ms = done.prompt_tokens - done.cached_tokens, 1000 * (done.first_s - done.admitted_s)
    predicted_ms = max(0.001, 1000 * (done.end_s - done.first_s))
    return {
        "cache_n": done.cached_tokens,
        "prompt_n": prompt_n,
        "prompt_ms": prompt_ms,
        "prompt_per_token_ms": prompt_ms / prompt_n,
        "prompt_per_second": 1000 * prompt_n / prompt_ms,
        "predicted_n": done.output_tokens,
        "predicted_ms": predicted_ms,
        "predicted_per_token_ms": predicted_ms / done.output_tokens,
        "predicted_per_second": 1000 * done.output_tokens / predicted_ms,
    }


class VllmDialect:
    name = "vllm"
    head = "server: uvicorn\r\n"

    def __init__(self, *, prompt_details: bool = False) -> None:
        """`prompt_details`: cached tokens are in the usage, as `--enable-prompt-tokens-details` makes it."""
        self._prompt_details = prompt_details

    def stream_head(self) -> bytes:
        return (
            f"HTTP/1.1 200 OK\r\n{self.head}content-type: text/event-stream; charset=utf-8\r\n"
            "transfer-encoding: chunked\r\n\r\n"
        ).encode()

    def _chunk(self, asked: Asked, number: int, choice: Mapping[str, object] | None, **more: object) -> Json:
        return {
            "id": id_of(asked, number),
            "object": "chat.completion.chunk" if asked.chat else "text_completion",
            "created": CREATED,
            "model": asked.model,
            "choices": [] if choice is None else [{"index": 0, **choice, "logprobs": None}],
            **more,
        }

    def role(self, asked: Asked, number: int) -> bytes:
        if not asked.chat:
            return b""
        choice = {"delta": {"content": "", **opening(asked)}, "finish_reason": None}
        return framed(event(self._chunk(asked, number, choice)))

    def token(self, asked: Asked, number: int) -> Pattern:
        said = {"delta": delta(asked, content=_MARK)} if asked.chat else {"text": _MARK}
        return pattern(self._chunk(asked, number, {**said, "finish_reason": None}))

    def end(self, asked: Asked, number: int, done: Sequence) -> bytes:
        empty = {"delta": delta(asked, content="")} if asked.chat else {"text": ""}
        choice = {**empty, "finish_reason": finish_reason(asked), "stop_reason": None}
        events = [self._chunk(asked, number, choice)]
        if asked.usage_in_stream:
            events.append(self._chunk(asked, number, None, usage=self._usage(done)))
        return b"".join(framed(event(data)) for data in events) + framed(b"data: [DONE]\n\n") + b"0\r\n\r\n"

    def whole(self, asked: Asked, number: int, done: Sequence, text: str) -> bytes:
        said: Json = {"message": message(asked, text)} if asked.chat else {"text": text}
        body = {
            **self._chunk(asked, number, {**said, "finish_reason": finish_reason(asked), "stop_reason": None}),
            "object": "chat.completion" if asked.chat else "text_completion",
            "usage": self._usage(done),
            "system_fingerprint": "vllm-0.32.0-emulated",
        }
        return response("200 OK", self.head, orjson.dumps(body))

    def _usage(self, done: Sequence) -> Json:
        details = {"cached_tokens": done.cached_tokens} if self._prompt_details else None
        return {**usage(done), "prompt_tokens_details": details}

    def refusal(self, reason: str, **facts: object) -> bytes:
        status, kind = "400 Bad Request", "BadRequestError"
        text = {
            "json": "1 validation error:\n  {'type': 'json_invalid', 'loc': 'body.10', 'msg': 'JSON decode error'}",
            "n": "one answer at a time is emulated",
            "priority": "Got priority but priority scheduling is not enabled.",
        }.get(reason, f"1 validation error:\n  {{'type': 'missing', 'loc': 'body.{reason}'}}")
        if reason == "context":
            text = (
                f"This model's maximum context length is {facts['limit']} tokens. However, your prompt contains "
                f"{facts['tokens']} input tokens, which exceeds this limit even without any output tokens."
            )
        elif reason == "model":
            status, kind = "404 Not Found", "NotFoundError"
            text = f"The model `{facts['model']}` does not exist."
        error = {"message": text, "type": kind, "param": None, "code": int(status[:3])}
        return response(status, self.head, orjson.dumps({"error": error}))
