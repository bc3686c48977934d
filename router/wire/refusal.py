"""The answer to bytes that are no request which may be served: one JSON error, and the connection ends."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

import orjson


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """`message` is a sentence for the person behind the client; it repeats nothing that the client sent."""

    status: HTTPStatus
    message: str

    def answer(self) -> bytes:
        """Head and body, ready for the wire."""
        error = {
            "message": self.message,
            "type": "invalid_request_error",
            "param": None,
            "code": "malformed_request",
        }
        body = orjson.dumps({"error": error})
        return (
            b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\nServer: twolane\r\n"
            b"Content-Length: %d\r\nConnection: close\r\n\r\n%b"
            % (self.status, self.status.phrase.encode("ascii"), len(body), body)
        )
