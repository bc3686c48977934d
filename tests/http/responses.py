"""The corpus, second half: what backends answer. The requests are plain."""

from __future__ import annotations

import gzip
from typing import Final

import brotli
import zstandard

from tests.http.case import CHAT, HELLO, Case, Reply, answer, case, chunked, counted, get, post

TE: Final = b"Transfer-Encoding: chunked"
WHOLE: Final = b"5\r\nhello\r\n0\r\n\r\n"
GET: Final = get()
OTHER: Final = b"HTTP/1.1 200 OK\r\nX-Origin: 1\r\nX-Stolen: 1\r\nContent-Length: 5\r\n\r\nother"


def ends(raw: bytes) -> Reply:
    """The backend closes its connection behind it."""
    return Reply(raw=raw, end="close")


def chunks(body: bytes, *fields: bytes) -> bytes:
    return answer(body, *fields, framing=TE)


def in_chunks(body: bytes) -> bytes:
    """Of seven bytes each."""
    parts = (body[at : at + 7] for at in range(0, len(body), 7))
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def old(body: bytes, *fields: bytes) -> bytes:
    return answer(body, *fields).replace(b"HTTP/1.1", b"HTTP/1.0", 1)


FRAMING: Final = {
    "length": case(GET),
    "length_0": case(GET, reply=answer(b"")),
    "chunked": case(GET, reply=chunks(WHOLE)),
    "chunked_in_capitals": case(GET, reply=answer(WHOLE, framing=b"TRANSFER-ENCODING: CHUNKED")),
    "chunked_and_empty": case(GET, reply=chunks(b"0\r\n\r\n")),
    "chunk_extension": case(GET, reply=chunks(b'5;a="b;c"\r\nhello\r\n0;d=e\r\n\r\n')),
    "chunk_size_with_blanks": case(GET, reply=chunks(b"5  \r\nhello\r\n0\r\n\r\n")),
    "chunk_size_with_zeros": case(GET, reply=chunks(b"0005\r\nhello\r\n000\r\n\r\n")),
    "chunk_size_not_a_number": case(GET, reply=ends(chunks(b"zz\r\nhello\r\n0\r\n\r\n"))),
    "chunk_longer_than_its_size": case(GET, reply=ends(chunks(b"3\r\nhello\r\n0\r\n\r\n"))),
    "chunk_size_with_bare_lf": case(GET, reply=ends(chunks(b"5\nhello\n0\n\n"))),
    "trailer": case(GET, reply=chunks(b"5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n", b"Trailer: X-Sum")),
    "until_close": case(GET, reply=ends(answer(framing=b""))),
    "until_close_announced": case(GET, reply=ends(answer(b"hello", b"Connection: close", framing=b""))),
    "length_and_close": case(GET, reply=ends(answer(b"hello", b"Connection: close"))),
    "chunked_and_close": case(GET, reply=ends(chunks(WHOLE, b"Connection: close"))),
    "until_close_and_empty": case(GET, reply=ends(answer(b"", framing=b""))),
    "http_1_0_with_length": case(GET, reply=ends(old(b"hello"))),
    "http_1_0_kept_alive": case(GET, reply=old(b"hello", b"Connection: keep-alive")),
    "http_1_0_until_close": case(GET, reply=ends(answer(framing=b"").replace(b"1.1", b"1.0", 1))),
    "http_1_0_chunked": case(GET, reply=ends(chunks(WHOLE).replace(b"1.1", b"1.0", 1))),
    "large_with_length": case(GET, reply=answer(b"x" * 2_000_000)),
    "large_until_close": case(GET, reply=ends(answer(b"x" * 2_000_000, framing=b""))),
    "many_chunks": case(GET, reply=chunks(b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n")),
    "identity": case(GET, reply=ends(answer(b"hello", framing=b"Transfer-Encoding: identity"))),
}

TO_OLD_CLIENTS: Final = {
    "length": case(get(version=b"HTTP/1.0")),
    "chunked": case(get(version=b"HTTP/1.0"), reply=chunks(WHOLE)),
    "chunked_kept_alive": case(get(b"Connection: keep-alive", version=b"HTTP/1.0"), reply=chunks(WHOLE)),
    "length_kept_alive": case(get(b"Connection: keep-alive", version=b"HTTP/1.0")),
    "until_close": case(get(version=b"HTTP/1.0"), reply=ends(answer(framing=b""))),
}

BROKEN: Final = {
    "shorter_than_its_length": case(GET, reply=ends(answer(b"hel", framing=b"Content-Length: 5"))),
    "reset_within_the_body": case(GET, reply=Reply(raw=answer(b"hel", framing=b"Content-Length: 5"), end="reset")),
    "chunks_without_end": case(GET, reply=ends(chunks(b"5\r\nhello\r\n"))),
    "cut_within_a_chunk": case(GET, reply=ends(chunks(b"5\r\nhel"))),
    "cut_within_the_head": case(GET, reply=ends(b"HTTP/1.1 200 OK\r\nX-Origin: 1\r\nContent-Le")),
    "nothing": case(GET, reply=ends(b"")),
    "reset": case(GET, reply=Reply(raw=b"", end="reset")),
    "silence": case(GET, reply=b""),
    "nonsense": case(GET, reply=ends(b"nonsense\r\n\r\n")),
    "http_0_9": case(GET, reply=ends(b"<html>hello</html>")),
    "two_lengths": case(GET, reply=ends(answer(b"hello", b"Content-Length: 3"))),
    "the_same_length_twice": case(GET, reply=ends(answer(b"hello", b"Content-Length: 5"))),
    "list_of_lengths": case(GET, reply=ends(answer(b"hello", framing=b"Content-Length: 5, 5"))),
    "negative_length": case(GET, reply=ends(answer(b"hello", framing=b"Content-Length: -5"))),
    "signed_length": case(GET, reply=ends(answer(b"hello", framing=b"Content-Length: +5"))),
    "length_not_a_number": case(GET, reply=ends(answer(b"hello", framing=b"Content-Length: five"))),
    "length_and_coding": case(GET, reply=ends(answer(WHOLE, TE))),
    "coding_gzip_then_chunked": case(GET, reply=ends(answer(WHOLE, framing=b"Transfer-Encoding: gzip, chunked"))),
    "coding_chunked_twice": case(GET, reply=ends(answer(WHOLE, TE, framing=TE))),
    "coding_unknown": case(GET, reply=ends(answer(WHOLE, framing=b"Transfer-Encoding: xchunked"))),
    "surplus_behind_length": case(GET, reply=answer() + b"surplus"),
    "second_response_behind_length": case(GET, reply=answer() + OTHER),
    "second_response_behind_chunks": case(GET, reply=chunks(WHOLE) + OTHER),
    "second_response_behind_204": case(GET, reply=answer(b"", status=b"204 No Content", framing=b"") + OTHER),
    "version_2_0": case(GET, reply=ends(answer().replace(b"HTTP/1.1", b"HTTP/2.0", 1))),
    "status_not_a_number": case(GET, reply=ends(answer(status=b"2xx OK"))),
    "status_of_two_digits": case(GET, reply=ends(answer(status=b"20 OK"))),
    "status_of_four_digits": case(GET, reply=ends(answer(status=b"2000 OK"))),
}

STATUSES: Final = {
    "204": case(GET, reply=answer(b"", status=b"204 No Content", framing=b"")),
    "204_with_length_0": case(GET, reply=answer(b"", status=b"204 No Content")),
    "304": case(GET, reply=answer(b"", b'ETag: "a"', status=b"304 Not Modified", framing=b"")),
    "304_with_length": case(GET, reply=answer(b"", status=b"304 Not Modified", framing=b"Content-Length: 5")),
    "205": case(GET, reply=answer(b"", status=b"205 Reset Content")),
    "206": case(GET, reply=answer(b"he", b"Content-Range: bytes 0-1/5", status=b"206 Partial Content")),
    "301": case(GET, reply=answer(b"", b"Location: /elsewhere", status=b"301 Moved Permanently")),
    "307_to_the_backend": case(
        counted(b"abc"), reply=answer(b"", b"Location: http://127.0.0.1:1/y", status=b"307 Temporary Redirect")
    ),
    "401_with_challenge": case(GET, reply=answer(b"no", b"WWW-Authenticate: Bearer", status=b"401 Unauthorized")),
    "404": case(GET, reply=answer(b"no", status=b"404 Not Found")),
    "429": case(GET, reply=answer(b"no", b"Retry-After: 7", status=b"429 Too Many Requests")),
    "500": case(GET, reply=answer(b"no", status=b"500 Internal Server Error")),
    "502": case(GET, reply=answer(b"no", status=b"502 Bad Gateway")),
    "503": case(GET, reply=answer(b"no", status=b"503 Service Unavailable")),
    "599": case(GET, reply=answer(b"no", status=b"599 Odd")),
    "600": case(GET, reply=answer(b"no", status=b"600 Odd")),
    "999": case(GET, reply=answer(b"no", status=b"999 Odd")),
    "099": case(GET, reply=ends(answer(b"no", status=b"099 Odd"))),
    "without_reason": case(GET, reply=answer(status=b"200")),
    "with_empty_reason": case(GET, reply=answer(status=b"200 ")),
    "with_odd_reason": case(GET, reply=answer(status=b"200 \xc3\xa9 all/right")),
}

EARLY_HINTS: Final = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
INTERIM: Final = {
    "100": case(GET, reply=ends(CONTINUE + answer())),
    "102": case(GET, reply=ends(b"HTTP/1.1 102 Processing\r\n\r\n" + answer())),
    "103": case(GET, reply=EARLY_HINTS + answer()),
    "100_and_103": case(GET, reply=ends(CONTINUE + EARLY_HINTS + answer())),
    "100_to_a_post": case(counted(b"abc"), reply=ends(CONTINUE + answer())),
    "100_alone": case(GET, reply=ends(CONTINUE)),
    "101_that_nobody_asked_for": case(
        GET,
        reply=ends(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\nX-Origin: 1\r\n\r\nraw"
        ),
    ),
    "199": case(GET, reply=ends(b"HTTP/1.1 199 Odd\r\n\r\n" + answer())),
}

HEAD: Final = {
    "length": case(get(method=b"HEAD"), reply=answer(b"", framing=b"Content-Length: 5"), to_head=True),
    "chunked": case(get(method=b"HEAD"), reply=answer(b"", framing=TE), to_head=True),
    "unframed": case(get(method=b"HEAD"), reply=answer(b"", framing=b""), to_head=True),
    "404": case(get(method=b"HEAD"), reply=answer(b"", status=b"404 Not Found"), to_head=True),
    "with_a_body": case(get(method=b"HEAD"), reply=answer(b"hello"), to_head=True),
    "204": case(get(method=b"HEAD"), reply=answer(b"", status=b"204 No Content", framing=b""), to_head=True),
}

LARGE: Final = b"x" * 4_000_000
LARGER_THAN_BUFFERS: Final = b"x" * 24_000_000
"""The kernel's of both ends together, so that it is never sent to its end."""

TOO_LARGE: Final = answer(b"no", b"Connection: close", status=b"413 Content Too Large")
EARLY: Final = {
    "before_the_body": case(counted(b"abc"), reply=Reply(raw=answer(), before_body=True)),
    "before_a_chunked_body": case(chunked(b"3\r\nabc\r\n0\r\n\r\n"), reply=Reply(raw=answer(), before_body=True)),
    "before_a_large_body": case(counted(LARGE), reply=Reply(raw=answer(), before_body=True)),
    "and_the_body_never_read": case(
        counted(LARGER_THAN_BUFFERS),
        reply=Reply(raw=answer(b"no", status=b"413 Content Too Large"), before_body=True, end="hold"),
    ),
    "refused_and_closed": case(counted(b"abc"), reply=Reply(raw=TOO_LARGE, before_body=True, end="close")),
}

FIELDS: Final = {
    "set_cookie_repeated": case(
        GET,
        reply=answer(
            b"hello",
            b"Set-Cookie: a=1; Path=/",
            b"Set-Cookie: b=2; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            b"set-cookie: a=3",
        ),
    ),
    "repeated_in_order": case(
        GET, reply=answer(b"hello", b"X-A: 1", b"X-B: 2", b"x-a: 3", b"Link: </a>", b"Link: </b>")
    ),
    "vary_repeated": case(GET, reply=answer(b"hello", b"Vary: Accept", b"Vary: Origin")),
    "empty_value": case(GET, reply=answer(b"hello", b"X-A:")),
    "blanks_around_value": case(GET, reply=answer(b"hello", b"X-A:\t a b \t ")),
    "high_bytes": case(GET, reply=answer(b"hello", b"X-A: \xc3\xa9\xff")),
    "names_keep_their_case": case(GET, reply=answer(b"hello", b"x-LOWer: 1")),
    "underscore": case(GET, reply=answer(b"hello", b"x_a: 1")),
    "hop_by_hop": case(
        GET,
        reply=answer(b"hello", b"Connection: keep-alive", b"Keep-Alive: timeout=5", b"Proxy-Connection: keep-alive"),
    ),
    "connection_names_a_field": case(GET, reply=answer(b"hello", b"Connection: X-Hop", b"X-Hop: 1", b"X-End: 2")),
    "trailer_te_upgrade": case(GET, reply=answer(b"hello", b"TE: trailers", b"Upgrade: h2c")),
    "proxy_authenticate": case(GET, reply=answer(b"hello", b"Proxy-Authenticate: Basic")),
    "cors": case(GET, reply=answer(b"hello", b"Access-Control-Allow-Origin: *")),
    "server_and_date": case(GET, reply=answer(b"hello", b"Server: x", b"Date: Thu, 01 Jan 1970 00:00:00 GMT")),
    "accel_fields": case(GET, reply=answer(b"hello", b"X-Accel-Buffering: yes", b"X-Accel-Expires: 1")),
    "field_of_32_kib": case(GET, reply=answer(b"hello", b"X-A: " + b"a" * 32 * 1024)),
    "field_of_100_kib": case(GET, reply=ends(answer(b"hello", b"X-A: " + b"a" * 100 * 1024))),
    "two_hundred_fields": case(GET, reply=answer(b"hello", *(b"X-%d: %d" % (number, number) for number in range(200)))),
    "bare_lf": case(GET, reply=ends(answer(b"hello", b"X-A: 1").replace(b"\r\n", b"\n"))),
    "bare_lf_in_fields": case(GET, reply=ends(answer(b"hello", b"X-A: 1\nX-B: 2"))),
    "bare_cr_in_value": case(GET, reply=ends(answer(b"hello", b"X-A: a\rb"))),
    "folded": case(GET, reply=ends(answer(b"hello", b"X-A: a\r\n b"))),
    "space_before_colon": case(GET, reply=ends(answer(b"hello", b"X-A : 1"))),
    "no_colon": case(GET, reply=ends(answer(b"hello", b"nonsense"))),
    "nul_in_value": case(GET, reply=ends(answer(b"hello", b"X-A: a\0b"))),
    "control_in_value": case(GET, reply=ends(answer(b"hello", b"X-A: a\x01b"))),
}

EVENTS: Final = b"Content-Type: text/event-stream"
CODINGS: Final = {
    "gzip": case(GET, reply=answer(gzip.compress(b"hello"), b"Content-Encoding: gzip")),
    "br": case(GET, reply=answer(brotli.compress(b"hello"), b"Content-Encoding: br")),
    "zstd": case(GET, reply=answer(zstandard.compress(b"hello"), b"Content-Encoding: zstd")),
    "gzip_in_chunks": case(
        GET,
        reply=chunks(
            b"".join(b"1\r\n%c\r\n" % byte for byte in gzip.compress(b"hello")) + b"0\r\n\r\n",
            b"Content-Encoding: gzip",
        ),
    ),
    "not_what_it_says": case(GET, reply=answer(b"hello", b"Content-Encoding: br")),
    "unknown": case(GET, reply=answer(b"hello", b"Content-Encoding: made-up")),
    "events": case(GET, reply=chunks(b'f\r\ndata: {"a":1}\n\n\r\n0\r\n\r\n', EVENTS)),
    "events_cut_off": case(GET, reply=ends(chunks(b'f\r\ndata: {"a":1}\n\n\r\n', EVENTS))),
}

TOKENS: Final = b"".join(b'data: {"choices":[{"index":0,"delta":{"content":"%d"}}]}\n\n' % n for n in range(3))
DONE: Final = b"data: [DONE]\n\n"
ASK: Final = counted(
    b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "hi"}]}',
    b"Content-Type: application/json",
    target=CHAT,
)
CALLS: Final = {
    "stream": case(ASK, reply=chunks(in_chunks(TOKENS + DONE), EVENTS)),
    "stream_until_close": case(ASK, reply=ends(answer(TOKENS + DONE, EVENTS, framing=b""))),
    "stream_of_http_1_0": case(ASK, reply=ends(answer(TOKENS + DONE, EVENTS, framing=b"").replace(b"1.1", b"1.0", 1))),
    "stream_in_gzip": case(
        ASK, reply=chunks(in_chunks(gzip.compress(TOKENS + DONE)), EVENTS, b"Content-Encoding: gzip")
    ),
    "stream_cut_off": case(ASK, reply=ends(chunks(in_chunks(TOKENS)[:-5], EVENTS))),
    "stream_until_a_close_that_came_too_early": case(ASK, reply=ends(answer(TOKENS, EVENTS, framing=b""))),
    "stream_without_the_last_chunk": case(ASK, reply=ends(chunks(in_chunks(TOKENS + DONE)[:-5], EVENTS))),
    "document": case(ASK, reply=answer(b'{"choices":[]}', b"Content-Type: application/json")),
    "document_in_br": case(ASK, reply=answer(brotli.compress(b'{"choices":[]}'), b"Content-Encoding: br")),
    "refused": case(ASK, reply=answer(b'{"error":{}}', b"Retry-After: 3", status=b"429 Too Many Requests")),
    "bad_request": case(ASK, reply=answer(b'{"error":{}}', status=b"400 Bad Request")),
    "unavailable": case(ASK, reply=answer(b'{"error":{}}', status=b"503 Service Unavailable")),
    "by_an_old_client": case(ASK.replace(b"HTTP/1.1", b"HTTP/1.0", 1), reply=chunks(in_chunks(TOKENS + DONE), EVENTS)),
}

