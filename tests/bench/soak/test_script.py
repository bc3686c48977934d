"""What a backend writes for an order, and what a client may expect."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from bench.soak.apis import APIS, CHAT, OLLAMA, Api
from bench.soak.order import Fault, Framing, Order, Way
from bench.soak.script import End, begins, expected, script, texts
from tests.bench.soak.unframed import unframed

each_api = pytest.mark.parametrize("api", APIS.values(), ids=list(APIS))
each_framing = pytest.mark.parametrize("framing", Framing)
STREAM = Order(n=17, stream=True, pieces=5)
WHOLE = Order(n=17, pieces=5)


def written(api: Api, order: Order) -> bytes:
    return b"".join(data for _, data in script(api, order).writes)


@each_api
@each_framing
@pytest.mark.parametrize("order", [STREAM, WHOLE, replace(STREAM, gzip=True), replace(WHOLE, gzip=True)], ids=str)
def test_a_good_answer_carries_what_is_expected_in_each_framing(api: Api, framing: Framing, order: Order) -> None:
    order = replace(order, framing=framing)
    answer = unframed(written(api, order))
    assert (answer.status, answer.body, answer.complete) == (200, expected(api, order).body, True)
    assert script(api, order).end is (End.CLOSE if framing is Framing.UNTIL_CLOSE else End.NEXT)


@each_api
def test_each_piece_of_a_stream_names_the_call_and_its_place(api: Api) -> None:
    body = expected(api, STREAM).body
    for place in range(STREAM.pieces):
        assert body.count(b"17.%d " % place) == 1
    assert body.endswith(api.boundary)


@each_api
def test_whole_answers_are_json(api: Api) -> None:
    assert b"|".join(texts(WHOLE)).decode() in json.dumps(json.loads(expected(api, WHOLE).body), ensure_ascii=False)


def test_no_two_calls_have_the_same_answer() -> None:
    bodies = {expected(CHAT, replace(STREAM, n=n)).body for n in range(1000)}
    assert len(bodies) == 1000


@each_api
def test_the_beginning_of_a_long_stream_is_known_without_the_rest(api: Api) -> None:
    endless = replace(STREAM, pieces=10**9)
    assert begins(api, endless, 1000) == expected(api, replace(STREAM, pieces=100)).body[:1000]


BROKEN: list[dict[str, Any]] = [
    {"fault": Fault.AFTER_HEAD},
    {"fault": Fault.MID, "after": 2},
    {"fault": Fault.MID, "after": 2, "torn": True},
    {"fault": Fault.HALF_CHUNK, "after": 2},
    {"fault": Fault.HALF_CHUNK, "after": 2, "torn": True},
    {"fault": Fault.AFTER_LAST},
]


@pytest.mark.parametrize("fault", BROKEN, ids=str)
@pytest.mark.parametrize("way", Way)
@pytest.mark.parametrize("api", [CHAT, OLLAMA], ids=["chat", "ollama"])
def test_a_broken_answer_is_a_true_beginning_without_its_end(api: Api, way: Way, fault: dict[str, Any]) -> None:
    order = replace(STREAM, way=way, **fault)
    answer = unframed(written(api, order))
    assert not answer.complete
    assert expected(api, order).body.startswith(answer.body)
    assert script(api, order).end.value == way.value


def test_wrong_lengths_are_wrong() -> None:
    order = replace(WHOLE, framing=Framing.LENGTH)
    too_long = unframed(written(CHAT, replace(order, fault=Fault.TOO_LONG)))
    assert not too_long.complete
    assert too_long.body == expected(CHAT, order).body
    short = replace(order, fault=Fault.TOO_SHORT)
    too_short = unframed(written(CHAT, short))
    assert too_short.complete
    assert too_short.body == expected(CHAT, short).body[: expected(CHAT, short).cut_bytes]
    assert too_short.surplus


def test_surplus_looks_like_another_answer() -> None:
    answer = unframed(written(CHAT, replace(STREAM, fault=Fault.SURPLUS)))
    assert answer.complete
    assert answer.surplus.startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("fault", [Fault.SURPLUS, Fault.TOO_SHORT])
def test_what_is_too_much_comes_with_the_rest(fault: Fault) -> None:
    order = replace(WHOLE, framing=Framing.LENGTH, fault=fault, batch=1)
    assert len(list(script(CHAT, order).writes)) == 1


@pytest.mark.parametrize("fault", [Fault.ERROR, Fault.BUSY, Fault.LIMIT])
def test_a_no_names_the_call(fault: Fault) -> None:
    order = replace(STREAM, fault=fault)
    answer = unframed(written(CHAT, order))
    wanted = expected(CHAT, order)
    assert (answer.status, answer.body) == (wanted.status, wanted.body)
    assert b"no 17" in answer.body


def test_a_compressed_answer_is_a_gzip_file() -> None:
    order = replace(STREAM, gzip=True)
    assert gzip.decompress(expected(CHAT, order).body) == expected(CHAT, STREAM).body
