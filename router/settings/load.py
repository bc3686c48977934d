"""A settings file -> `Settings`, or every problem at once, each with its line and key.

FILE:LINE:COLUMN: key.path: what was expected, what to do
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path as FilePath
from typing import Any, Final

from pydantic import ValidationError

from router.settings.checks import dangling_names, repeated_names
from router.settings.command_line import from_urls
from router.settings.document import MOST_CHARACTERS, Document, Place, read
from router.settings.files import NotPlain, plain_content
from router.settings.model import Settings
from router.settings.problems import Problem, SettingsError, dotted
from router.settings.schema import schema
from router.settings.shown import redacted
from router.settings.units import IN_FILE
from router.settings.wording import Complaint, complaints

__all__ = ["Loaded", "Problem", "SettingsError", "digest", "from_urls", "load", "parse", "redacted", "schema"]

MOST_PROBLEMS: Final = 100
"""Shown at once; who has more starts with these."""
_SHORTEST_SECRET: Final = 6
"""Shorter values of variables are words such as `true` and may appear in a message."""
_LONGEST_MESSAGE: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A file that could be used."""

    settings: Settings
    path: FilePath
    digest: str
    """Of the content, and of the files that it names, for `watch.changes`."""


def load(path: str | os.PathLike[str], env: Mapping[str, str] = os.environ, *, or_pipe: bool = False) -> Loaded:
    """Read a settings file. `or_pipe`: of what a program writes into a pipe as well, which is waited for.

    Raises `SettingsError`, also where the file cannot be read.
    """
    source = os.fspath(path)
    try:
        raw = plain_content(source, 4 * MOST_CHARACTERS + 1, or_pipe=or_pipe)  # a character has at most four bytes
    except FileNotFoundError:
        raise _unreadable(source, "there is no such file; `twolane init` writes one") from None
    except NotPlain as error:
        raise _unreadable(source, str(error)) from None
    except (OSError, ValueError) as error:  # ValueError: a path with a null byte
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise _unreadable(source, f"cannot be read: {reason}") from None
    settings = parse(_decoded(raw, source), source, env)
    contents = (file.content.get_secret_value() for file in settings.named_files())
    return Loaded(settings=settings, path=FilePath(source), digest=digest(raw, *contents))


def parse(text: str, source: str, env: Mapping[str, str]) -> Settings:
    """Read settings from text; `source` stands before each problem, and files that it names lie beside it.

    Raises `SettingsError`.
    """
    document = read(text, source, env)
    found = [(flaw.place, Complaint(flaw.path, flaw.message)) for flaw in document.flaws]
    settings = None
    try:
        context = {**IN_FILE, "folder": FilePath(source).parent}
        settings = Settings.model_validate({} if document.value is None else document.value, context=context)
    except ValidationError as error:
        found += [(document.place(item.path, of_key=item.of_key), item) for item in _complaints(error, document)]
    if settings is None or found:
        raise SettingsError(_problems(found, source, document))
    return settings


def digest(content: bytes, *others: bytes) -> str:
    """Says whether two contents are the same; `others` are files beside the first."""
    found = sha256(content)
    for other in others:
        found.update(sha256(other).digest())
    return found.hexdigest()


def _unreadable(source: str, message: str) -> SettingsError:
    return SettingsError([Problem(source=source, message=message)])


def _decoded(raw: bytes, source: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        message = "not UTF-8 text; save the file as UTF-8"
        raise SettingsError([Problem(source=source, line=line, column=column, message=message)]) from None


def _complaints(error: ValidationError, document: Document) -> Iterator[Complaint]:
    """Those of pydantic, less what only follows from values that could not be read at all."""
    details = error.errors(include_url=False, include_input=False)
    details.sort(key=lambda detail: document.place(detail["loc"]))
    for detail in details[:MOST_PROBLEMS]:
        for complaint in complaints(detail, document.value):
            if not any(complaint.path[:length] in document.left_out for length in range(len(complaint.path) + 1)):
                yield complaint
    if all(detail["loc"] for detail in details):  # else the model itself has said this
        yield from _dangling(document.value)


def _dangling(root: object) -> Iterator[Complaint]:
    """What the model would say about names of backends, had it come so far; nothing where the names are unclear."""
    top = _dict(root)
    names = [_dict(backend).get("name") for backend in _list(top.get("backends"))]
    known = [name for name in names if isinstance(name, str)]
    found = [*repeated_names(names)]
    if known and len(known) == len(names):
        aliases = {public: _dict(per_backend) for public, per_backend in _dict(top.get("models")).items()}
        found += dangling_names(known, aliases, _word(top.get("passthrough")))
    yield from (Complaint(path, message, of_key=True) for path, message in found)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _problems(found: Iterable[tuple[Place, Complaint]], source: str, document: Document) -> list[Problem]:
    """In the order of the file, one per key; what stands at an anchor is told once, however often it is used."""
    told: set[tuple[Place, object]] = set()
    problems: list[Problem] = []
    for place, complaint in sorted(found, key=lambda item: item[0]):
        signs = {(place, complaint.message), (place, complaint.path)}
        if told.isdisjoint(signs) and len(problems) < MOST_PROBLEMS:
            message = _masked(complaint.message, document.substituted)
            key_path = dotted(complaint.path)
            problems.append(Problem(source=source, line=place[0], column=place[1], key_path=key_path, message=message))
        told |= signs
    return problems


def _masked(message: str, substituted: Iterable[str]) -> str:
    """One line, without values that came from the environment, which conditions and policies may repeat."""
    for value in substituted:
        if len(value) >= _SHORTEST_SECRET:
            message = message.replace(value, "${...}")
    message = "".join(char if char.isprintable() else " " for char in message)
    return message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}..."