SEQUENCES: Final = {
    "error_then_answer": case(
        GET + GET, reply=(Reply(raw=answer(b"no", status=b"500 Internal Server Error")), HELLO), answers=2
    ),
    "closed_then_answer": case(GET + GET, reply=(ends(answer()), HELLO), answers=2),
    "chunked_then_length": case(GET + GET, reply=(Reply(raw=chunks(WHOLE)), HELLO), answers=2),
    "until_close_then_length": case(GET + GET, reply=(ends(answer(framing=b"")), HELLO), answers=2),
    "cut_then_answer": case(GET + GET, reply=(ends(answer(b"hel", framing=b"Content-Length: 5")), HELLO), answers=2),
    "surplus_then_answer": case(GET + GET, reply=(Reply(raw=answer() + OTHER), HELLO), answers=2),
    "204_then_answer": case(
        post(b"Content-Length: 0") + GET,
        reply=(Reply(raw=answer(b"", status=b"204 No Content", framing=b"")), HELLO),
        answers=2,
    ),
}

_GROUPS: Final[dict[str, dict[str, Case]]] = {
    "framing": FRAMING,
    "to_old_clients": TO_OLD_CLIENTS,
    "broken": BROKEN,
    "status": STATUSES,
    "interim": INTERIM,
    "head": HEAD,
    "early": EARLY,
    "fields": FIELDS,
    "coding": CODINGS,
    "call": CALLS,
    "sequence": SEQUENCES,
}
RESPONSES: Final = {f"{group}.{name}": case for group, cases in _GROUPS.items() for name, case in cases.items()}
