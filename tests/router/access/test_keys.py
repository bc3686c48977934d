"""Whose call it is, and whether it may come in now."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.access.keys import Access, Visit
from router.errors import RateLimited, Unauthorized
from router.settings.security import ClientKey


def keys(*given: dict[str, Any]) -> list[ClientKey]:
    return [
        ClientKey.model_validate({"name": f"k{number}", "key": f"secret-{number}", **one})
        for number, one in enumerate(given)
    ]


def bearer(key: str) -> list[tuple[bytes, bytes]]:
    return [(b"Host", b"h"), (b"Authorization", f"Bearer {key}".encode())]


def visit(access: Access, key: str = "secret-0") -> Visit:
    found = access.identify(bearer(key))
    assert found is not None
    return found


def told(visited: Visit, now_s: float = 0.0) -> dict[str, str]:
    return {name.decode().lower(): value.decode() for name, value in visited.headers(now_s)}


def test_without_keys_everybody_may_call() -> None:
    assert Access([], 0.0).identify([]) is None


@pytest.mark.parametrize(
    "field",
    [
        (b"Authorization", b"Bearer secret-1"),
        (b"authorization", b"bearer  secret-1 "),
        (b"X-Api-Key", b"secret-1"),
        (b"api-key", b"secret-1"),
    ],
)
def test_a_key_is_taken_from_each_of_three_headers(field: tuple[bytes, bytes]) -> None:
    found = Access(keys({}, {}), 0.0).identify([field])
    assert found is not None
    assert found.name == "k1"


@pytest.mark.parametrize(
    "fields",
    [
        [],
        bearer("secret"),
        bearer("secret-00"),
        bearer("SECRET-0"),
        bearer(""),
        [(b"Authorization", b"Basic secret-0")],
        [(b"Authorization", b"secret-0")],
        [(b"X-Key", b"secret-0")],
        [(b"Cookie", b"key=secret-0")],
        [(b"X-Api-Key", b"\xff\x00")],
    ],
)
def test_any_other_key_is_refused_in_the_same_words(fields: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(Unauthorized) as caught:
        Access(keys({}), 0.0).identify(fields)
    assert caught.value.message == (
        "the API key is missing or wrong; send it as Authorization: Bearer KEY, or as x-api-key"
    )


def test_a_placeholder_in_one_header_does_not_hide_the_key_in_another() -> None:
    found = Access(keys({}), 0.0).identify([*bearer("unused"), (b"x-api-key", b"secret-0")])
    assert found is not None


@given(
    st.lists(
        st.tuples(st.sampled_from([b"Authorization", b"x-api-key", b"API-KEY", b"Cookie"]), st.binary()), max_size=8
    )
)
def test_whatever_is_presented_is_known_or_refused(fields: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(Unauthorized):
        Access(keys({}), 0.0).identify(fields)


def test_one_request_may_not_try_many_keys() -> None:
    tries = [(b"x-api-key", b"guess-%d" % number) for number in range(10)]
    with pytest.raises(Unauthorized):
        Access(keys({}), 0.0).identify([*tries, (b"x-api-key", b"secret-0")])


@pytest.mark.parametrize("number", range(5))
def test_each_of_many_keys_is_found(number: int) -> None:
    assert visit(Access(keys({}, {}, {}, {}, {}), 0.0), f"secret-{number}").name == f"k{number}"


def test_no_key_can_be_read_from_what_is_kept() -> None:
    access = Access(keys({}), 0.0)
    guest = access._guests[0]
    assert "secret-0" not in repr([getattr(guest, name) for name in guest.__slots__]) + repr(guest)


# --- limits


def test_calls_beyond_the_rate_are_told_when_to_come_back() -> None:
    access = Access(keys({"calls_per_minute": 2}), 0.0)
    for _ in range(2):
        visit(access).enter(0.0)
    with pytest.raises(RateLimited, match="2 calls per minute") as caught:
        visit(access).enter(0.0)
    assert caught.value.retry_after_s == pytest.approx(30.0)
    visit(access).enter(30.0)


def test_a_refused_call_is_not_counted() -> None:
    access = Access(keys({"calls_per_minute": 1, "parallel": 5}), 0.0)
    first = visit(access)
    first.enter(0.0)
    for _ in range(10):
        refused = visit(access)
        with pytest.raises(RateLimited):
            refused.enter(0.0)
        refused.leave()
    assert access._guests[0].open == 1
    visit(access).enter(60.0)


def test_tokens_are_estimated_at_the_start_and_corrected_at_the_end() -> None:
    access = Access(keys({"tokens_per_minute": 600}), 0.0)
    call = visit(access)
    call.enter(0.0)
    call.expect(100, 0.0)
    assert told(call)["x-ratelimit-remaining-tokens"] == "500"
    call.settle(250, 0.0)
    assert told(call)["x-ratelimit-remaining-tokens"] == "350"
    call.settle(None, 0.0)
    assert told(call)["x-ratelimit-remaining-tokens"] == "350"


def test_what_a_call_did_not_use_is_given_back() -> None:
    access = Access(keys({"tokens_per_minute": 600}), 0.0)
    call = visit(access)
    call.enter(0.0)
    call.expect(500, 0.0)
    call.leave()
    call.settle(0, 0.0)
    assert told(call)["x-ratelimit-remaining-tokens"] == "600"


def test_a_large_call_passes_and_the_next_wait_until_it_is_paid() -> None:
    access = Access(keys({"tokens_per_minute": 600}), 0.0)
    call = visit(access)
    call.enter(0.0)
    call.expect(6000, 0.0)
    with pytest.raises(RateLimited, match="600 tokens per minute") as caught:
        visit(access).enter(0.0)
    assert caught.value.retry_after_s == pytest.approx(540.1)


def test_calls_at_once_have_a_limit_and_an_end_makes_room_once() -> None:
    access = Access(keys({"parallel": 2}), 0.0)
    first, second = visit(access), visit(access)
    first.enter(0.0)
    second.enter(0.0)
    with pytest.raises(RateLimited, match="may have 2 at once"):
        visit(access).enter(0.0)
    first.leave()
    first.leave()
    visit(access).enter(0.0)
    with pytest.raises(RateLimited):
        visit(access).enter(0.0)


def test_keys_do_not_share_limits() -> None:
    access = Access(keys({"calls_per_minute": 1}, {"calls_per_minute": 1}), 0.0)
    visit(access, "secret-0").enter(0.0)
    visit(access, "secret-1").enter(0.0)


def test_headers_say_what_is_left_of_which_limit() -> None:
    access = Access(keys({"calls_per_minute": 60, "tokens_per_minute": 6000}), 0.0)
    call = visit(access)
    call.enter(0.0)
    call.expect(30, 0.0)
    assert told(call) == {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1.000s",
        "x-ratelimit-limit-tokens": "6000",
        "x-ratelimit-remaining-tokens": "5970",
        "x-ratelimit-reset-tokens": "0.300s",
    }
    assert told(visit(Access(keys({}), 0.0))) == {}


# --- reload


def test_a_key_that_keeps_its_name_keeps_its_counts() -> None:
    access = Access(keys({"calls_per_minute": 10, "parallel": 1}), 0.0)
    call = visit(access)
    call.enter(0.0)
    access.configure(keys({"calls_per_minute": 10, "parallel": 1, "key": "renewed"}), 0.0)
    assert told(visit(access, "renewed"))["x-ratelimit-remaining-requests"] == "9"
    with pytest.raises(RateLimited):
        visit(access, "renewed").enter(0.0)
    with pytest.raises(Unauthorized):
        visit(access, "secret-0")
    call.leave()
    visit(access, "renewed").enter(0.0)


def test_limits_can_come_and_go() -> None:
    access = Access(keys({}), 0.0)
    access.configure(keys({"calls_per_minute": 1}), 0.0)
    visit(access).enter(0.0)
    access.configure(keys({"calls_per_minute": 3}), 0.0)
    assert told(visit(access))["x-ratelimit-remaining-requests"] == "2"
    access.configure(keys({}), 0.0)
    visit(access).enter(0.0)


def test_a_call_of_a_key_that_is_gone_ends_in_peace() -> None:
    access = Access(keys({"tokens_per_minute": 5}), 0.0)
    call = visit(access)
    call.enter(0.0)
    access.configure([], 0.0)
    call.leave()
    call.settle(100, 0.0)
    assert access.identify([]) is None
