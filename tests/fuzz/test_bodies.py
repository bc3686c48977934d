"""Bodies of calls: read, judged, and another model name put in."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.errors import BadRequest
from router.surfaces import Route, read_call
from router.wire.splice import multipart_field, replace_model, replace_multipart_model
from tests.fuzz.bodies import FORM_TYPE, ROUTES, WORDS, check_call, check_errors, check_form, check_splice
from tests.fuzz.budget import fuzzed
from tests.fuzz.cost import is_linear, peak_bytes
from tests.fuzz.pieces import documents, mutated
from tests.fuzz.seeds import CALL_FRAGMENTS, CALLS, FORM_FRAGMENTS, FORMS

KIB: Final = 2**10
NEARLY_CALLS: Final = mutated(CALLS, CALL_FRAGMENTS)
VALUES: Final = documents(WORDS, ["user", "tool", "text", "image", [], {}, [1, 2], [""], "\x00"])
OBJECTS: Final = st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=8)
MESSAGES: Final = st.lists(
    st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "type"]), VALUES), max_size=4
)

by_route = pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.target)


def as_json(value: Any, *, ascii_only: bool = True) -> bytes:
    return json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


@by_route
@fuzzed(40)
@given(body=NEARLY_CALLS)
def test_any_body_is_a_call_or_a_bad_request(route: Route, body: bytes) -> None:
    check_call(route, body, FORM_TYPE)


@by_route
@fuzzed(40)
@given(root=OBJECTS, messages=MESSAGES, model=VALUES)
def test_any_object_is_a_call_or_a_bad_request(
    route: Route, root: dict[str, Any], messages: list[Any], model: Any
) -> None:
    check_call(route, as_json(root))
    check_call(route, as_json({**root, "messages": messages, "input": messages, "prompt": root.get("prompt")}))
    check_call(route, as_json({"model": model, "messages": [{"role": "user", "content": "x"}], "input": "x"}))


@fuzzed(200)
@given(NEARLY_CALLS | st.lists(st.sampled_from(CALL_FRAGMENTS) | st.binary(max_size=6)).map(b"".join))
def test_any_bytes_get_another_model_or_stay(body: bytes) -> None:
    check_splice(body)


@fuzzed(150)
@given(OBJECTS, st.booleans(), st.sampled_from([(",", ":"), (" ,\n", "\t: ")]))
def test_any_object_keeps_its_meaning(root: dict[str, Any], ascii_only: bool, between: tuple[str, str]) -> None:
    body = json.dumps(root, ensure_ascii=ascii_only, separators=between).encode("utf-8", "surrogatepass")
    check_splice(body)


@fuzzed(150)
@given(
    mutated(FORMS, FORM_FRAGMENTS),
    st.sampled_from([FORM_TYPE, 'Multipart/Form-Data; a=b; boundary="XyZ"', "multipart/form-data; boundary=X"]),
)
def test_any_form_gets_another_model_or_stays(body: bytes, content_type: str) -> None:
    check_form(body, content_type)


@fuzzed(100)
@given(st.text() | st.text('\n\r"\\{}\0\ud800'))
def test_an_error_is_json_whatever_it_quotes(message: str) -> None:
    check_errors(message.encode("utf-8", "replace").decode())


# --- cost

PARTS: Final = [
    b'"a",',
    b"1,",
    b"[],",
    b"{},",
    b'{"role":"user","content":""},',
    b'{"role":"assistant","content":"a"},',
    b'{"role":"user","content":[]},',
    b'{"role":"user","content":[{"type":"text","text":""}]},',
    b'"",',
    b'"\xc3\xa9",',
    b'{"role":"tool","content":"a"},',
    b'{"role":"user","content":"a","tool_calls":[{"function":{"name":"f"}}]},',
    b'{"text":"a","input":{"input":{}}},',
    b'{"type":"image"},',
    b'{"model":"m"},',
    b'"\\"model\\":",',
    b"[[1],[2]],",
]


@pytest.mark.parametrize("route", ROUTES[::2], ids=lambda route: route.target)
@pytest.mark.parametrize("part", PARTS)
def test_many_of_anything_are_read_in_linear_time(route: Route, part: bytes) -> None:
    def body(size: int, names: tuple[bytes, ...]) -> bytes:
        many = b"[%b%b]" % (part * (size // len(part)), part[:-1])
        return b'{"model":"m","query":["a","b"],%b}' % b",".join(b'"%b":%b' % (name, many) for name in names)

    def work(body: bytes) -> None:
        with suppress(BadRequest):
            read_call(route, body, {})

    for names in (b"messages",), (b"input", b"prompt", b"documents", b"tools", b"system", b"content"):
        assert is_linear(lambda size, names=names: body(size, names), work, largest_bytes=2**19)  # type: ignore[misc]


@by_route
def test_a_call_takes_memory_by_its_size(route: Route) -> None:
    text, many = "q" * 100_000, [""] * 20_000
    values: dict[str, Any] = {name: text for name in ("query", "queries", "text_1", "system", "suffix", "instructions")}
    values |= {name: many for name in ("documents", "texts", "text_2", "input", "prompt", "tokens")}
    body = as_json({"model": "m", "messages": [{"role": "user", "content": many}] * 3, **values})
    assert peak_bytes(lambda: check_call(route, body)) < 30 * len(body)


HOSTILE: Final = [
    b'"',
    b"\\",
    b'"\\',
    b'\\"',
    b'"model"',
    b'"model":',
    b'"model" ',
    b'"model":"',
    b"{",
    b"}",
    b"[{",
    b'{"model":{',
    b'{"a":[',
    b'"\\"model\\":',
    b" ",
    b",",
    b'"model":"\\"',
    b'"mod\\u0065l":1,',
]


@pytest.mark.parametrize("start", [b"", b'{"model":"', b'{"model":{"', b'{"model":', b'{"a":"', b'{"model":[{"\\"'])
@pytest.mark.parametrize("unit", HOSTILE)
def test_a_model_is_put_in_in_linear_time(start: bytes, unit: bytes) -> None:
    def make(size: int) -> bytes:
        return start + unit * (size // len(unit)) + b'"model":1}'

    assert is_linear(make, lambda body: replace_model(body, "new"), largest_bytes=2**18)


FORM_UNITS: Final = [
    b"\r\n",
    b"\r\n--XyZ",
    b"--XyZ",
    b"\r\n--XyZ\r\n",
    b"Content-Disposition: form-data;",
    b";",
    b"; ",
    b" ",
    b'name="',
    b"\r\ncontent-disposition: form-data",
    b'\r\n--XyZ\r\nContent-Disposition: form-data; name="model"\r\n\r\n',
    b";name=",
    b"\r\n--XyZ\r\nContent-Disposition: form-data; name=a\r\n",
    b"\r",
    b"\r\n--Xy",
]


@pytest.mark.parametrize("start", [b"", b"--XyZ\r\n", b"--XyZ\r\nContent-Disposition: form-data; "])
@pytest.mark.parametrize("unit", FORM_UNITS)
def test_forms_are_read_in_linear_time(start: bytes, unit: bytes) -> None:
    def make(size: int) -> bytes:
        return start + unit * (size // len(unit)) + b"\r\n\r\n\r\n--XyZ--\r\n"

    def work(body: bytes) -> None:
        multipart_field(body, FORM_TYPE, "stream")
        replace_multipart_model(body, FORM_TYPE, "new")

    assert is_linear(make, work, largest_bytes=2**18)


@pytest.mark.parametrize("unit", [";", "; ", ";boundary=", ';boundary="', "; boundary", " ", ";\t\t"])
def test_the_type_of_a_form_is_read_in_linear_time(unit: str) -> None:
    def work(data: bytes) -> None:
        multipart_field(FORMS[0], "multipart/form-data" + data.decode(), "model")

    assert is_linear(lambda size: unit.encode() * (size // len(unit)), work, largest_bytes=2**16)
