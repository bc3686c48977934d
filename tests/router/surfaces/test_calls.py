"""From bytes to features: what is refused before any backend is asked, and in which words."""

from __future__ import annotations

import orjson
import pytest

from router.errors import BadRequest
from router.surfaces import find, read_call
from tests.router.surfaces.streams import read

JSON_PATHS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/responses",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/rerank",
    "/v1/score",
    "/v1/audio/speech",
    "/tokenize",
    "/api/chat",
    "/api/generate",
    "/api/embed",
    "/api/show",
    "/completion",
    "/infill",
    "/apply-template",
)
FORM_TYPE = "multipart/form-data; boundary=XyZ"


@pytest.mark.parametrize("path", JSON_PATHS)
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is empty; send a JSON object"),
        (b"{", "line 1, column 2"),
        (b'{\n "a": nope}', "line 2, column 7"),
        (b"[]", "the body is an array; send a JSON object"),
        (b'"hi"', "the body is a string; send a JSON object"),
        (b"null", "the body is null; send a JSON object"),
        (b"5", "the body is a number; send a JSON object"),
        (b"true", "the body is a boolean; send a JSON object"),
        (b"\xff\xfe", "the body is not JSON"),
        (b"[" * 3000, "the body is not JSON"),
    ],
)
def test_what_is_no_json_object_is_refused_with_what_it_is(path: str, body: bytes, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read_call(find("POST", path), body, {})
    assert message in caught.value.message


@pytest.mark.parametrize("path", JSON_PATHS)
@pytest.mark.parametrize("model", [5, ["m"], {"id": "m"}, True])
def test_a_model_that_is_no_string_is_refused(path: str, model: object) -> None:
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}], "input": "hi"}
    with pytest.raises(BadRequest) as caught:
        read(path, body)
    assert caught.value.param == "model"
    assert "expected a string, got a" in caught.value.message


@pytest.mark.parametrize(
    "path", ["/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens", "/apply-template"]
)
@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, "it is missing"),
        ({"messages": None}, "got null"),
        ({"messages": "hi"}, "got a string"),
        ({"messages": {}}, "got an object"),
        ({"messages": []}, "got an empty array"),
    ],
)
def test_a_chat_without_messages_is_refused(path: str, fields: dict[str, object], found: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read(path, {"model": "m", **fields})
    assert caught.value.message == f"messages: expected a non-empty array, {found}"
    assert caught.value.param == "messages"


def test_a_message_that_is_no_object_is_named() -> None:
    with pytest.raises(BadRequest) as caught:
        read("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "a"}, "b"]})
    assert caught.value.param == "messages[1]"


def test_the_text_of_a_call_never_stands_in_an_error() -> None:
    with pytest.raises(BadRequest) as caught:
        read_call(find("POST", "/v1/chat/completions"), b'{"messages": "my secret', {})
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("path", JSON_PATHS)
def test_unknown_fields_of_any_type_are_no_reason_to_refuse(path: str) -> None:
    odd = {"stream": "yes", "n": "two", "max_tokens": 1.5, "tools": "x", "response_format": [], "options": 5, "text": 7}
    odd |= {"priority": "high", "service_tier": 3, "prompt_cache_key": None, "instructions": 9, "system": 1, "x": [[]]}
    read(path, {"messages": [{"role": ["a"], "content": 5}], "input": "hi", **odd})


@pytest.mark.parametrize("path", JSON_PATHS)
def test_content_nested_as_deep_as_json_may_be_is_read(path: str) -> None:
    deep = b'{"content":[' * 490 + b'"x"' + b"]}" * 490
    messages = b'[{"role":"user","content":[' + deep + b"]}]"
    lists = b"[" * 1000 + b"]" * 1000
    body = b'{"messages":%b,"input":%b,"prompt":%b,"tools":%b}' % (messages, b'"x"', b'"x"', lists)
    read_call(find("POST", path), body, {})


def test_headers_are_kept_for_the_classifiers() -> None:
    headers = {"x-team": "nightly"}
    assert read("/v1/embeddings", {"input": "a"}, headers).headers is headers


def test_a_stored_response_is_read_from_the_path_alone() -> None:
    features = read_call(find("POST", "/v1/responses/resp_1/cancel"), b"not even json", {})
    assert (features.surface, features.previous_response_id) == ("openai_responses", "resp_1")


def test_a_listing_has_no_body() -> None:
    assert read_call(find("GET", "/v1/models/a/b"), b"", {}).model == "a/b"
    assert read_call(find("GET", "/api/tags"), b"", {}).surface == "ollama_tags"


def form(**fields: str) -> bytes:
    parts = [
        f'--XyZ\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n' for name, text in fields.items()
    ]
    return "".join([*parts, "--XyZ--\r\n"]).encode()


def test_a_form_is_read_for_its_text_fields() -> None:
    route = find("POST", "/v1/audio/transcriptions")
    features = read_call(route, form(model="whisper-1", file="RIFF", stream="true"), {"content-type": FORM_TYPE})
    assert (features.surface, features.model, features.stream) == ("openai_audio", "whisper-1", True)
    assert (features.media, features.prompt_tokens < 10) == (1, True)


def test_json_is_refused_where_a_form_is_expected() -> None:
    route = find("POST", "/v1/audio/transcriptions")
    with pytest.raises(BadRequest, match="multipart/form-data"):
        read_call(route, orjson.dumps({"model": "m"}), {"content-type": "application/json"})


@pytest.mark.parametrize(
    "text", [b'"\\ud83d"', b'"a", "x": NaN', b'"a", "x": 1e999', b'"a", "x": ' + b"9" * 4000], ids=range(4)
)
def test_what_only_some_servers_read_is_read_here_too(text: bytes) -> None:
    body = b'{"messages": [{"role": "user", "content": "hi"}], "user": ' + text + b"}"
    for readable in (body, b"\xef\xbb\xbf" + body):
        assert read_call(find("POST", "/v1/chat/completions"), readable, {}).last_tokens == 1


def test_a_long_body_is_not_read_twice() -> None:
    padding = b" " * 3_000_000
    with pytest.raises(BadRequest, match="is not JSON"):
        read_call(
            find("POST", "/v1/chat/completions"),
            b'{"messages": [{"role": "user", "content": "hi"}], "x": NaN}' + padding,
            {},
        )
