"""Exceptions as they may be logged: where they happened and of what kind, and no word that could quote a call.

The text of a `KeyError` is made of the data at hand, and the variables of a frame are the data at hand: with a prompt
or a key among them, a log would become a secret. So variables are never shown, and texts only of kinds that speak of
the program.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator, MutableMapping
from typing import Any, Final

from router.errors import RouterError

SPEAK_OF_THE_PROGRAM: Final = (RouterError, AttributeError, ImportError, MemoryError, NameError, OSError, TypeError)
_MOST_CAUSES: Final = 5


def told(error: BaseException) -> str:
    """A traceback, the last cause at the end."""
    return "".join(_lines(error)).rstrip("\n")


def _lines(error: BaseException) -> Iterator[str]:
    chain = [error]
    while len(chain) < _MOST_CAUSES and (before := _cause(chain[-1])) is not None and before not in chain:
        chain.append(before)
    for number, each in enumerate(reversed(chain)):
        if number:
            yield "\nand then:\n\n"
        yield from traceback.format_tb(each.__traceback__)
        words = f": {each}" if isinstance(each, SPEAK_OF_THE_PROGRAM) else ""
        yield f"{type(each).__module__}.{type(each).__qualname__}{words}\n"


def _cause(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def without_words(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A processor of structlog: `exc_info`, an exception, becomes the text `exception`."""
    error = event.pop("exc_info", None)
    if error is True:
        error = sys.exc_info()[1]
    if isinstance(error, BaseException):
        event["exception"] = told(error)
    return event


class Formatter(logging.Formatter):
    """The same for records of libraries."""

    def formatException(self, ei: Any) -> str:
        return told(ei[1]) if ei[1] is not None else ""
