"""Headers on their way through: hop-by-hop and secrets stay, all else passes in order."""

from __future__ import annotations

import pytest

from router.heads import content_codings, hints, request_codings, to_backend, to_client


def test_a_clients_key_never_goes_to_a_backend() -> None:
    headers = [(b"Authorization", b"Bearer ROUTERKEY"), (b"X-Api-Key", b"ROUTERKEY"), (b"api-key", b"ROUTERKEY")]
    sent = to_backend(headers, api_key=None, request_id="r1")
    assert sent == [(b"X-Request-Id", b"r1")]


def test_a_backends_own_key_is_the_only_one_it_sees() -> None:
    sent = to_backend([(b"Authorization", b"Bearer CLIENT")], api_key="BACKEND", request_id="r1")
    assert [value for name, value in sent if name == b"Authorization"] == [b"Bearer BACKEND"]


def test_framing_host_and_hop_by_hop_headers_are_not_copied() -> None:
    names = [
        b"Host",
        b"Content-Length",
        b"Transfer-Encoding",
        b"Connection",
        b"Keep-Alive",
        b"TE",
        b"Trailer",
        b"Upgrade",
        b"Expect",
        b"Proxy-Authorization",
    ]
    assert to_backend([(name, b"x") for name in names], api_key=None, request_id="r") == [(b"X-Request-Id", b"r")]


def test_headers_that_connection_names_are_for_one_hop() -> None:
    headers = [(b"Connection", b"close, X-Private"), (b"X-Private", b"1"), (b"X-Public", b"2")]
    assert (b"X-Public", b"2") in to_backend(headers, api_key=None, request_id="r")
    assert b"X-Private" not in dict(to_backend(headers, api_key=None, request_id="r"))
    assert to_client(headers, (), stream=False) == [(b"X-Public", b"2")]


def test_order_case_and_repetition_stay() -> None:
    headers = [(b"X-B", b"1"), (b"x-a", b"2"), (b"X-B", b"3"), (b"X-Request-ID", b"theirs")]
    assert to_backend(headers, api_key=None, request_id="ours") == headers
    cookies = [(b"Set-Cookie", b"a=1"), (b"Set-Cookie", b"b=2")]
    assert to_client(cookies, (), stream=False) == cookies


def test_a_stream_tells_proxies_in_front_not_to_collect_it() -> None:
    assert dict(to_client((), (), stream=True)) == {b"Cache-Control": b"no-cache", b"X-Accel-Buffering": b"no"}


@pytest.mark.parametrize(
    ("theirs", "passed"),
    [
        (b"no-transform", b"no-transform, no-cache"),
        (b"no-cache, no-transform", b"no-cache, no-transform"),
        (b"no-store", b"no-store"),
    ],
)
def test_a_backends_own_cache_control_is_kept_and_says_that_a_stream_is_not_for_caches(
    theirs: bytes, passed: bytes
) -> None:
    answer = to_client([(b"cache-control", theirs)], (), stream=True)
    assert [value for name, value in answer if name.lower() == b"cache-control"] == [passed]
    assert to_client([(b"cache-control", theirs)], (), stream=False) == [(b"cache-control", theirs)]


def test_our_headers_never_replace_those_of_a_backend_but_timings_add_up() -> None:
    ours = [(b"X-Request-Id", b"ours"), (b"Server-Timing", b"queue;dur=1")]
    theirs = [(b"x-request-id", b"theirs"), (b"server-timing", b"db;dur=2")]
    assert to_client(theirs, ours, stream=False) == [*theirs, (b"Server-Timing", b"queue;dur=1")]


def test_hints_hold_no_secret_and_the_last_of_repeated_values() -> None:
    headers = [(b"X-Team", b"a"), (b"x-team", b"b"), (b"Cookie", b"s"), (b"Authorization", b"s"), (b"X-API-Key", b"s")]
    assert hints(headers) == {"x-team": "b"}


def test_codings_of_a_request_may_stand_in_several_fields() -> None:
    headers = [(b"Content-Encoding", b"zstd"), (b"X-Other", b"br"), (b"content-encoding", b"identity, GZIP")]
    assert request_codings(headers) == ("zstd", "gzip")
    assert request_codings([]) == ()


def test_content_codings_in_the_order_in_which_they_were_applied() -> None:
    assert content_codings("gzip, ZSTD") == ("gzip", "zstd")
    assert content_codings("identity") == ()
    assert content_codings(None) == ()
