"""Which keys exist at which place of a settings file.

A place is a path in which `*` stands for any position in a list and for any key that people choose themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from router.settings.model import Settings
from router.settings.problems import Path
from router.settings.section import Word

ANY = "*"
Place = tuple[str, ...]


@cache
def sections() -> Mapping[Place, Mapping[str, FieldInfo]]:
    """Known keys, as they are written in a file, with the field behind each, by place."""
    return dict(_sections(Settings, ()))


def known_keys(path: Path) -> Mapping[str, FieldInfo]:
    """Keys that may stand directly below `path`; empty where people choose the keys, and for anything but mappings."""
    return next((keys for place, keys in sections().items() if _covers(place, path)), {})


def homes(key: str) -> list[str]:
    """Sections that know `key`, as text: `classes.ttft.slo`, `backends[*]`; empty text is the top of the file."""
    return [_text(place) for place, keys in sections().items() if key in keys]


def every_key() -> Iterator[Place]:
    """All places of all keys, sections and single values alike."""
    for place, keys in sections().items():
        yield from ((*place, key) for key in keys)


def _covers(place: Place, path: Path) -> bool:
    return len(place) == len(path) and all(a in (ANY, b) for a, b in zip(place, path, strict=True))


def _text(place: Place) -> str:
    return ".".join(place).replace(f".{ANY}", f"[{ANY}]")


def _sections(model: type[BaseModel], place: Place) -> Iterator[tuple[Place, Mapping[str, FieldInfo]]]:
    keys = {field.alias or name: field for name, field in model.model_fields.items()}
    yield place, keys
    for key, field in keys.items():
        for inner, below in _models_in(field.annotation, (*place, key)):
            yield from _sections(inner, below)


def _models_in(annotation: Any, place: Place) -> Iterator[tuple[type[BaseModel], Place]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if not issubclass(annotation, Word):
            yield annotation, place
        return
    origin, arguments = get_origin(annotation), get_args(annotation)
    for argument in arguments[-1:] if origin is dict else arguments:
        yield from _models_in(argument, (*place, ANY) if origin in (tuple, dict) else place)
