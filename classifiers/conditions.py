"""The `if:` of a rule, compiled once: what a call must look like.

    {header: {x-team: nightly, x-debug: false}, model: [qwen*, llama-3?], prompt_tokens: ">6000", stream: false}

All keys of a condition must hold. Patterns know `*` and `?` and ignore case; a list of patterns holds where one does.
Numbers are compared as `">6000"`, `">=2"`, `"<100"`, `"<=5"`, `"==1"`, `"!=1"`, `"100..500"` (both ends included) or
plain `7`. What a call does not say (no such header, no `max_tokens`) matches nothing, not even `*`. What its client did
before is compared like the rest (`client_calls_60s: ">50"`, `continues: true`); where nobody keeps count, it matches
nothing.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import translate
from typing import Any, Final

from classifiers.api import SECRET_HEADERS, Features

Test = Callable[[Features], bool]

FLAGS: Final = ("stream", "background")
"""Keys that are true or false."""
WORDS: Final = ("model", "surface", "last_role", "response_format", "service_tier", "user_agent")
"""Keys that are matched by patterns."""
COUNTS: Final = ("tools", "tool_results", "media")
"""Numbers of things; here `true` means any and `false` none."""
NUMBERS: Final = (
    "prompt_tokens",
    "system_tokens",
    "last_tokens",
    "turns",
    "prompts",
    "max_tokens",
    "choices",
    "priority",
    *COUNTS,
)
"""Keys that are compared."""
CLIENT_NUMBERS: Final[Mapping[str, str]] = {
    "client_calls_1s": "calls_1s",
    "client_calls_10s": "calls_10s",
    "client_calls_60s": "calls_60s",
    "same_template_60s": "same_template_60s",
    "parallel": "parallel",
    "hops": "hops",
}
"""Keys that are compared with what is known of the client, and what they are called in `Arrival`."""
CLIENT_FLAGS: Final = ("continues",)
CLIENT_KEYS: Final = frozenset((*CLIENT_NUMBERS, *CLIENT_FLAGS))
"""Keys that ask what a client did before."""
KEYS: Final = ("header", *WORDS, *FLAGS, *NUMBERS, *CLIENT_NUMBERS, *CLIENT_FLAGS)

_COMPARISON = re.compile(r"(>=|<=|==|!=|>|<|)\s*(-?[0-9]{1,15})")
_RANGE = re.compile(r"(-?[0-9]{1,15})\s*\.\.\s*(-?[0-9]{1,15})")
_OPERATORS: Mapping[str, Callable[[int, int], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "!=": operator.ne,
    "==": operator.eq,
    "": operator.eq,
}


class ConditionError(ValueError):
    """A condition that cannot mean anything. `key` is its dotted path, such as `prompt_tokens` or `header.x-team`."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key}: {message}")
        self.key = key
        self.message = message


@dataclass(frozen=True, slots=True)
class Condition:
    """Callable `Features -> bool`; as text it reads like the YAML that it was made of."""

    parts: tuple[tuple[str, Test], ...]
    """Text and test of each key, in the order of the file."""

    def __call__(self, features: Features) -> bool:
        for _, holds in self.parts:  # noqa: SIM110 - a generator inside all() would double the cost
            if not holds(features):
                return False
        return True

    def unmet(self, features: Features) -> str:
        """The text of the first part that does not hold; empty where all do."""
        return next((text for text, holds in self.parts if not holds(features)), "")

    def __str__(self) -> str:
        return ", ".join(text for text, _ in self.parts) or "always"


def compile_condition(conditions: Mapping[str, object]) -> Condition:
    """Compile the mapping under `if:`. An empty one always holds. Raises `ConditionError`."""
    parts: list[tuple[str, Test]] = []
    for key, wanted in conditions.items():
        if key == "header":
            parts.extend(_header_parts(wanted))
        else:
            parts.append((f"{key}: {_text(wanted)}", _test(key, wanted)))
    return Condition(tuple(parts))


