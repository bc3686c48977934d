"""A response taken apart the slow and plain way."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unframed:
    """`complete`: its end is there. `surplus`: what comes behind it."""

    status: int
    body: bytes
    complete: bool
    surplus: bytes = b""


def unframed(data: bytes) -> Unframed:
    head, _, rest = data.partition(b"\r\n\r\n")
    status = int(head.split()[1])
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    if b"content-length" in fields:
        length = int(fields[b"content-length"])
        return Unframed(status, rest[:length], len(rest) >= length, rest[length:])
    if fields.get(b"transfer-encoding") == b"chunked":
        return _chunks(status, rest)
    return Unframed(status, rest, complete=True)


def _chunks(status: int, rest: bytes) -> Unframed:
    body = b""
    while True:
        line, found, rest = rest.partition(b"\r\n")
        if not found:
            return Unframed(status, body, complete=False)
        size = int(line, 16)
        if size == 0:
            return Unframed(status, body, complete=True, surplus=rest.removeprefix(b"\r\n"))
        body += rest[:size]
        if len(rest) < size + 2:
            return Unframed(status, body, complete=False)
        rest = rest[size + 2 :]
