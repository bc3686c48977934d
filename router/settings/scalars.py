"""What a bare word of YAML means: text, a number, true, false or nothing.

These are the rules of YAML 1.2, less what surprises people: `no`, `off`, `0123`, `1_0`, `22:22`, `0x1F`, `2024-01-31`
are text and stay as they were written, so that a field that wants a number or a boolean refuses them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import isfinite
from typing import Final

_WORDS: Final[Mapping[str, bool | None]] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?")

_VARIABLE = re.compile(r"\$(?:\$\{|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-[^}]*)?\}|(?P<bad>\{))")


def bare(text: str) -> object:
    """The value of text that stands in a file without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and isfinite(number := float(text)):
        return number
    return text


class Substituted(str):
    """Text in which a variable was replaced: text where text is wanted, else what `bare` makes of it.

    Quotes make no difference here, because inside of brackets YAML wants them around `${NAME}`.
    """

    __slots__ = ()


def settled(value: object) -> object:
    """A value for a place that does not want text: replaced variables become numbers and booleans, also inside."""
    if isinstance(value, Substituted):
        return bare(str(value))
    if isinstance(value, list):
        return [settled(item) for item in value]
    if isinstance(value, dict):
        return {key: settled(item) for key, item in value.items()}
    return value


class VariableError(ValueError):
    """A `${...}` that cannot be replaced."""


def mentions_variable(text: str) -> bool:
    return "${" in text


def substitute(text: str, env: Mapping[str, str]) -> str:
    """Replace `${NAME}` and `${NAME:-default}`; `$${` stands for `${`. Raises `VariableError`.

    The default also holds where the variable is empty, as in a shell.
    """

    def value(match: re.Match[str]) -> str:
        if match["bad"]:
            raise VariableError("expected ${NAME} or ${NAME:-default}; write $${ for a literal ${")
        name, default = match["name"], match["default"]
        if name is None:
            return "${"
        if env.get(name) or (name in env and default is None):
            return env[name]
        if default is None:
            raise VariableError(f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}")
        return default.removeprefix(":-")

    return _VARIABLE.sub(value, text)
