"""Looks at an answer beside the relay: first token, last token, counts, end. Never delays or alters a byte.

Whatever goes wrong in here ends the looking, not the answer.
"""

from __future__ import annotations

from collections.abc import Callable

from router.errors import RouterError
from router.fleet.ledger import Account
from router.observe.gaps import Gaps
from router.surfaces.api import Framing, Progress, Surface, TokenReader
from router.wire.coding import Decoder, decoder
from router.wire.events import EventReader, ndjson_reader, sse_reader

_KEEP_S = 0.5
"""After the first token nothing is urgent: pieces are read a few dozen at once, which costs a fifth."""

_WHOLE_LIMIT_BYTES = 256 * 1024
"""Larger answers that are not streamed (500 embeddings) are not parsed for their counts."""


class StreamWatch:
    """Beside one streamed answer."""

    __slots__ = (
        "_account",
        "_between",
        "_blind",
        "_decoder",
        "_events",
        "_on_first",
        "_partial_at_end",
        "_readable",
        "_reader",
        "first_token_s",
        "gaps",
        "last_token_s",
    )

    def __init__(
        self,
        reader: TokenReader,
        framing: Framing,
        coding: Decoder | None,
        account: Account,
        on_first: Callable[[float], None] = lambda now_s: None,
        *,
        undone: bool = False,
    ) -> None:
        """`on_first` is told when the first token came; `undone`: the client gets the stream without its coding."""
        self._reader = reader
        self._events: EventReader = sse_reader() if framing is Framing.SSE else ndjson_reader()
        self._between = b"\n\n" if framing is Framing.SSE else b"\n"
        self._decoder = coding
        self._readable = coding is None or undone
        self._account = account
        self._on_first = on_first
        self._partial_at_end: bool | None = None
        self._blind = False
        self.first_token_s: float | None = None
        self.last_token_s: float | None = None
        self.gaps = Gaps()

    def see(self, pieces: list[bytes], at_s: list[float]) -> float:
        """Read pieces that came at these times; returns how long the next ones may be kept."""
        self._account.last_progress_s = at_s[-1]
        if not self._only_output(pieces):
            for piece, now_s in zip(pieces, at_s, strict=True):
                self._read(piece, now_s)
        else:
            self.last_token_s = at_s[-1]
            self.gaps.came(at_s)
        return 0.0 if self.first_token_s is None else _KEEP_S

    def _only_output(self, pieces: list[bytes]) -> bool:
        """Whether these were whole events with one piece of output each; they have been counted then."""
        if self.first_token_s is None or self._decoder is not None or self._events.partial:
            return False
        run = b"".join(pieces)
        # With other line ends in between, what divides events could not be counted.
        plain = run.endswith(self._between) and b"\r" not in run
        return plain and self._reader.only_output(run, run.count(self._between))

    def _read(self, piece: bytes, now_s: float) -> None:
        if self._decoder is not None:
            piece = self._decoder.feed(piece)
        for name, data in self._events.feed(piece):
            if self._reader.event(name, data):
                if self.first_token_s is None:
                    self.first_token_s = now_s
                    self._on_first(now_s)
                if self.last_token_s != now_s:  # output that came in one piece has no gap
                    self.last_token_s = now_s
                    self.gaps.came([now_s])

    def end(self) -> None:
        """Nothing more will come. A second time changes nothing."""
        if self._partial_at_end is None:
            self._partial_at_end = self._events.partial
            for name, data in self._events.close():
                self._reader.event(name, data)

    @property
    def progress(self) -> Progress:
        return self._reader.progress

    @property
    def between_events(self) -> bool:
        """Whether an event of our own may be added here without cutting one of the backend's in two."""
        partial = self._events.partial if self._partial_at_end is None else self._partial_at_end
        return self._readable and not partial

    @property
    def ended(self) -> bool:
        """Whether the answer's own end mark was seen, so that nothing of it can be missing."""
        return self.progress.ended

    @property
    def cut_off(self) -> bool:
        """Whether a stream that is over did not come to its end, as far as it could be read."""
        unread = self._blind or (self._decoder is not None and self._decoder.broken)
        return not (unread or self.progress.ended or self.progress.finished)

    def look_away(self) -> None:
        """Reading it has failed, so nothing follows from what was not seen."""
        self._blind = True

    def tpot_s(self) -> float | None:
        """Mean time per output token after the first; None below two tokens."""
        tokens = self.progress.output
        if self.first_token_s is None or self.last_token_s is None or tokens < 2:
            return None
        return (self.last_token_s - self.first_token_s) / (tokens - 1)


class WholeWatch:
    """Beside an answer that comes in one piece: keeps it, up to a limit, to read its counts at the end."""

    __slots__ = ("_account", "_coding", "_pieces", "_size", "_surface", "first_token_s", "progress")

    between_events = False
    ended = False
    cut_off = False
    """Not known: whoever parses the answer will see it."""

    def look_away(self) -> None:
        pass

    def __init__(self, surface: Surface, coding: Decoder | None, account: Account) -> None:
        self._surface = surface
        self._coding = coding
        self._account = account
        self._pieces: list[bytes] = []
        self._size = 0
        self.first_token_s: float | None = None
        self.progress = Progress()

    def see(self, pieces: list[bytes], at_s: list[float]) -> float:
        self._account.last_progress_s = at_s[-1]
        self._size += sum(map(len, pieces))
        if self._size <= _WHOLE_LIMIT_BYTES:
            self._pieces += pieces
        else:
            self._pieces.clear()
        return _KEEP_S

    def end(self) -> None:
        if self._size > _WHOLE_LIMIT_BYTES:
            return
        whole = b"".join(self._pieces)
        if self._coding is not None:
            whole = self._coding.feed(whole)
        self.progress = self._surface.read_whole(whole)

    def tpot_s(self) -> float | None:
        return None


Watch = StreamWatch | WholeWatch


def watch_for(
    surface: Surface,
    content_type: str,
    codings: tuple[str, ...],
    account: Account,
    on_first: Callable[[float], None] = lambda now_s: None,
    *,
    undone: bool = False,
) -> Watch:
    """The watch that fits what the backend really sends, whatever was asked for."""
    coding = decoder(codings[0]) if len(codings) == 1 else None
    framing = _framing(content_type)
    if framing is None or (codings and coding is None):
        return WholeWatch(surface, coding, account)
    return StreamWatch(surface.reader(), framing, coding, account, on_first, undone=undone)


def awaits_first_token(watch: Watch | None) -> bool:
    """Whether a stream, or the answer that may become one, has not had its first token."""
    return watch is None or (isinstance(watch, StreamWatch) and watch.first_token_s is None)


def _framing(content_type: str) -> Framing | None:
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        return Framing.SSE
    if kind in ("application/x-ndjson", "application/ndjson", "application/jsonl"):
        return Framing.NDJSON
    return None


def may_say_in_band(watch: Watch, surface: Surface, error: RouterError) -> bytes:
    """The error as an event of the stream that was begun, or nothing where that would garble a whole answer."""
    return surface.error_event(error) if watch.between_events and not watch.ended else b""
