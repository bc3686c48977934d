"""Which learned model judges calls that nobody tagged, and where decisions are written down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    Field,
    PlainSerializer,
    SerializationInfo,
    ValidationInfo,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from classifiers.modelfile import MAX_FILE_BYTES, ModelError
from router.models import builtin, parsed
from router.settings.fields import Amount, Flag
from router.settings.files import NamedFile, named_file
from router.settings.outputs import output_path
from router.settings.problems import Path as Keys
from router.settings.section import Section, Word
from router.settings.units import Bytes, PositiveSeconds

_EXPECTED: Final = "expected builtin, off, or the path of a model that `twolane train` wrote"


class ModelChoice(Word):
    """In the settings file one word: `builtin`, `off`, or the path of a model (`./off` is a path)."""

    use: Literal["builtin", "off", "file"]
    file: NamedFile | None = None

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any, info: ValidationInfo) -> Any:
        if isinstance(value, ModelChoice):
            return value
        if not isinstance(value, str) or not value:
            raise ValueError(_EXPECTED)
        if value in ("builtin", "off"):
            return {"use": value}
        file = named_file(value, info, MAX_FILE_BYTES, "a model")
        try:
            parsed(file.content.get_secret_value())
        except ModelError as error:
            raise ValueError(f"is no model that can be used: {error}") from None
        return {"use": "file", "file": file}

    @model_serializer(mode="plain")
    def _shown(self, info: SerializationInfo) -> str:
        """As in the file; with the digest where settings are compared."""
        if self.file is None:
            return self.use
        return str(self.file.path) if info.mode == "json" else f"{self.file.path} (sha256 {self.file.digest})"


BUILTIN_MODEL: Final = ModelChoice.model_validate("builtin")


def unusable(**named: ModelChoice | None) -> Iterator[tuple[Keys, str]]:
    """Mentions, by the key under `classify`, of the model that comes with the router, where it cannot be used."""
    for key, choice in named.items():
        try:
            if choice is not None and choice.use == "builtin":
                builtin()
        except ModelError as error:
            yield (
                ("classify", key),
                f"the model that comes with this version cannot be used ({error}); install it anew, or write off",
            )


Model = Annotated[
    ModelChoice,
    WithJsonSchema({"type": "string", "minLength": 1, "examples": ["builtin", "off", "own.json"]}),
]


LogPath = Annotated[
    Path,
    output_path(re.compile(rb'\s*\{\s*"format"\s*:\s*[0-9]'), "decision log"),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "minLength": 1}),
]


class Decisions(Section):
    """The decision log: one line of JSON for each judged call, to learn from. Numbers and fixed words, never text."""

    file: LogPath | None = Field(
        None, description="Where it is written; only its owner can read it. null: it is not written."
    )
    max_size: Bytes = Field(64 * 2**20, description="A file that would grow beyond this is set aside as FILE.1.")
    max_age: PositiveSeconds = Field(
        24 * 3600.0, description="A file whose first line is older is set aside as well; 8760h: by size alone."
    )
    keep: Amount = Field(7, description="Files set aside that are kept, FILE.1 being the newest.")
    compress: Flag = Field(
        True, description="Files set aside are packed with zstd: FILE.1.zst. false: they stay as they are."
    )
    text_hashes: Flag = Field(
        False, description="Also hashes of system text, template and tools, keyed with the salt beside the file."
    )
