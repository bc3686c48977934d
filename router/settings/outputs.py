"""Files that the router writes: a path in the settings, looked at when it is read and opened when the router starts."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pydantic import BeforeValidator, ValidationInfo

from router.settings.files import folder_of
from router.settings.problems import Path as Keys
from router.settings.problems import dotted

_HEAD_BYTES: Final = 64
"""Of a file, from which it is told what it holds."""


def output_path(begins: re.Pattern[bytes], what: str) -> BeforeValidator:
    """What makes a path of text. A file that is there already must be empty or begin like one of ours."""

    def checked(value: object, info: ValidationInfo) -> object:
        if isinstance(value, Path):
            return value
        if not isinstance(value, str) or not value or "\0" in value:
            raise ValueError("expected the path of a file")
        path = folder_of(info) / value
        if not path.parent.is_dir():
            raise ValueError("there is no such folder; make it first")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise ValueError("nothing can be written in this folder; change its permissions, or name another")
        try:
            kind = path.lstat().st_mode
        except FileNotFoundError:
            return path
        if not stat.S_ISREG(kind):
            raise ValueError("is not a plain file; give the path of one, or of one that does not exist yet")
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
            if head and begins.match(head) is None:
                raise ValueError(f"holds something that is no {what}; give the path of another file")
        return path

    return BeforeValidator(checked)


def shared_files(outputs: Iterable[tuple[Keys, Path]], read: Iterable[Path]) -> Iterator[tuple[Keys, str]]:
    """Outputs that would be written over each other, or over a file that these settings are made of (`read`).

    Files are told apart by where their paths lead. The settings file is none of ours by what it holds.
    """
    taken = {os.path.realpath(path): "is read by these settings" for path in read}
    for keys, path in outputs:
        place = os.path.realpath(path)
        if place in taken:
            yield keys, f"{taken[place]}, and would be written over; give the path of another file"
        taken[place] = f"is written for {dotted(keys)} already"
