"""Requests to backends, byte for byte."""

from __future__ import annotations

import pytest

from router.errors import BadRequest
from router.wire.api import UpstreamRequest
from router.wire.exchange import RawHeaders
from router.wire.request_head import request_head


def head(method: str, target: str = "/v1/x", headers: RawHeaders = (), body: bytes = b"") -> bytes:
    return request_head(UpstreamRequest(method=method, target=target, headers=headers, body=body), b"f:1")


def test_fields_keep_their_order_their_case_and_their_repetition() -> None:
    fields = [(b"X-b", b"1"), (b"x-A", b"  two  "), (b"X-b", b"3"), (b"Accept", b"")]
    assert head("POST", "/v1/x?a=%2F&b=c+d", fields, b"{}") == (
        b"POST /v1/x?a=%2F&b=c+d HTTP/1.1\r\nHost: f:1\r\n"
        b"X-b: 1\r\nx-A:   two  \r\nX-b: 3\r\nAccept: \r\nContent-Length: 2\r\n\r\n"
    )


def test_a_get_without_a_body_has_no_length() -> None:
    assert head("GET") == b"GET /v1/x HTTP/1.1\r\nHost: f:1\r\n\r\n"


def test_a_get_with_a_body_has_its_length() -> None:
    assert b"\r\nContent-Length: 2\r\n" in head("GET", body=b"{}")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_an_empty_body_where_one_is_usual_has_length_zero(method: str) -> None:
    assert b"\r\nContent-Length: 0\r\n" in head(method)


def test_framing_and_host_are_ours_whatever_the_caller_left_in() -> None:
    fields = [
        (b"HOST", b"client.example"),
        (b"content-length", b"7"),
        (b"Transfer-Encoding", b"chunked"),
        (b"Connection", b"close"),
        (b"User-Agent", b"curl"),
    ]
    assert head("POST", headers=fields, body=b"{}") == (
        b"POST /v1/x HTTP/1.1\r\nHost: f:1\r\nUser-Agent: curl\r\nContent-Length: 2\r\n\r\n"
    )


def test_bytes_of_a_path_that_are_no_utf_8_come_out_as_they_went_in() -> None:
    target = b"/caf\xe9/\xc3\xa9".decode("utf-8", "surrogateescape")
    assert head("GET", target).startswith(b"GET /caf\xe9/\xc3\xa9 HTTP/1.1\r\n")


@pytest.mark.parametrize("value", [b"key\n", b"key\r", b"a\r\nX-Evil: 1", b"\r\n\r\nGET / HTTP/1.1"])
def test_a_line_break_in_a_value_is_refused(value: bytes) -> None:
    with pytest.raises(BadRequest):
        head("GET", headers=[(b"Authorization", value)])


def test_a_line_break_in_the_target_is_refused() -> None:
    with pytest.raises(BadRequest):
        head("GET", "/v1/x HTTP/1.1\r\nX-Evil: 1\r\nX:")
