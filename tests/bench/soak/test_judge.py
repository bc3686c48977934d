"""Every wrong answer is called by its name, and no right one is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.soak.apis import APIS, CHAT, Api
from bench.soak.call import Call
from bench.soak.client import Seen
from bench.soak.journal import Fate, Journal
from bench.soak.judge import Kind, Look, excused, look, miscounted, promised
from bench.soak.order import Fault, Framing, Order, Way
from bench.soak.script import expected, no
from bench.soak.tally import Tally
from router.errors import BackendBroke, BackendTimeout, NoBackend, RouterError
from router.surfaces import SURFACES

STREAM = Order(n=17, stream=True, pieces=5)
WHOLE = Order(n=17, pieces=5, framing=Framing.LENGTH)
NAMES = {"chat": "openai_chat", "completions": "openai_completions", "messages": "anthropic_messages"}
each_api = pytest.mark.parametrize("api", APIS.values(), ids=list(APIS))


def seen(
    body: bytes, order: Order = STREAM, *, api: Api = CHAT, status: int = 200, complete: bool = True, left: bool = False
) -> Seen:
    found = Seen(Call(api=api, order=order), began_s=0.0)
    found.status, found.pieces, found.complete, found.left = status, [body], complete, left
    found.size = len(body)
    found.request_id = b"soak-%d" % order.n
    found.retry_after = b"2"
    return found


def body_of(order: Order = STREAM, api: Api = CHAT) -> bytes:
    return expected(api, order).body


def event_of(api: Api, error: RouterError) -> bytes:
    return SURFACES[NAMES.get(api.name, "ollama_chat")].error_event(error)


def refusal_of(api: Api, error: RouterError) -> bytes:
    return SURFACES[NAMES.get(api.name, "ollama_chat")].error_body(error)


@each_api
@pytest.mark.parametrize("order", [STREAM, WHOLE], ids=["stream", "whole"])
def test_the_whole_answer_is_complete(api: Api, order: Order) -> None:
    assert look(seen(body_of(order, api), order, api=api)) == Look(Kind.COMPLETE)


def test_less_that_looks_complete_is_a_false_end() -> None:
    assert look(seen(body_of()[:-1])).kind is Kind.FALSE_END
    assert look(seen(b"")).kind is Kind.FALSE_END


def test_one_changed_byte_is_found_whether_it_ended_well_or_not() -> None:
    body = body_of()
    for at in (0, 100, len(body) - 1):
        changed = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        assert look(seen(changed)).kind is Kind.ALTERED
        assert look(seen(changed, complete=False)).kind is Kind.ALTERED


def test_a_doubled_and_a_missing_piece_are_found() -> None:
    events = body_of().split(b"\n\n")
    assert look(seen(b"\n\n".join([*events[:3], events[2], *events[3:]]))).kind is Kind.ALTERED
    assert look(seen(b"\n\n".join([*events[:2], *events[3:]]))).kind is Kind.ALTERED


def test_the_answer_of_another_call_is_swapped() -> None:
    other = replace(STREAM, n=18)
    assert look(seen(body_of(other))).kind is Kind.SWAPPED
    foreign = seen(body_of())
    foreign.request_id = b"soak-18"
    assert look(foreign).kind is Kind.SWAPPED


def test_no_answer_is_lost_but_not_for_a_client_that_left() -> None:
    nothing = seen(b"", status=0, complete=False)
    assert look(nothing).kind is Kind.LOST
    nothing.left = True
    assert look(nothing).kind is Kind.LEFT


@each_api
def test_a_break_between_events_has_to_be_told_and_inside_of_one_cannot(api: Api) -> None:
    events = [event + api.boundary for event in body_of(api=api).split(api.boundary)][:3]
    between, inside = b"".join(events), b"".join(events)[:-5]
    error = event_of(api, BackendBroke("it broke"))
    assert look(seen(between + error, api=api, complete=False)).kind is Kind.SAID
    assert look(seen(error, api=api, complete=False)).kind is Kind.SAID
    assert look(seen(between, api=api, complete=False)).kind is Kind.BAD_ERROR
    assert look(seen(inside, api=api, complete=False)).kind is Kind.BROKEN
    assert look(seen(inside + error, api=api, complete=False)).kind is Kind.ALTERED
    assert look(seen(between + error[:-4], api=api, complete=False)).kind is Kind.BAD_ERROR
    assert look(seen(between + error, api=api, complete=True)).kind is not Kind.SAID
    assert look(seen(between + error[:-4], api=api, complete=False, left=True)).kind is Kind.LEFT


def test_a_broken_whole_answer_carries_no_word() -> None:
    body = body_of(WHOLE)
    assert look(seen(body[:50], WHOLE, complete=False)).kind is Kind.BROKEN
    error = event_of(CHAT, BackendBroke("it broke"))
    assert look(seen(body[:50] + error, WHOLE, complete=False)).kind is Kind.ALTERED


@each_api
def test_refusals_have_the_shape_of_their_api(api: Api) -> None:
    for error, kind in (
        (BackendBroke("it broke"), Kind.BAD_GATEWAY),
        (BackendTimeout("silent"), Kind.TIMEOUT),
        (NoBackend("none"), Kind.UNAVAILABLE),
    ):
        body = refusal_of(api, error)
        assert look(seen(body, api=api, status=error.status)).kind is kind
        assert look(seen(body, api=api, status=error.status, complete=False)).kind is Kind.BAD_ERROR
    assert look(seen(b"oops", api=api, status=502)).kind is Kind.BAD_ERROR
    assert look(seen(refusal_of(api, RouterError("bug")), api=api, status=500)).kind is Kind.BAD_ERROR


def test_who_is_told_to_come_back_is_told_when() -> None:
    refused = seen(refusal_of(CHAT, NoBackend("none")), status=503)
    refused.retry_after = b""
    assert look(refused).kind is Kind.BAD_ERROR


def test_a_code_that_does_not_fit_its_status_is_wrong() -> None:
    assert look(seen(refusal_of(CHAT, NoBackend("none")), status=504)).kind is Kind.BAD_ERROR


@pytest.mark.parametrize(("fault", "status"), [(Fault.ERROR, 500), (Fault.BUSY, 503), (Fault.LIMIT, 429)])
def test_the_no_of_a_backend_passes_as_it_is(fault: Fault, status: int) -> None:
    order = replace(STREAM, fault=fault)
    assert look(seen(no(order), order, status=status)).kind is Kind.PASSED
    assert look(seen(no(replace(order, n=18)), order, status=status)).kind in (Kind.BAD_ERROR, Kind.OVERLOADED)


def test_a_length_that_was_too_short_is_kept_to() -> None:
    order = replace(WHOLE, fault=Fault.TOO_SHORT)
    body, cut_bytes = body_of(order), expected(CHAT, order).cut_bytes
    assert look(seen(body[:cut_bytes], order)).kind is Kind.SHORT
    assert look(seen(body, order)).kind is not Kind.SHORT
    assert look(seen(body[: cut_bytes - 1], order)).kind is Kind.FALSE_END


def test_hanging_backends_end_in_their_own_way() -> None:
    hangs = replace(STREAM, fault=Fault.UNANSWERED, way=Way.HANG)
    assert promised(hangs) == {Kind.TIMEOUT}
    assert Kind.COMPLETE not in promised(replace(hangs, fault=Fault.MID))


def test_calls_are_generated_once_and_refused_ones_never() -> None:
    assert miscounted(Kind.COMPLETE, 1) == ""
    assert miscounted(Kind.COMPLETE, 0)
    assert miscounted(Kind.COMPLETE, 2)
    assert miscounted(Kind.LEFT, 2)
    assert miscounted(Kind.UNAVAILABLE, 1)
    assert miscounted(Kind.UNAVAILABLE, 0) == ""


def test_only_a_backend_that_went_down_excuses_a_broken_call() -> None:
    assert excused(Kind.BAD_GATEWAY, Fate.CUT, 1, outage=False)
    assert excused(Kind.BAD_GATEWAY, Fate(0), 0, outage=True)
    assert excused(
        Kind.BAD_GATEWAY, Fate.ANSWERED, 0, outage=True
    )  # by a backend that was loading, then it met another
    assert not excused(Kind.BAD_GATEWAY, Fate(0), 0, outage=False)
    assert not excused(Kind.SAID, Fate.ANSWERED, 1, outage=True)
    assert not excused(Kind.FALSE_END, Fate.CUT, 1, outage=True)


def test_the_tally_finds_what_the_answers_and_the_journal_show() -> None:
    tally, journal = Tally(20), Journal()
    for n in (17, 18, 19):
        journal.visited(n)
        journal.generates(n)
        journal.ended(n, Fate.ANSWERED)
    journal.generates(18)
    tally.take(seen(body_of()))
    tally.take(seen(body_of(replace(STREAM, n=18)), replace(STREAM, n=18)))
    tally.take(seen(b"", replace(STREAM, n=19), complete=False, status=0))
    found = [
        violation.n for violation in tally.violations(Journal.of(journal.as_json()), lambda began_s, ended_s: False)
    ]
    assert sorted(found) == [18, 19]
    assert tally.kinds == {Kind.COMPLETE: 2, Kind.LOST: 1}
