"""Files that the router writes: a path in the settings, looked at when it is read and opened when the router starts."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pydantic import BeforeValidator, ValidationInfo

from router.settings.files import folder_of


def output_path(begins: bytes, what: str) -> BeforeValidator:
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
            if file.read(len(begins)) not in (b"", begins):
                raise ValueError(f"holds something that is no {what}; give the path of another file")
        return path

    return BeforeValidator(checked)
