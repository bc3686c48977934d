"""Where each call should go, and when.

`build` finds a policy by name: one of `BUILTIN`, an entry point of the group `twolane.policies`, or `module:attribute`.
Whatever the code of somebody else raises on the way is a problem of the settings that name it, not one of the router.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from importlib.metadata import entry_points
from pkgutil import resolve_name
from typing import Any, cast, get_type_hints

from pydantic import TypeAdapter, ValidationError

from policies.api import Policy
from policies.least_loaded import LeastLoaded
from policies.power_of_two import PowerOfTwo
from policies.prefix_affinity import PrefixAffinity
from policies.round_robin import RoundRobin
from policies.static_lanes import StaticLanes
from policies.workload_aware import WorkloadAware

BUILTIN: dict[str, type[Policy]] = {
    "workload_aware": WorkloadAware,
    "static_lanes": StaticLanes,
    "prefix_affinity": PrefixAffinity,
    "least_loaded": LeastLoaded,
    "power_of_two": PowerOfTwo,
    "round_robin": RoundRobin,
}

ENTRY_POINT_GROUP = "twolane.policies"


class PolicyError(ValueError):
    """The settings under `policy:` name no policy, or options that it does not have.

    `key` is relative to `policy:`: `use` or the name of an option.
    """

    def __init__(self, key: str, message: str) -> None:
        super().__init__(f"{key}: {message}")
        self.key = key
        self.message = message


def build(use: str, options: Mapping[str, object]) -> Policy:
    """The policy called `use` with its options. Raises `PolicyError`."""
    policy = _find(use)
    if not (
        isinstance(policy, type) and dataclasses.is_dataclass(policy) and callable(getattr(policy, "decide", None))
    ):
        raise PolicyError("use", f"{use} is no policy: expected a dataclass with a method decide")
    arguments = _checked(policy, options)
    try:
        return cast(Callable[..., Policy], policy)(**arguments)
    except Exception as error:
        raise PolicyError("use", f"{use} does not accept its options: {_said(error)}") from error


def _find(use: str) -> Any:
    if use in BUILTIN:
        return BUILTIN[use]
    installed = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    try:
        if use in installed:
            return installed[use].load()
        if ":" in use:
            return resolve_name(use)
    except (Exception, SystemExit) as error:  # importing runs what the module does, be it to end the program
        raise PolicyError("use", f"{use} cannot be loaded: {_said(error)}") from error
    raise PolicyError("use", f"there is no policy {use}; {_hint(use, [*BUILTIN, *installed])} or module:attribute")


def _checked(policy: type, options: Mapping[str, object]) -> dict[str, object]:
    try:
        hints = get_type_hints(policy, include_extras=True)
    except Exception as error:
        raise PolicyError("use", f"the types of its options cannot be told: {_said(error)}") from error
    fields = {field.name: field for field in dataclasses.fields(policy) if field.init}
    arguments = {}
    for name, value in options.items():
        if name not in fields:
            raise PolicyError(name, f"there is no such option; {_hint(name, fields)}")
        arguments[name] = _value(name, hints[name], value)
    for name, field in fields.items():
        no_default = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if no_default and name not in options:
            raise PolicyError(name, "this option is needed")
    return arguments


def _value(name: str, hint: Any, value: object) -> object:
    """`value` as the type that the field asks for. By JSON's strict rules: a list may fill a tuple, a word an enum."""
    try:
        text = json.dumps(value)
    except TypeError as error:
        raise PolicyError(name, f"expected plain YAML, got {value!r}") from error
    try:
        return TypeAdapter(hint).validate_json(text, strict=True)
    except ValidationError as error:
        raise PolicyError(name, f"{error.errors()[0]['msg']}; got {value!r}") from error
    except Exception as error:  # a type that says nothing to pydantic, or a check of its own
        raise PolicyError(name, f"cannot be read: {_said(error)}") from error


def _said(error: BaseException) -> str:
    """What it is about, for whoever wrote the code: a name alone says little, as does `list index out of range`."""
    words = " ".join(str(error).split())
    return words if isinstance(error, ImportError | ValueError) else f"{type(error).__name__}: {words}"


def _hint(name: str, known: Iterable[str]) -> str:
    names = list(known)
    if not names:
        return "it has none"
    close = get_close_matches(name, names, n=1)
    return f"{f'did you mean {close[0]}? ' if close else ''}known: {', '.join(names)}"
