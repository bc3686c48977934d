"""pydantic's errors in words of the file: which key, what was expected, what to do.

Values are looked at to choose the words and are never repeated in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, get_args

from pydantic_core import ErrorDetails

from classifiers.api import SYNONYMS
from router.settings.fields import HEADER_PATTERN, HOST_PATTERN, NAME_PATTERN
from router.settings.outline import homes, known_keys
from router.settings.problems import KeyErrors, Path


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that is wrong, without its line."""

    path: Path
    message: str
    of_key: bool = False
    """The key itself is wrong, not its value."""


def complaints(error: ErrorDetails, root: object) -> Iterator[Complaint]:
    """What one error of pydantic means for a file whose values are `root`."""
    path: Path = error["loc"]
    of_key = bool(path) and path[-1] == "[key]"
    if of_key:
        path = path[:-1]
    kind, context = error["type"], error.get("ctx", {})
    cause = context.get("error")
    if isinstance(cause, KeyErrors):
        yield from (Complaint((*path, *below), message, True) for below, message in cause.found)
    elif kind == "value_error":
        yield Complaint(path, str(cause), of_key)
    elif kind == "extra_forbidden":
        yield Complaint(path, _unknown_key(path), True)
    elif kind == "missing":
        field = known_keys(path[:-1]).get(str(path[-1]))
        yield Complaint(path, f"is missing. {field.description if field else ''}".rstrip())
    elif kind in ("literal_error", "enum"):
        yield Complaint(path, _one_of(path, _value_at(root, path)), of_key)
    elif kind != "too_short" or not _value_at(root, path):  # a list whose items are all wrong is not short
        yield Complaint(path, _expected(kind, context, path, _value_at(root, path)) or error["msg"], of_key)


def _value_at(root: object, path: Path) -> object:
    value: Any = root
    for step in path:
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value


OTHER_WORDS: Final[Mapping[str, str]] = {
    **{word: call_class.value for word, call_class in SYNONYMS.items()},
    "servers": "backends",
    "upstreams": "backends",
    "endpoints": "backends",
    "aliases": "models",
    "host": "listen",
    "port": "listen",
    "bind": "listen",
    "queue": "line",
    "routing": "policy",
    "strategy": "policy",
    "slots": "max_inflight",
    "concurrency": "max_inflight",
    "base_url": "url",
    "api_base": "url",
    "address": "url",
    "id": "name",
    "type": "engine",
    "kind": "engine",
    "role": "lane",
    "api_keys": "keys",
    "rpm": "calls_per_minute",
    "tpm": "tokens_per_minute",
    "certificate": "cert",
    "private_key": "key",
    "allow_origins": "origins",
    "allowed_origins": "origins",
    "key": "api_key",
    "token": "api_key",
    "context": "context_tokens",
    "n_ctx": "context_tokens",
    "class": "then",
    "when": "if",
}
"""What people write who come from elsewhere, and the key that they mean."""


def _unknown_key(path: Path) -> str:
    key, known = str(path[-1]), list(known_keys(path[:-1]))
    close = get_close_matches(key.lower(), known, n=1) if len(key) <= 64 else []
    other = OTHER_WORDS.get(key.lower())
    if close or other in known:
        advice = f"; did you mean {close[0] if close else other}?"
    elif places := homes(key):
        advice = f"; it belongs under {_or(place or 'no other key' for place in places)}"
    else:
        advice = ""
    return f"unknown key{advice} (known: {', '.join(known)})"


def _one_of(path: Path, value: object) -> str:
    field = known_keys(path[:-1]).get(str(path[-1])) if path else None
    words = [str(word) for word in get_args(field.annotation)] if field else []
    close = get_close_matches(value.lower(), words, n=1) if isinstance(value, str) and len(value) <= 64 else []
    return f"expected {_or(words)}{f'; did you mean {close[0]}?' if close else ''}"


def _or(words: Iterable[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last


def _expected(kind: str, context: Mapping[str, Any], path: Path, value: object) -> str:
    if kind in _TYPES:
        expected = f"expected {_TYPES[kind]}"
        if kind in ("model_type", "dict_type") and (known := known_keys(path)):
            expected = f"expected a mapping with keys such as {', '.join(known)}"
        return f"nothing is written here; {expected}, or leave the key out" if value is None else expected
    return _BOUNDS[kind](context) if kind in _BOUNDS else ""


_TYPES: Final[Mapping[str, str]] = {
    "string_type": "text; put a number, true or false in quotes",
    "int_type": "a whole number in plain digits, without quotes",
    "int_from_float": "a whole number in plain digits, without quotes",
    "float_type": "a number, without quotes",
    "bool_type": "true or false, without quotes",
    "tuple_type": "a list: [ONE, TWO], or one item per line after a dash",
    "dict_type": "a mapping: KEY: VALUE",
    "model_type": "a mapping: KEY: VALUE",
}

_PATTERNS: Final[Mapping[str, str]] = {
    NAME_PATTERN: "a name of letters, digits, '.', '_' and '-' that begins with a letter or a digit",
    HOST_PATTERN: "the name of a host without port, such as models.example.com",
    HEADER_PATTERN: "the name of a header, such as x-team",
}


def _too_short(context: Mapping[str, Any]) -> str:
    if context["field_type"] not in ("Tuple", "List"):  # a secret
        return "expected text that is not empty"
    return f"expected at least {context['min_length']} item{'s' if context['min_length'] > 1 else ''} in the list"


_BOUNDS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "greater_than": lambda context: f"expected more than {context['gt']:g}",
    "greater_than_equal": lambda context: f"expected at least {context['ge']}",
    "less_than_equal": lambda context: f"expected at most {context['le']}",
    "finite_number": lambda context: "expected a finite number",
    "string_too_short": lambda context: "expected text that is not empty",
    "string_too_long": lambda context: f"expected at most {context['max_length']} characters",
    "string_pattern_mismatch": lambda context: f"expected {_PATTERNS[context['pattern']]}",
    "too_short": _too_short,
    "too_long": lambda context: f"expected at most {context['max_length']} characters",
}
