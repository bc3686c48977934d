"""The JSON Schema of a settings file, for editors: completion, descriptions, and red lines under what is wrong.

It accepts what the loader accepts, `${VARIABLES}` and short forms included, and knows every key. What only shows when
two places are compared (a name that no backend has) is left to the loader.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import TypeAdapter

from classifiers.conditions import CLIENT_FLAGS, CLIENT_NUMBERS, COUNTS, FLAGS, NUMBERS, WORDS
from policies import BUILTIN
from router.settings.classes import ClassSettings, Slo
from router.settings.model import PolicySettings, Settings
from router.settings.units import duration_text, size_text

SCHEMA_ID: Final = "urn:twolane:settings"

Node = dict[str, Any]

_VARIABLE: Final[Node] = {
    "type": "string",
    "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}",
    "description": "Text with ${NAME} or ${NAME:-default} from the environment.",
}
_COMPARISON: Final[Node] = {
    "type": "string",
    "pattern": r"^\s*((>=|<=|==|!=|>|<)?\s*-?[0-9]{1,15}|-?[0-9]{1,15}\s*\.\.\s*-?[0-9]{1,15})\s*$",
    "examples": [">6000", "<=2", "100..500"],
}
_PATTERN: Final[Node] = {"type": ["string", "integer"], "minLength": 1}
_PATTERNS: Final[Node] = {"anyOf": [_PATTERN, {"type": "array", "items": _PATTERN, "minItems": 1}]}
_NUMBER: Final[Node] = {"anyOf": [{"type": "integer"}, _COMPARISON]}
_BOOLEAN: Final[Node] = {"type": "boolean"}


def schema() -> Node:
    """JSON Schema, draft 2020-12."""
    whole = Settings.model_json_schema(mode="validation")
    definitions: Node = whole["$defs"]
    definitions["Rule"]["properties"]["if"] |= _conditions()
    definitions["PolicySettings"] = _policy(definitions)
    for model in (ClassSettings, Slo):  # their defaults differ from class to class; `Classes` shows them
        for field in definitions[model.__name__]["properties"].values():
            field.pop("default", None)
    whole = _polished(whole)
    whole["$defs"]["Variable"] = _VARIABLE
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **whole,
        "title": "Twolane settings",
        "description": "Settings of the Twolane router: its addresses, its backends, what each class is promised.",
    }


def _conditions() -> Node:
    names: dict[str, Node] = {"header": {"type": "object", "additionalProperties": _either(_BOOLEAN, _PATTERNS)}}
    names |= dict.fromkeys(WORDS, _PATTERNS)
    names |= dict.fromkeys((*FLAGS, *CLIENT_FLAGS), _BOOLEAN)
    names |= {name: _either(_BOOLEAN, _NUMBER) if name in COUNTS else _NUMBER for name in (*NUMBERS, *CLIENT_NUMBERS)}
    return {"type": "object", "properties": names, "additionalProperties": False}


def _either(*choices: Node) -> Node:
    return {"anyOf": list(choices)}


def _policy(definitions: Node) -> Node:
    """A name, or a mapping whose other keys are the options of the policy that it names."""
    names = list(BUILTIN)
    mapping: Node = definitions["PolicySettings"]
    mapping["properties"]["use"]["examples"] = names
    mapping["allOf"] = [_options(name, policy, definitions) for name, policy in BUILTIN.items()]
    return {"anyOf": [{"type": "string", "minLength": 1, "examples": names}, mapping]}


def _options(name: str, policy: type, definitions: Node) -> Node:
    """Where `use` is this built-in policy, only its own options."""
    known = TypeAdapter(policy).json_schema()
    definitions |= known.get("$defs", {})
    is_default = PolicySettings.model_fields["use"].default == name
    named: Node = {"properties": {"use": {"const": name}}, **({} if is_default else {"required": ["use"]})}
    return {"if": named, "then": {"properties": {"use": {}, **known["properties"]}, "additionalProperties": False}}


def _polished(node: Node) -> Node:
    """Without titles that repeat the key, with defaults as a file has them, with variables wherever words are."""
    node = {key: _inside(key, value) for key, value in node.items() if key != "title"}
    if node.get("type") == "string" and isinstance(default := node.get("default"), int | float):
        node["default"] = duration_text(default) if isinstance(default, float) else size_text(default)
    if "patternProperties" in node:  # pydantic leaves keys of another form open
        node["additionalProperties"] = False
    if "anyOf" in node:
        node["anyOf"] = [choice for group in node["anyOf"] for choice in _choices(group)]
    elif _is_narrow(node):
        about: Node = {key: node.pop(key) for key in ("description", "default", "examples") if key in node}
        node = {"anyOf": [node, {"$ref": "#/$defs/Variable"}], **about}
    return node


def _inside(key: str, value: Any) -> Any:
    if key in ("properties", "patternProperties", "$defs"):
        return {name: _polished(inner) for name, inner in value.items()}
    if key in ("items", "additionalProperties", "then") and isinstance(value, dict):
        return _polished(value)
    if key in ("anyOf", "allOf"):
        return [_polished(inner) for inner in value]
    return value


def _choices(group: Mapping[str, Any]) -> list[Any]:
    """Choices within a choice are choices."""
    return group["anyOf"] if group.keys() == {"anyOf"} else [group]


def _is_narrow(node: Node) -> bool:
    """Whether `${NAME}` would be refused although the loader replaces it."""
    kind = node.get("type")
    return kind in ("integer", "number", "boolean") or (kind == "string" and bool({"enum", "pattern"} & node.keys()))