def _test(key: str, wanted: object) -> Test:
    if key in FLAGS:
        return _flag(key, wanted)
    if key in NUMBERS:
        return _number(key, wanted, operator.attrgetter(key))
    if key in CLIENT_NUMBERS:
        return _number(key, wanted, _of_client(CLIENT_NUMBERS[key]))
    if key in CLIENT_FLAGS:
        return _client_flag(key, wanted)
    if key == "user_agent":
        return _header_value("user-agent", _pattern(key, wanted))
    if key in WORDS:
        return _word(key, wanted)
    close = get_close_matches(str(key), KEYS, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise ConditionError(str(key), f"there is no such condition; {hint}known: {', '.join(KEYS)}")


def _header_parts(wanted: object) -> Iterator[tuple[str, Test]]:
    if not isinstance(wanted, Mapping) or not wanted:
        raise ConditionError("header", "expected names and patterns, such as {x-team: nightly*}")
    for name, value in wanted.items():
        key = f"header.{name}"
        if not isinstance(name, str):
            raise ConditionError(key, f"expected the name of a header, got {_text(name)}")
        lower_name = name.lower()
        if lower_name in SECRET_HEADERS:
            raise ConditionError(key, "carries a secret, which rules are not shown; choose another header")
        if isinstance(value, bool):
            yield f"{key}: {_text(value)}", _header_presence(lower_name, value)
        else:
            yield f"{key}: {_text(value)}", _header_value(lower_name, _pattern(key, value))


def _header_presence(name: str, present: bool) -> Test:
    if present:
        return lambda features: name in features.headers
    return lambda features: name not in features.headers


def _header_value(name: str, pattern: re.Pattern[str]) -> Test:
    match = pattern.match

    def holds(features: Features) -> bool:
        value = features.headers.get(name)
        return value is not None and match(value) is not None

    return holds


def _word(key: str, wanted: object) -> Test:
    match = _pattern(key, wanted).match
    read = operator.attrgetter(key)

    def holds(features: Features) -> bool:
        value: str = read(features) or ""
        return value != "" and match(value) is not None

    return holds


def _flag(key: str, wanted: object) -> Test:
    if not isinstance(wanted, bool):
        raise ConditionError(key, f"expected true or false, got {_text(wanted)}")
    read: Callable[[Features], bool] = operator.attrgetter(key)
    return read if wanted else lambda features: not read(features)


def _of_client(name: str) -> Callable[[Features], Any]:
    """Reads a value of `Arrival`; None where nobody keeps count."""
    read = operator.attrgetter(name)
    return lambda features: None if features.arrival is None else read(features.arrival)


def _client_flag(key: str, wanted: object) -> Test:
    if not isinstance(wanted, bool):
        raise ConditionError(key, f"expected true or false, got {_text(wanted)}")
    read = _of_client(key)
    return lambda features: read(features) is wanted


def _number(key: str, wanted: object, read: Callable[[Features], int | None]) -> Test:
    if isinstance(wanted, bool) and key in COUNTS:
        return _compared(read, operator.gt if wanted else operator.eq, 0)
    if isinstance(wanted, bool) or not isinstance(wanted, int | str):
        raise _no_number(key, wanted)
    text = str(wanted).strip()
    if match := _COMPARISON.fullmatch(text):
        return _compared(read, _OPERATORS[match[1]], int(match[2]))
    if match := _RANGE.fullmatch(text):
        return _between(key, read, int(match[1]), int(match[2]))
    raise _no_number(key, wanted)


def _no_number(key: str, wanted: object) -> ConditionError:
    any_of = ", true (any)" if key in COUNTS else ""
    expected = f'a number or a comparison such as ">6000", "<=2" or "100..500"{any_of}'
    return ConditionError(key, f"expected {expected}; got {_text(wanted)}")


def _compared(read: Callable[[Features], int | None], compare: Callable[[int, int], bool], bound: int) -> Test:
    def holds(features: Features) -> bool:
        value = read(features)
        return value is not None and compare(value, bound)

    return holds


def _between(key: str, read: Callable[[Features], int | None], lowest: int, highest: int) -> Test:
    if lowest > highest:
        raise ConditionError(key, f"{lowest}..{highest} holds for no number; write the smaller one first")

    def holds(features: Features) -> bool:
        value = read(features)
        return value is not None and lowest <= value <= highest

    return holds


def _pattern(key: str, wanted: object) -> re.Pattern[str]:
    """One regular expression for a pattern or a list of them. A header `7` may be written as a number."""
    patterns = wanted if isinstance(wanted, list | tuple) else (wanted,)
    if not patterns:
        raise ConditionError(key, "an empty list matches nothing; name at least one pattern")
    for pattern in patterns:
        if isinstance(pattern, bool) or not isinstance(pattern, str | int) or pattern == "":
            raise ConditionError(key, f"expected a pattern such as qwen* or a list of them, got {_text(pattern)}")
    # `[` is an ordinary character here; the translation needs linear time whatever a client sends.
    return re.compile("|".join(translate(str(pattern).replace("[", "[[]")) for pattern in patterns), re.IGNORECASE)


def _text(value: Any) -> str:
    """A value of the YAML file, as it would be written there."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_text(item) for item in value)}]"
    return "null" if value is None else str(value)
