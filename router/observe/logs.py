"""Logs: structured, readable on a terminal, one JSON object a line elsewhere. Never a prompt, never a secret."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, MutableMapping
from datetime import UTC, datetime
from typing import Any, Literal

import orjson
import structlog

from router.observe.failures import Formatter, without_words


class _Json:
    """The renderer of lines for machines; `shows_info`: lines at info are shown."""

    def __init__(self, *, shows_info: bool) -> None:
        self.shows_info = shows_info

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> bytes:
        return orjson.dumps(event, default=repr)


def tell_all(log: Any, event: str, lines: Iterable[tuple[dict[str, Any], int]]) -> None:
    """Lines of one event at info, each with its time in nanoseconds since 1970. Nothing in them may be an exception.

    For machines they are written at once and past the processors, which take longer than all the rest of a line.
    """
    renderer = structlog.get_config()["processors"][-1]
    if not isinstance(renderer, _Json):
        for line, _ in lines:
            log.info(event, **line)
    elif renderer.shows_info:
        told = [orjson.dumps(line | {"event": event, "level": "info", "timestamp": _iso(ns)}) for line, ns in lines]
        sys.stderr.buffer.write(b"\n".join((*told, b"")))
        sys.stderr.buffer.flush()


def _iso(unix_ns: int) -> str:
    """As `structlog.processors.TimeStamper` writes it."""
    return datetime.fromtimestamp(unix_ns / 1e9, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def configure(level: str, form: Literal["auto", "console", "json"]) -> None:
    """Set up structlog for the process; records of libraries go to standard logging at warning and above."""
    threshold = getattr(logging, level.upper())
    on_terminal = form == "console" or (form == "auto" and sys.stderr.isatty())
    renderer: Any
    if on_terminal:
        renderer = structlog.dev.ConsoleRenderer()
        factory: Any = structlog.PrintLoggerFactory(sys.stderr)
    else:
        renderer = _Json(shows_info=threshold <= logging.INFO)
        factory = structlog.BytesLoggerFactory(sys.stderr.buffer)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            without_words,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=factory,
        cache_logger_on_first_use=False,
    )
    libraries = logging.StreamHandler(sys.stderr)
    libraries.setFormatter(Formatter("%(levelname)s:%(name)s:%(message)s"))
    logging.basicConfig(level=max(threshold, logging.WARNING), handlers=[libraries], force=True)
    logging.getLogger("twolane.http").setLevel(logging.CRITICAL)
