"""A29: what is no call reaches no backend and is refused in the words of the API; what backends say passes as it is."""

from __future__ import annotations

import gzip
from typing import Any

import orjson
import pytest

from tests.cases.apis import APIS, CHAT, OLLAMA_CHAT, Api, each_api
from tests.rawclient import Answer
from tests.router.running import router_for
from tests.scripted import Peer, Received, ScriptedBackend

NO_CALL = {
    "empty": b"",
    "space": b" \r\n",
    "brace": b"{",
    "cut": b'{"model":"m","messages":[{"role":"user","content":"h',
    "array": b"[]",
    "string": b'"hi"',
    "number": b"5",
    "null": b"null",
    "model is a number": b'{"model":5,"messages":[],"prompt":"x","input":"x"}',
    "model is an object": b'{"model":{"name":"m"},"messages":[],"prompt":"x","input":"x"}',
    "model is half a character": b'{"model":"m\\ud83d","messages":[{"role":"user","content":"hi"}],"prompt":"x"}',
    "UTF-16": '{"model":"m","messages":[{"role":"user","content":"hi"}],"prompt":"x"}'.encode("utf-16"),
    "not UTF-8": b'{"model":"m\xff","messages":[{"role":"user","content":"hi"}],"prompt":"x"}',
    "two objects": b'{"model":"m"}{"model":"m"}',
    "form": b"model=m&prompt=hi",
    "html": b"<html></html>",
    "comment": b'{"model":"m" /* the model */, "prompt":"x"}',
    "trailing comma": b'{"model":"m","messages":[{"role":"user","content":"hi"}],}',
    "deep": b'{"model":"m","messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
}


def assert_in_the_words_of(path: str, answer: Answer) -> None:
    assert answer.status == 400
    assert answer.header("content-type") == "application/json"
    assert answer.header("content-length") == str(len(answer.body))
    document: Any = answer.json()
    if path.startswith("/api/"):
        assert isinstance(document["error"], str)
    elif path.startswith("/v1/messages"):
        assert document["type"] == "error"
        assert document["error"].keys() == {"type", "message"}
        assert document["error"]["type"] == "invalid_request_error"
    elif path in ("/completion", "/infill", "/apply-template"):
        assert document["error"].keys() == {"code", "message", "type"}
        assert document["error"]["code"] == 400
    else:
        assert document["error"].keys() == {"message", "type", "param", "code"}
        assert document["error"]["type"] == "invalid_request_error"


PATHS = [
    *(api.path for api in APIS),
    "/v1/embeddings",
    "/v1/rerank",
    "/v1/score",
    "/v1/messages/count_tokens",
    "/tokenize",
    "/infill",
    "/apply-template",
    "/api/embed",
    "/api/show",
]


@pytest.mark.parametrize("path", PATHS)
async def test_no_call_at_all(path: str) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router, await router.client() as client:
        for what, body in NO_CALL.items():
            await client.post(path, body)
            answer = await client.answer()
            assert answer.status == 400, what
            assert_in_the_words_of(path, answer)
        assert backend.received == []
        assert router.metric("twolane_calls_total", outcome="refused") == len(NO_CALL)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", b'{"model":"m"}'),
        ("/v1/chat/completions", b'{"model":"m","messages":[]}'),
        ("/v1/chat/completions", b'{"model":"m","messages":null}'),
        ("/v1/chat/completions", b'{"model":"m","messages":{"role":"user"}}'),
        ("/v1/chat/completions", b'{"model":"m","messages":["hi"]}'),
        ("/v1/messages", b'{"model":"m","max_tokens":5,"messages":[null]}'),
        ("/v1/responses", b'{"model":"m","input":5}'),
        ("/v1/completions", b'{"model":"m","prompt":5}'),
        ("/v1/embeddings", b'{"model":"m"}'),
        ("/api/chat", b'{"model":"m","messages":"hi"}'),
        ("/api/generate", b'{"model":"m","prompt":["hi"]}'),
    ],
)
async def test_a_call_that_nothing_could_serve(path: str, body: bytes) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        answer = await router.post(path, body)
        assert_in_the_words_of(path, answer)
        assert backend.received == []


@each_api
async def test_odd_but_possible_calls_are_the_backends_to_judge(api: Api) -> None:
    async with api.backend() as backend, router_for((backend, api.settings)) as router:
        plain = orjson.dumps(api.body(stream=False))
        for body in (
            b" \t\r\n" + plain + b"\n",
            plain[:-1] + b',"max_tokens":-1,"temperature":1e400,"seed":123456789012345678901234567890}',
            plain[:-1] + b',"stop":"\\ud83d\\ude00","user":"\\u0000"}',
            plain[:-1] + b',"unknown":{"a":[' + b"[" * 50 + b"]" * 50 + b"]}}",
            plain[:-1] + b',"model":"m"}',
            plain.replace(b'"hi"', b'"cut inside an emoji: \\ud83d"'),
            plain[:-1] + b',"logit_bias":NaN,"temperature":-Infinity}',
            b"\xef\xbb\xbf" + plain,
        ):
            answer = await router.post(api.path, body)
            assert answer.status == 200, body[:80]
            assert backend.received[-1].body == body


