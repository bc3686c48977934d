"""Orders survive a prompt, and a changed body is noticed."""

from __future__ import annotations

import gzip

import pytest

from bench.soak.apis import APIS, Api
from bench.soak.call import Call
from bench.soak.order import Fault, Framing, Order, Then, Way, read
from bench.soak.schedule import FAULTY, call_of, calls

LONG = Order(
    n=7,
    stream=True,
    pieces=3,
    size=4000,
    batch=1,
    think_ms=5,
    gap_ms=6,
    framing=Framing.UNTIL_CLOSE,
    gzip=True,
    fault=Fault.HALF_CHUNK,
    way=Way.HANG,
    after=2,
    torn=True,
    then=Then.DEAF,
    then_ms=9,
)
each_api = pytest.mark.parametrize("api", APIS.values(), ids=list(APIS))


@each_api
@pytest.mark.parametrize("order", [Order(n=1), LONG], ids=["plain", "with everything"])
def test_an_order_is_read_as_it_was_written(api: Api, order: Order) -> None:
    asked = read(Call(api=api, order=order).body())
    assert asked is not None
    assert asked.order == order
    assert asked.intact


@each_api
def test_another_name_of_the_model_changes_nothing_and_every_other_byte_does(api: Api) -> None:
    body = Call(api=api, order=LONG).body()
    renamed = read(body.replace(b'"model":"soak"', b'"model":"soak-with-a-longer-name"'))
    assert renamed is not None
    assert renamed.intact
    changed = read(body.replace(b"the", b"thy", 1))
    assert changed is not None
    assert not changed.intact


def test_a_body_without_an_order_has_none() -> None:
    assert read(b'{"model":"soak","prompt":"hello"}') is None


def test_a_body_has_about_the_size_that_was_asked_for_and_may_be_compressed() -> None:
    call = Call(api=APIS["chat"], order=LONG, size_bytes=50_000)
    assert abs(len(call.body()) - 50_000) < 200
    packed = Call(api=APIS["chat"], order=LONG, size_bytes=50_000, gzip=True)
    assert gzip.decompress(packed.body()) == call.body()
    assert b"Content-Encoding: gzip\r\n" in packed.head(packed.body())


def test_a_seed_gives_the_same_calls_again() -> None:
    drawn = list(calls(5, 300, FAULTY))
    assert drawn == list(calls(5, 300, FAULTY))
    assert drawn != list(calls(6, 300, FAULTY))
    assert call_of(5, 123, FAULTY) == drawn[122]
    assert [call.order.n for call in drawn] == list(range(1, 301))


def test_all_faults_and_manners_come_up() -> None:
    drawn = list(calls(1, 8000, FAULTY))
    assert {call.order.fault for call in drawn} == set(Fault)
    assert {call.order.framing for call in drawn} == set(Framing)
    assert {call.order.then for call in drawn} == set(Then)
    assert {(call.order.fault, call.order.way) for call in drawn} >= {(Fault.MID, way) for way in Way}
    assert {call.api.name for call in drawn} == set(APIS)
