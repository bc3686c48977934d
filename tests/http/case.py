"""What a case of the corpus is made of: the bytes of a client, and the bytes with which the backend answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

PATH: Final = "/x"
"""Not served by the router itself: it goes to the backend as it is (`passthrough`)."""

CHAT: Final = "/v1/chat/completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the backend sends for one request, exactly."""

    raw: bytes
    end: Literal["open", "close", "reset", "hold"] = "open"
    """What becomes of the backend's connection then; `hold`: it stays open, and nothing more is read from it."""
    before_body: bool = False
    """Sent when the head of the request is there; the body is read only where the connection stays open."""


class Wait:
    """In place of bytes: the client sends nothing more until it has read a response, interim ones included."""


WAIT: Final = Wait()
Step = bytes | Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    send: tuple[Step, ...]
    replies: tuple[Reply, ...]
    """For one request after the other; the last one for all that follow."""
    answers: int = 1
    """Final responses that the client waits for: as many as these bytes can be read as requests."""
    to_head: bool = False
    """The requests are HEAD requests, so that no response has a body."""
    leaves: bool = False
    """The client closes its half when everything is sent."""


def answer(body: bytes = b"hello", *fields: bytes, status: bytes = b"200 OK", framing: bytes | None = None) -> bytes:
    """A response; `framing`: in place of a right `Content-Length`, empty for none. The mark says whose it is."""
    if framing is None:
        framing = b"Content-Length: %d" % len(body)
    lines = [b"HTTP/1.1 " + status, b"X-Origin: 1", *fields, *([framing] if framing else [])]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


HELLO: Final = Reply(raw=answer())


def case(
    *send: Step,
    reply: Reply | bytes | tuple[Reply, ...] = HELLO,
    answers: int = 1,
    to_head: bool = False,
    leaves: bool = False,
) -> Case:
    """Short for `Case`: bytes alone are a reply that leaves the backend's connection open."""
    if isinstance(reply, bytes):
        reply = Reply(raw=reply)
    replies = reply if isinstance(reply, tuple) else (reply,)
    return Case(send=send, replies=replies, answers=answers, to_head=to_head, leaves=leaves)


def get(*fields: bytes, target: str = PATH, method: bytes = b"GET", version: bytes = b"HTTP/1.1") -> bytes:
    """A request without a body."""
    return request(method, target, version, fields, b"")


def post(*fields: bytes, body: bytes = b"", target: str = PATH, version: bytes = b"HTTP/1.1") -> bytes:
    """A request whose fields do not say how long its body is, unless they are among `fields`."""
    return request(b"POST", target, version, fields, body)


def counted(body: bytes, *fields: bytes, target: str = PATH) -> bytes:
    """A request with a `Content-Length` that is right."""
    return post(b"Content-Length: %d" % len(body), *fields, body=body, target=target)


def chunked(body: bytes, *fields: bytes) -> bytes:
    """A chunked request; `body` as it stands on the wire."""
    return post(b"Transfer-Encoding: chunked", *fields, body=body)


def request(method: bytes, target: str, version: bytes, fields: tuple[bytes, ...], body: bytes) -> bytes:
    lines = [b"%b %b %b" % (method, target.encode("latin-1"), version), b"Host: localhost", *fields]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body
