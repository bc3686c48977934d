"""Logs: structured, readable on a terminal, one JSON object a line elsewhere. Never a prompt, never a secret."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import IO, Any, Literal

import orjson
import structlog

from router.observe.failures import Formatter, without_words


class _Output:
    """Where lines go. Nothing is raised where they cannot be written, as on a full disk: there is nobody to tell, and
    what is going on must not end for the sake of what is said about it."""

    def __init__(self, out: IO[Any]) -> None:
        """Of text or of bytes."""
        self._out = out
        self._lock = threading.Lock()
        """Whoever writes files in a thread of his own may have something to say as well."""
        self._held: list[Any] | None = None
        """Lines that are written in one go at the end of `together`; None: each is written at once."""

    def write(self, data: Any) -> None:
        with self._lock:
            if self._held is not None:
                self._held.append(data)
            else:
                self._tell(data)

    def _tell(self, data: Any) -> None:
        with suppress(OSError, ValueError):  # ValueError: it is closed
            self._out.write(data)
            self._out.flush()

    def flush(self) -> None:
        """Nothing is left to be flushed: what is written is told at once, or is meant to be told later."""

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._lock:
            self._held = []
        try:
            yield
        finally:
            with self._lock:
                held, self._held = self._held, None
                if held:
                    self._tell(held[0][:0].join(held))


class _Loggers:
    """What structlog makes loggers with, all of one output."""

    def __init__(self, logger: Callable[[Any], Any], out: IO[Any]) -> None:
        self.output = _Output(out)
        self._logger = logger

    def __call__(self, *_: Any) -> Any:
        return self._logger(self.output)


@contextmanager
def together() -> Iterator[None]:
    """What is logged inside is written at the end, in one system call instead of one for each line."""
    loggers = structlog.get_config()["logger_factory"]
    if isinstance(loggers, _Loggers):
        with loggers.output.together():
            yield
    else:
        yield


def give_up_unwritten() -> None:
    """At the end of the process. Python would end with a failure (120) where what is left to be said cannot be
    written."""
    for out in (sys.stdout, sys.stderr):
        try:
            out.flush()
        except OSError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), out.fileno())


def _json(logger: Any, method: str, event: MutableMapping[str, Any]) -> bytes:
    return orjson.dumps(event, default=repr)


def _printable(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor of structlog: what came from a client or a backend cannot move the cursor or hide a line."""
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[key] = _escaped(value, "\n" if key == "exception" else "")
    return event


def _escaped(text: str, kept: str) -> str:
    return "".join(
        char if char.isprintable() or char in kept else char.encode("unicode_escape").decode() for char in text
    )


class _PlainFormatter(Formatter):
    """The same for records of libraries."""

    def format(self, record: logging.LogRecord) -> str:
        return _escaped(super().format(record), "\n")


def _in_colour() -> bool:
    """Where somebody looks at a terminal, and did not say NO_COLOR (https://no-color.org)."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


def timestamp(unix_ns: int) -> str:
    """As `TimeStamper` writes it, for a line that is told later than it happened; nanoseconds since 1970."""
    return datetime.fromtimestamp(unix_ns / 1e9, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def configure(level: str, form: Literal["auto", "console", "json"]) -> None:
    """Set up structlog for the process; records of libraries go to standard logging at warning and above."""
    threshold = getattr(logging, level.upper())
    for_people = form == "console" or (form == "auto" and sys.stderr.isatty())
    renderers: list[Any]
    if for_people:
        renderers = [_printable, structlog.dev.ConsoleRenderer(colors=_in_colour())]
        loggers = _Loggers(structlog.PrintLogger, sys.stderr)
    else:
        renderers = [_json]
        loggers = _Loggers(structlog.BytesLogger, sys.stderr.buffer)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.MaybeTimeStamper(fmt="iso", utc=True),
            without_words,
            *renderers,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=loggers,
        cache_logger_on_first_use=False,
    )
    libraries = logging.StreamHandler(sys.stderr)
    libraries.setFormatter(_PlainFormatter("%(levelname)s:%(name)s:%(message)s"))
    logging.basicConfig(level=max(threshold, logging.WARNING), handlers=[libraries], force=True)
    logging.getLogger("twolane.http").setLevel(logging.CRITICAL)
