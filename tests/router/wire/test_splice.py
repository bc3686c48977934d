"""The model name of a body is replaced, and nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.wire.splice import multipart_field, replace_model, replace_multipart_field, replace_multipart_model

# --- the model of a JSON body


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"model":"a"}', b'{"model":"new"}'),
        (b'{"n":1.50,"model":"a","z":1e5}', b'{"n":1.50,"model":"new","z":1e5}'),
        (b' {\n\t"model" :\r\n "a" }\n', b' {\n\t"model" :\r\n "new" }\n'),
        (b'{"model":""}', b'{"model":"new"}'),
        (b'{"model":"a\\"b\\\\"}', b'{"model":"new"}'),
        (b'{"model":null}', b'{"model":"new"}'),
        (b'{"model":12,"a":1}', b'{"model":"new","a":1}'),
        (b'{"model":{"a":["}"]},"b":2}', b'{"model":"new","b":2}'),
        (b'{"model":[[1],"]"],"b":2}', b'{"model":"new","b":2}'),
        (b'{"a":{"model":"x"},"model":"a"}', b'{"a":{"model":"x"},"model":"new"}'),
        (b'{"model":"a","a":{"model":"x"}}', b'{"model":"new","a":{"model":"x"}}'),
        (
            b'{"a":[{"model":"x"}],"model":"a","b":[{"model":"y"}]}',
            b'{"a":[{"model":"x"}],"model":"new","b":[{"model":"y"}]}',
        ),
        (b'{"model":"a","b":1,"model":"c"}', b'{"model":"new","b":1,"model":"new"}'),
        (b'{"a":"\\"model\\":\\"x\\"","model":"a"}', b'{"a":"\\"model\\":\\"x\\"","model":"new"}'),
        (b'{"\\"model":"x","model":"a"}', b'{"\\"model":"x","model":"new"}'),
        (b'{"a":"{[\\\\","model":"a"}', b'{"a":"{[\\\\","model":"new"}'),
        (b'{"a":"{[\\\\\\"{","model":"a","b":"\\"]"}', b'{"a":"{[\\\\\\"{","model":"new","b":"\\"]"}'),
        (b'{"a":"model","model":"a"}', b'{"a":"model","model":"new"}'),
        (b'{"mod\\u0065l":"a"}', b'{"mod\\u0065l":"new"}'),
        (b'{"\\u006D\\u006f\\u0064\\u0065\\u006C":"a"}', b'{"\\u006D\\u006f\\u0064\\u0065\\u006C":"new"}'),
        (b'{"model":"a","mod\\u0065l":"b"}', b'{"model":"new","mod\\u0065l":"new"}'),
        (b'{"a":"\xff\xfe{","model":"\xff"}', b'{"a":"\xff\xfe{","model":"new"}'),
    ],
)
def test_exactly_the_value_is_replaced(body: bytes, expected: bytes) -> None:
    assert replace_model(body, "new") == expected


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b'"model"',
        b'{"models":"a"}',
        b'{"Model":"a"}',
        b'{"a":{"model":"x"}}',
        b'[{"model":"x"}]',
        b'{"a":"model"}',
    ],
)
def test_a_body_without_the_key_stays_as_it_is(body: bytes) -> None:
    assert replace_model(body, "new") is body


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"name":"a"}', b'{"name":"new"}'),
        (b'{"n\\u0061me": "a","a":{"name":"x"}}', b'{"n\\u0061me": "new","a":{"name":"x"}}'),
        (b'{"model":"","name":"a","rename":"x"}', b'{"model":"","name":"new","rename":"x"}'),
        (b'{"model":"a"}', b'{"model":"a"}'),
    ],
)
def test_another_key_can_be_the_one_that_names_it(body: bytes, expected: bytes) -> None:
    assert replace_model(body, "new", "name") == expected


def test_the_new_name_is_written_as_json() -> None:
    replaced = replace_model(b'{"model":"a"}', 'Qwen/"żółć"😀\\')
    assert json.loads(replaced) == {"model": 'Qwen/"żółć"😀\\'}


@pytest.mark.parametrize("body", [b"", b"{", b'{"model":', b'{"model":"a', b'{"model":{"a', b"\\", b'"model":'])
def test_what_is_not_json_does_not_raise(body: bytes) -> None:
    replace_model(body, "new")


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@pytest.mark.parametrize("piece", ['"a",', "[],", '{"b":"c"},', '"\\"",', "12345,", '{"model":1},'])
def test_time_is_linear_in_the_size_of_the_body(piece: str) -> None:
    def body(size: int) -> bytes:
        return f'{{"a":[{piece * (size // len(piece))}0],"b":{{"model":1}},"model":"a"}}'.encode()

    small, large = body(100_000), body(1_600_000)
    slow = min(seconds(lambda: replace_model(large, "new")) for _ in range(3))
    fast = min(seconds(lambda: replace_model(small, "new")) for _ in range(5))
    assert slow < 100 * fast


SPACES = st.sampled_from(["", "", "", " ", "\n", "\t ", "\r\n"])
TEXTS = st.text(st.sampled_from('model":{}[],\\/é😀\n ue006'), max_size=12) | st.sampled_from(
    ["model", '"model":', "\\"]
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS)
KEYS = st.sampled_from(["model", "model", "messages", "a"]) | TEXTS


@st.composite
def strings(draw: st.DrawFn, text: str) -> str:
    """`text` as a JSON string, with escapes where one is free to use them."""
    written = json.dumps(text, ensure_ascii=draw(st.booleans()))[1:-1]
    if "\\" not in written and written and draw(st.booleans()):
        at = draw(st.integers(0, len(written) - 1))
        if ord(written[at]) < 0x10000:
            written = f"{written[:at]}\\u{ord(written[at]):04X}{written[at + 1 :]}"
    return f'"{written}"'


@st.composite
def texts(draw: st.DrawFn, depth: int) -> str:
    """Any JSON text, with any white space."""
    kind = draw(st.sampled_from(["scalar", "object", "array"] if depth else ["scalar"]))
    items: list[str] = []
    if kind == "object":
        for key in draw(st.lists(KEYS, max_size=3)):
            items.append(draw(strings(key)) + draw(SPACES) + ":" + draw(SPACES) + draw(texts(depth - 1)))
    elif kind == "array":
        items = [draw(texts(depth - 1)) for _ in range(draw(st.integers(0, 3)))]
    else:
        scalar = draw(SCALARS)
        return draw(strings(scalar)) if isinstance(scalar, str) else json.dumps(scalar)
    opening, closing = "{}" if kind == "object" else "[]"
    return opening + draw(SPACES) + (draw(SPACES) + "," + draw(SPACES)).join(items) + draw(SPACES) + closing


@st.composite
def bodies(draw: st.DrawFn) -> tuple[str, str]:
    """A body, and the same with each value of `model` in its outermost object replaced by hand."""
    before, after = [], []
    for key in draw(st.lists(KEYS, max_size=5)):
        head = draw(SPACES) + draw(strings(key)) + draw(SPACES) + ":" + draw(SPACES)
        value, tail = draw(texts(3)), draw(SPACES)
        before.append(head + value + tail)
        after.append(head + ('"new"' if key == "model" else value) + tail)
    return "{" + ",".join(before) + "}", "{" + ",".join(after) + "}"


@given(bodies())
def test_any_body_keeps_every_byte_outside_of_the_value(pair: tuple[str, str]) -> None:
    body, expected = pair
    replaced = replace_model(body.encode(), "new")
    assert replaced == expected.encode()
    parsed = json.loads(body)
    if "model" in parsed:
        parsed["model"] = "new"
    assert json.loads(replaced) == parsed


# --- the model of a multipart form

FORM_TYPE = "multipart/form-data; boundary=XyZ"


def form(*parts: tuple[str, bytes], boundary: str = "XyZ") -> bytes:
    lines = [f"--{boundary}\r\n{head}\r\n\r\n".encode() + content + b"\r\n" for head, content in parts]
    return b"".join(lines) + f"--{boundary}--\r\n".encode()


AUDIO = (
    'Content-Disposition: form-data; name="file"; filename="model"\r\nContent-Type: audio/wav',
    b'\r\n\r\nname="model"\x00\xff',
)
MODEL = ('content-disposition: form-data; name="model"', b"whisper-1")


def test_a_field_of_a_form_is_read() -> None:
    body = form(AUDIO, MODEL, ("Content-Disposition: form-data; name=stream", b"true"))
    assert multipart_field(body, FORM_TYPE, "model") == "whisper-1"
    assert multipart_field(body, FORM_TYPE, "stream") == "true"
    assert multipart_field(body, FORM_TYPE, "language") is None


def test_the_boundary_may_be_quoted_and_a_preamble_is_passed_over() -> None:
    body = b"preamble\r\n" + form(MODEL, boundary="a b")
    assert multipart_field(body, 'multipart/form-data; charset=utf-8; boundary="a b"', "model") == "whisper-1"


def test_exactly_the_content_of_the_field_is_replaced() -> None:
    replaced = replace_multipart_model(form(AUDIO, MODEL, AUDIO), FORM_TYPE, "large-v3")
    assert replaced == form(AUDIO, (MODEL[0], b"large-v3"), AUDIO)


def test_every_field_of_that_name_is_replaced() -> None:
    assert replace_multipart_field(form(MODEL, MODEL), FORM_TYPE, "model", "é") == form(*[(MODEL[0], "é".encode())] * 2)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (form(AUDIO), FORM_TYPE),
        (form(MODEL), "multipart/form-data"),
        (form(MODEL), "multipart/form-data; boundary=other"),
        (form(MODEL)[:60], FORM_TYPE),
        (b"", FORM_TYPE),
        (b"--XyZ", FORM_TYPE),
    ],
)
def test_a_form_without_the_field_stays_as_it_is(body: bytes, content_type: str) -> None:
    assert multipart_field(body, content_type, "model") is None
    assert replace_multipart_model(body, content_type, "new") is body
