"""Files that the settings name: keys and certificates.

They are read when the settings are read, so that a file that cannot be used is a problem with a line and a key, and a
reload takes over all or nothing. A path that is not absolute starts at the folder of the settings file.
"""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import SecretBytes, SerializationInfo, ValidationInfo, WithJsonSchema, model_serializer, model_validator

from router.settings.section import Word

MOST_BYTES: Final = 1024 * 1024
"""All certificates of an operating system are a quarter of this."""
_KEYS: Final = "a key or a certificate"


class NamedFile(Word):
    """A file and what it held when the settings were read; in the settings file it is written as its path."""

    path: Path
    content: SecretBytes

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, NamedFile):
            return value
        return _read_file(value, info, MOST_BYTES, _KEYS)

    @model_serializer(mode="plain")
    def _shown(self, info: SerializationInfo) -> str:
        """The path alone where settings are shown; with the digest where they are compared."""
        return str(self.path) if info.mode == "json" else f"{self.path} (sha256 {self.digest})"

    @property
    def digest(self) -> str:
        return sha256(self.content.get_secret_value()).hexdigest()

    @property
    def text(self) -> str:
        """Raises `ValueError` where it is none."""
        return self.content.get_secret_value().decode("utf-8-sig")

    @property
    def line(self) -> str:
        """The text without the line break that editors and `echo` leave behind it. Raises `ValueError`."""
        return self.text.rstrip("\r\n")


def named_file(value: object, info: ValidationInfo, most_bytes: int, what: str) -> NamedFile:
    """Read a file of another size than keys have; `what` it should be. Raises `ValueError`."""
    return NamedFile.model_construct(**_read_file(value, info, most_bytes, what))


FilePath = Annotated[NamedFile, WithJsonSchema({"type": "string", "minLength": 1})]


def folder_of(info: ValidationInfo) -> Path:
    """Where paths that are not absolute begin."""
    folder = info.context.get("folder") if isinstance(info.context, dict) else None
    return folder if isinstance(folder, Path) else Path()


def _read_file(value: object, info: ValidationInfo, most_bytes: int, what: str) -> dict[str, Any]:
    if not isinstance(value, str) or not value:
        raise ValueError("expected the path of a file")
    path = folder_of(info) / value
    return {"path": path, "content": SecretBytes(_content(path, most_bytes, what))}


def _content(path: Path, most_bytes: int, what: str) -> bytes:
    try:
        content = plain_content(path, most_bytes + 1)
    except NotPlain as error:
        raise ValueError(str(error)) from None
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    except ValueError:  # a null byte
        raise ValueError("expected the path of a file") from None
    if not content.strip():
        raise ValueError("is empty")
    if len(content) > most_bytes:
        raise ValueError(f"is larger than {most_bytes // 1024} KiB; that is not {what}")
    return content


class NotPlain(OSError):
    """A folder, a pipe or a device."""

    def __init__(self) -> None:
        super().__init__("is not a plain file; give the path of one")


def plain_content(path: str | Path, most_bytes: int = -1, *, or_pipe: bool = False) -> bytes:
    """A file, or its first bytes. `or_pipe`: a pipe will do, whose other end is waited for.

    Raises `OSError`, or `ValueError` where the path holds a null byte.
    """
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (0 if or_pipe else os.O_NONBLOCK))
    kind = os.fstat(number).st_mode
    if not (stat.S_ISREG(kind) or (or_pipe and stat.S_ISFIFO(kind))):
        os.close(number)
        raise NotPlain
    with open(number, "rb") as file:
        return file.read(most_bytes)
