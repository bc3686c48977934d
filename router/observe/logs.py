"""Logs: structured, readable on a terminal, one JSON object a line elsewhere. Never a prompt, never a secret."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, Literal

import orjson
import structlog

from router.observe.failures import Formatter, without_words


def _json(logger: Any, method: str, event: MutableMapping[str, Any]) -> bytes:
    return orjson.dumps(event, default=repr)


def timestamp(unix_ns: int) -> str:
    """As `TimeStamper` writes it, for a line that is told later than it happened; nanoseconds since 1970."""
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
        renderer = _json
        factory = structlog.BytesLoggerFactory(sys.stderr.buffer)
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.MaybeTimeStamper(fmt="iso", utc=True),
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
