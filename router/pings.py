"""Signs of life for clients whose streamed call waits in the line, so that neither they nor proxies between give up.

They are comment lines, which every reader of server-sent events passes over. With the first one status 200 and the type
of a stream have left, before anybody knows which backend will answer, and how. So from then on what goes wrong is said
inside the stream, as an event in the shape of the client's API:

    the line turns the call away          `Gateway._refuse`
    the backend answers with an error     `refusal`, in its own words
    or with something that is no stream   the same
    or compressed, though asked not to    `Undone` undoes it; a coding that is not known is no stream

A client that asks for no stream, or by an API whose streams have no comments (Ollama's lines of JSON), gets none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import orjson

from router.call import Call
from router.engines.answers import as_object, parsed
from router.errors import BackendBroke, BackendSaid
from router.surfaces.api import Framing
from router.tasks import Clock
from router.wire.api import Sink
from router.wire.coding import Decoder, decoder

PING: Final = b": waiting\n\n"

_HEAD: Final = (
    (b"Content-Type", b"text/event-stream"),
    (b"Cache-Control", b"no-cache"),
    (b"X-Accel-Buffering", b"no"),
    (b"Server", b"twolane"),
)
_NO_PINGS: Final = nullcontext()
_WORDS_CHARS: Final = 2000
_NOT_DECODED: Final = "the answer of the backend is cut off or corrupt inside its content coding"


def pings(call: Call, clock: Clock) -> AbstractContextManager[None]:
    """Around the wait for a place."""
    every_s = call.plan.settings.line.queue_pings
    if every_s is None or not (call.generates and call.features.stream and call.surface.framing is Framing.SSE):
        return _NO_PINGS
    return _Pings(call, every_s, clock)


class _Pings(AbstractContextManager[None]):
    """One timer. A client that does not read gets no more of them: it is certainly not waiting for a sign of life."""

    __slots__ = ("_call", "_clock", "_every_s", "_timer")

    def __init__(self, call: Call, every_s: float, clock: Clock) -> None:
        self._call = call
        self._every_s = every_s
        self._clock = clock

    def __enter__(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._every_s, self._ping)

    def __exit__(self, *exc: object) -> None:
        self._timer.cancel()

    def _ping(self) -> None:
        exchange = self._call.exchange
        if exchange.gone:
            return
        if not exchange.started:
            exchange.start(200, b"OK", [*_HEAD, *self._call.headers(self._clock())], length=None)
        if exchange.write(PING):
            self.__enter__()


def continues(status: int, content_type: str, codings: tuple[str, ...]) -> bool:
    """Whether an answer can follow after pings."""
    is_stream = content_type.partition(";")[0].strip().lower() == "text/event-stream"
    return status == 200 and is_stream and (not codings or (len(codings) == 1 and decoder(codings[0]) is not None))


def refusal(status: int, content_type: str, codings: tuple[str, ...], body: bytes) -> BackendSaid:
    """What is said in the stream for an answer that cannot follow. `body` without its codings."""
    if status == 200:
        kind = content_type[:100] or "no content type"
        coded = f" ({', '.join(codings)[:100]})" if codings else ""
        why = f"the backend answered with {kind}{coded} and not with a stream of events that could follow after pings"
        return BackendSaid(f"{why} (line.queue_pings); call without stream, or without queue_pings", status=502)
    answer = as_object(parsed(body))
    error = answer.get("error")
    inner = error if isinstance(error, dict) else answer
    words = [error, inner.get("message"), inner.get("detail")]
    message = next((word for word in words if isinstance(word, str) and word), "")
    said = orjson.dumps(answer) if isinstance(error, dict) else b""
    return BackendSaid(message[:_WORDS_CHARS] or f"the backend answered with status {status}", status=status, said=said)


class Undone:
    """Writes what comes without its coding, since the head that the client has does not name one."""

    straight: Callable[[bytes], None] | None = None

    def __init__(self, sink: Sink, coding: Decoder) -> None:
        self._sink = sink
        self._coding = coding

    def write(self, data: bytes) -> bool:
        """Raises `BackendBroke` for what comes behind corrupt bytes: the watch has seen all that was valid by then."""
        if self._coding.broken:
            raise BackendBroke(_NOT_DECODED)
        return self._sink.write(self._coding.feed(data))

    def end(self) -> None:
        """Nothing more will come. Raises `BackendBroke` where the coding did not come to its own end."""
        if self._coding.broken or not self._coding.complete:
            raise BackendBroke(_NOT_DECODED)

    async def drained(self) -> None:
        await self._sink.drained()


def undoing(sink: Sink, codings: tuple[str, ...]) -> Undone | None:
    """Stands before the client for an answer that follows after pings; None: its body can go there as it is."""
    coding = decoder(codings[0]) if codings else None
    return None if coding is None else Undone(sink, coding)
