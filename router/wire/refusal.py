"""The answer to bytes that are no request which may be served: one JSON error, and the connection ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

import orjson

REASONS: Final = {status.value: status.phrase.encode("ascii") for status in HTTPStatus}
"""What stands behind the status in the first line of an answer of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """`message` is a sentence for the person behind the client; it repeats nothing that the client sent."""

    status: HTTPStatus
    message: str

    def answer(self, shape: Shape | None = None, path: str = "") -> bytes:
        """Head and body, ready for the wire; `path`: what was asked for, as far as it came."""
        body = (shape or _plain)(path, self)
        return (
            b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\nServer: twolane\r\n"
            b"Content-Length: %d\r\nConnection: close\r\n\r\n%b" % (self.status, REASONS[self.status], len(body), body)
        )


Shape = Callable[[str, Refusal], bytes]
"""The body of a refusal, as clients of the API under a path read it."""


def _plain(path: str, refusal: Refusal) -> bytes:
    """In OpenAI's, where nobody has said what APIs there are."""
    kind = {"type": "invalid_request_error", "param": None, "code": "malformed_request"}
    return orjson.dumps({"error": {"message": refusal.message, **kind}})
