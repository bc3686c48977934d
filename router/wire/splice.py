"""Puts another model name into a request body and leaves every other byte as it came.

A body is never written anew from what a parser made of it: numbers would change their digits, duplicate keys would
vanish, escapes and white space would move. Only the value's own bytes are cut out and replaced.

How it works. In JSON text a quote that opens a string is never preceded by a backslash, so `"model"` without one before
it is a whole string, and with a colon after it a key. Such keys are found by searching; which of them are keys of the
outermost object is told by the brackets outside of strings on the way to them, counted with whole-text operations of
bytes. Nothing here walks over a body character by character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson

_SPACE = rb"[ \t\n\r]*"
_KEYS = {
    "model": re.compile(
        rb'"(?:m|\\u006[dD])(?:o|\\u006[fF])(?:d|\\u0064)(?:e|\\u0065)(?:l|\\u006[cC])"' + _SPACE + rb":" + _SPACE
    ),
    "name": re.compile(rb'"(?:n|\\u006[eE])(?:a|\\u0061)(?:m|\\u006[dD])(?:e|\\u0065)"' + _SPACE + rb":" + _SPACE),
}
"""By which bodies name a model, also where a letter is written as its number."""
_STRING = rb'"[^"\\]*(?:\\.[^"\\]*)*"'
_VALUE = re.compile(_STRING + rb"|[^ \t\n\r,}\]{\[]+", re.DOTALL)
_BRACKET = re.compile(_STRING + rb"|([{\[])|([}\]])", re.DOTALL)

_BOUNDARY = re.compile(r';\s*boundary=(?:"([^"]+)"|([^\s;"]+))', re.IGNORECASE)
_FIELD_NAME = re.compile(
    rb'^content-disposition:[ \t]*form-data[^\r\n]*?;[ \t]*name=(?:"([^"\r\n]*)"|([^\s;"]+))',
    re.IGNORECASE | re.MULTILINE,
)


def replace_model(body: bytes, new: str, key: str = "model") -> bytes:
    """`body` with `new` as the value of `key` in its outermost object; without such a key, `body` itself.

    `body` must be a JSON text. Where the key occurs twice, both values are replaced: servers differ in which counts.
    """
    pieces: list[bytes] = []
    done = 0
    value = orjson.dumps(new)
    for start in _model_values(body, _KEYS[key]):
        pieces += (body[done:start], value)
        done = _end_of_value(body, start)
    if not pieces:
        return body
    return b"".join((*pieces, body[done:]))


def _model_values(body: bytes, named: re.Pattern[bytes]) -> Iterator[int]:
    """Where the values of that key in the outermost object begin."""
    keys = [key for key in named.finditer(body) if body[key.start() - 1] != ord("\\")]
    if len(keys) == 1:
        at = keys[0].start()
        # The way to the end is as good as the way from the start, and often shorter.
        depth = _opened(body[:at]) if at <= len(body) // 2 else -_opened(body[at:])
        if depth == 1:
            yield keys[0].end()
        return
    depth = done = 0
    for key in keys:
        depth += _opened(body[done : key.start()])
        done = key.start()
        if depth == 1:
            yield key.end()


def _opened(part: bytes) -> int:
    """How many more brackets `part` opens than it closes. It must begin and end outside of strings."""
    quotes_that_delimit = part.replace(rb"\\", b"").replace(rb"\"", b"")
    outside = b"".join(quotes_that_delimit.split(b'"')[::2])
    return outside.count(b"{") + outside.count(b"[") - outside.count(b"}") - outside.count(b"]")


def _end_of_value(body: bytes, start: int) -> int:
    if scalar := _VALUE.match(body, start):
        return scalar.end()
    depth = 0
    for token in _BRACKET.finditer(body, start):
        depth += (token[1] is not None) - (token[2] is not None)
        if depth == 0:
            return token.end()
    return len(body)


def multipart_field(body: bytes, content_type: str, name: str) -> str | None:
    """The text of a field of a multipart form; None: there is none of that name."""
    for start, end in _fields(body, content_type, name):
        return body[start:end].decode("utf-8", "replace")
    return None


def replace_multipart_field(body: bytes, content_type: str, name: str, new: str) -> bytes:
    """`body` with `new` as the value of each field of that name; without such a field, `body` itself."""
    pieces: list[bytes] = []
    done = 0
    for start, end in _fields(body, content_type, name):
        pieces += (body[done:start], new.encode())
        done = end
    return b"".join((*pieces, body[done:])) if pieces else body


def replace_multipart_model(body: bytes, content_type: str, new: str) -> bytes:
    """`replace_model` for a form."""
    return replace_multipart_field(body, content_type, "model", new)


def _fields(body: bytes, content_type: str, name: str) -> Iterator[tuple[int, int]]:
    """Where the contents of the fields of that name begin and end (RFC 2046 section 5.1, RFC 7578)."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        return
    delimiter = b"\r\n--" + (found[1] or found[2]).encode("latin-1", "replace")
    # The first delimiter may stand at the very start, without the line end that belongs to the others.
    at = 0 if body.startswith(delimiter[2:]) else body.find(delimiter)
    while at >= 0:
        following = body.find(delimiter, at + 1)
        head_end = body.find(b"\r\n\r\n", at, following if following >= 0 else len(body))
        if following < 0 or head_end < 0:
            return
        field = _FIELD_NAME.search(body, at, head_end)
        if field is not None and (field[1] or field[2]) == name.encode():
            yield head_end + 4, following
        at = following