# --- the router's other refusals


@each_api
async def test_an_unknown_model(api: Api) -> None:
    async with api.backend() as backend, router_for((backend, {**api.settings, "models": ["m"]})) as router:
        answer = await router.post(api.path, {**api.body(stream=True), "model": "nope"})
        assert answer.status == 404
        document: Any = answer.json()
        said = document["error"] if isinstance(document["error"], str) else document["error"]["message"]
        assert "nope" in said
        assert backend.received == []


SHAPES: list[tuple[str, Any]] = [
    ("/v1/chat/completions", {"error": {"type": "invalid_request_error", "param": None, "code": "malformed_request"}}),
    ("/v1/messages?beta=true", {"type": "error", "error": {"type": "invalid_request_error"}}),
    ("http://host/api/chat", {"error": str}),
    ("/api/pull", {"error": str}),
]


@pytest.mark.parametrize(("target", "shape"), SHAPES)
@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ("Content-Length: 0", 400, "HTTP/1.1 requires a Host field"),
        ("Host: a\r\nTransfer-Encoding: gzip", 501, "the only transfer coding that is known here is `chunked`"),
        ("Host: a" + "\r\nX: y" * 300, 431, "the head has more than 256 fields"),
    ],
)
async def test_what_is_no_request_is_refused_in_the_shape_of_the_api_that_it_was_meant_for(
    target: str, shape: Any, fields: str, status: int, message: str
) -> None:
    async with CHAT.backend() as backend, router_for(backend) as router, await router.client() as client:
        await client.send(f"POST {target} HTTP/1.1\r\n{fields}\r\n\r\n".encode())
        answer = await client.answer()
        assert answer.status == status
        said = message if shape["error"] is str else {**shape["error"], "message": message}
        assert answer.json() == {**shape, "error": said}


async def test_where_the_target_did_not_come_the_shape_is_openais() -> None:
    async with CHAT.backend() as backend, router_for(backend) as router, await router.client() as client:
        await client.send(b"\x16\x03\x01\x02\x00\x01\r\n\r\n")
        answer: Any = (await client.answer()).json()
        assert answer["error"]["code"] == "malformed_request"


# --- what backends say


HTML = b"<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n</html>\r\n"


@each_api
@pytest.mark.parametrize("status", ["413 Request Entity Too Large", "502 Bad Gateway", "504 Gateway Time-out"])
async def test_the_page_of_a_proxy_in_front_of_the_backend_passes_as_it_is(api: Api, status: str) -> None:
    async def script(request: Received, peer: Peer) -> None:
        await peer.head(status, "Server: nginx/1.25.3", "Content-Type: text/html", f"Content-Length: {len(HTML)}")
        await peer.send(HTML)

    async with api.backend(script) as backend, router_for((backend, api.settings)) as router:
        for stream in (False, True):
            answer = await router.post(api.path, api.body(stream=stream))
            assert (answer.status, answer.body) == (int(status[:3]), HTML)
            assert answer.header("content-type") == "text/html"
            assert answer.header("server") == "nginx/1.25.3"


@pytest.mark.parametrize("api", [CHAT, OLLAMA_CHAT], ids=str)
@pytest.mark.parametrize("status", ["400 Bad Request", "422 Unprocessable Entity", "500 Internal Server Error"])
async def test_errors_of_every_form_pass_as_they_are(api: Api, status: str) -> None:
    bodies = {
        "application/problem+json": b'{"detail":[{"loc":["body"],"msg":"bad"}]}',
        "text/plain; charset=utf-8": "żółć".encode(),
        "application/json": b"this is no JSON",
        "application/octet-stream": bytes(range(256)),
    }
    sent = list(bodies.items())

    async def script(request: Received, peer: Peer) -> None:
        kind, body = sent[len(backend.received) - 1]
        await peer.head(status, f"Content-Type: {kind}", f"Content-Length: {len(body)}")
        await peer.send(body)

    async with api.backend(script) as backend, router_for((backend, api.settings)) as router:
        for kind, body in sent:
            answer = await router.post(api.path, api.body(stream=True))
            assert (answer.status, answer.header("content-type"), answer.body) == (int(status[:3]), kind, body)


async def test_an_empty_error_and_a_compressed_one() -> None:
    packed = gzip.compress(b'{"error":{"message":"bad"}}')

    async def script(request: Received, peer: Peer) -> None:
        if len(backend.received) == 1:
            await peer.head("400 Bad Request", "Content-Length: 0")
        else:
            fields = ("Content-Type: application/json", "Content-Encoding: gzip", f"Content-Length: {len(packed)}")
            await peer.head("400 Bad Request", *fields)
            await peer.send(packed)

    async with CHAT.backend(script) as backend, router_for(backend) as router:
        empty = await router.post(CHAT.path, CHAT.body(stream=False))
        assert (empty.status, empty.body, empty.header("content-length")) == (400, b"", "0")
        answer = await router.post(CHAT.path, CHAT.body(stream=False), "Accept-Encoding: gzip")
        assert (answer.status, answer.body, answer.header("content-encoding")) == (400, packed, "gzip")
