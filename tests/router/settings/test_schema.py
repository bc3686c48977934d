"""The JSON Schema accepts what the loader accepts and refuses what an editor can see to be wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from router.settings.document import read
from router.settings.load import SettingsError, parse
from router.settings.schema import schema

ROOT = Path(__file__).parents[3]
SCHEMA = schema()
VALIDATOR = Draft202012Validator(SCHEMA)
BACKENDS: list[dict[str, Any]] = [{"name": "desk", "url": "http://127.0.0.1:9000"}]


def accepted(rest: dict[str, Any]) -> bool:
    return bool(VALIDATOR.is_valid({"backends": BACKENDS, **rest}))


def loads(rest: dict[str, Any], env: dict[str, str]) -> bool:
    try:
        parse(yaml.safe_dump({"backends": BACKENDS, **rest}), "f", env)
    except SettingsError:
        return False
    return True


def test_it_is_a_schema_with_title_and_id() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"].endswith("2020-12/schema")
    assert SCHEMA["$id"]
    assert SCHEMA["title"] == "Twolane settings"


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda path: path.name)
def test_every_shipped_file_is_valid(path: Path) -> None:
    value = read(path.read_text(encoding="utf-8"), path.name, {}).value
    assert [error.message for error in VALIDATOR.iter_errors(value)] == []


GOOD: list[dict[str, Any]] = [
    {},
    {"policy": "least_loaded"},
    {"policy": "acme.policies:Best"},
    {"policy": {"use": "prefix_affinity", "max_load_gap": 0.25}},
    {"policy": {"safety": "${GAP}"}},
    {"admin": None},
    {"listen": "[::1]:80", "shutdown_grace": "0s", "expose": "none"},
    {"classes": {"ttft": {"lanes": "any"}, "mixed": {"lanes": "latency"}, "throughput": {"lanes": ["throughput"]}}},
    {"classes": {"mixed": {"slo": {"complete": None, "ttft": "1.5s"}, "keep_free": {"latency": 0}}}},
    {"classify": {"default": "batch", "rules": [{"if": {}, "then": "agent"}]}},
    {
        "classify": {
            "rules": [
                {"if": {"header": {"x-a": "b*", "x-b": True, "x-c": ["d", "e"]}, "stream": False}, "then": "ttft"},
                {"if": {"tools": True, "media": ">0", "turns": 3, "prompt_tokens": "100..500"}, "then": "bulk"},
                {"if": {"model": ["qwen*", "llama-3?"], "prompts": "!= 1", "max_tokens": "<= 5"}, "then": "ttft"},
            ]
        }
    },
    {"models": {"chat": {"desk": "q"}, "empty": {}}, "passthrough": "desk"},
    {"headers": {"class": ["X-Lane"], "session": []}},
    {"line": {"max_waiting": "${N}", "ageing": "${T:-5s}"}, "log": {"calls": "${CALLS:-false}", "level": "${L}"}},
    {"listen": "${H}:${P}", "expose": "${E:-full}", "limits": {"max_body": "${B}"}, "passthrough": "${X}"},
    {"backends": [{"name": "${X}", "url": "${U}", "lane": "${LANE}", "engine": "${E:-vllm}", "weight": "${W}"}]},
    {"keys": [{"name": "a", "key": "k", "classes": ["batch"], "lanes": "latency", "parallel": 1}]},
    {"keys": [{"name": "a", "key": "${X}", "classes": "any", "calls_per_minute": "${N}", "tokens_per_minute": None}]},
    {"listen": "unix:/run/a.sock", "admin": "unix:/run/b.sock", "socket_mode": "600", "admin_key": "k"},
    {"classify": {"model": "off", "shadow": "builtin", "min_confidence": 0.9}, "decisions": {"file": None}},
    {"classify": {"model": "builtin", "shadow": None, "min_confidence": "${W}"}, "decisions": {"file": "d.jsonl"}},
    {"decisions": {"max_size": "1MiB", "keep": 0, "text_hashes": "${CALLS:-true}"}},
    {"insecure": True, "socket_mode": 666, "cors": {"origins": ["*", "app://obsidian.md"]}},
    {"trusted_proxies": ["10.0.0.0/8", "unix", "${H}"], "cors": {"origins": []}, "tls": None},
    {"backends": [{"name": "a", "url": "unix:/run/a.sock"}]},
    {"backends": [{"name": "a", "url": "https://h", "insecure_skip_verify": True, "ca_file": None}]},
    {"backends": [{"name": "a", "url": "https://h/v1", "lane": None, "weight": 2, "models": ["m"], "api_key": "k"}]},
]
ENV = {
    "N": "5", "T": "1s", "L": "debug", "H": "127.0.0.1", "P": "80", "B": "1MiB", "X": "desk", "U": "http://h:1",
    "LANE": "latency", "W": "0.5", "GAP": "0.5",
}  # fmt: skip


@pytest.mark.parametrize("rest", GOOD, ids=str)
def test_what_the_loader_accepts_is_valid(rest: dict[str, Any]) -> None:
    assert accepted(rest)
    assert loads(rest, ENV) or "acme" in str(rest)  # only the schema takes an unknown package on trust


BAD: list[dict[str, Any]] = [
    {"backends": []},
    {"backends": "http://h:1"},
    {"backends": [{"name": "a"}]},
    {"backends": [{"name": "a", "url": "h:1"}]},
    {"backends": [{"name": "a", "url": "http://u:p@h:1"}]},
    {"backends": [{"name": "a", "url": "http://h:1/llm"}]},
    {"backends": [{"name": "a b", "url": "http://h:1"}]},
    {"backends": [{"name": "a", "url": "http://h:1", "slots": 2}]},
    {"backends": [{"name": "a", "url": "http://h:1", "max_inflight": 0}]},
    {"backends": [{"name": "a", "url": "http://h:1", "engine": "llama"}]},
    {"backends": [{"name": "a", "url": "http://h:1", "weight": 0}]},
    {"backends": [{"name": "a", "url": "http://h:1", "api_key": 123}]},
    {"backends": [{"name": "a", "url": "unix:run/a"}]},
    {"backends": [{"name": "a", "url": "https://h", "insecure_skip_verify": "yes"}]},
    {"keys": [{"key": "k"}]},
    {"keys": [{"name": "a", "key": 5}]},
    {"keys": [{"name": "a", "key": "k", "classes": []}]},
    {"keys": [{"name": "a", "key": "k", "lanes": ["fast"]}]},
    {"keys": [{"name": "a", "key": "k", "parallel": 0}]},
    {"keys": "k"},
    {"listen": "unix:a"},
    {"socket_mode": "rw"},
    {"socket_mode": 1000},
    {"cors": {"origins": ["http://h/path"]}},
    {"cors": {"origins": "*"}},
    {"tls": {"cert": "c"}},
    {"trusted_proxies": "unix"},
    {"lisen": "127.0.0.1:1"},
    {"listen": 8080},
    {"listen": None},
    {"listen": "8080"},
    {"line": {"ageing": 30}},
    {"line": {"ageing": "30"}},
    {"line": {"max_wait": "30s"}},
    {"line": {"max_waiting": "many"}},
    {"line": None},
    {"limits": {"max_body": 5}},
    {"log": "off"},
    {"log": {"calls": "yes"}},
    {"log": {"level": "warn"}},
    {"policy": {"use": "least_loaded", "max_load_gap": 1}},
    {"policy": {"max_gap": 1}},
    {"policy": {"use": 5}},
    {"policy": None},
    {"classes": {"interactive": {}}},
    {"classes": {"ttft": {"lanes": []}}},
    {"classes": {"ttft": {"lanes": ["any"]}}},
    {"classes": {"ttft": {"lanes": ["latency", "latency"]}}},
    {"classes": {"ttft": {"keep_free": {"fast": 1}}}},
    {"classes": {"ttft": {"slo": {"first": "1s"}}}},
    {"classify": {"default": "fast"}},
    {"classify": {"model": None}},
    {"classify": {"model": ["builtin"]}},
    {"classify": {"min_confidence": 2}},
    {"classify": {"shadow": ""}},
    {"decisions": {"file": ""}},
    {"decisions": {"max_size": 1000}},
    {"decisions": {"keep": -1}},
    {"classify": {"rules": [{"if": {}}]}},
    {"classify": {"rules": [{"if": {"strem": True}, "then": "ttft"}]}},
    {"classify": {"rules": [{"if": {"stream": 1}, "then": "ttft"}]}},
    {"classify": {"rules": [{"if": {"turns": "many"}, "then": "ttft"}]}},
    {"classify": {"rules": [{"if": {"model": []}, "then": "ttft"}]}},
    {"models": {"chat": "q"}},
    {"models": {"chat": {"desk": 5}}},
    {"models": {"chat": {"a b": "q"}}},
    {"headers": {"class": ["a b"]}},
    {"headers": {"class": "a"}},
]


@pytest.mark.parametrize("rest", BAD, ids=str)
def test_what_an_editor_can_see_to_be_wrong_is_invalid(rest: dict[str, Any]) -> None:
    assert not accepted(rest)
    assert not loads(rest, {})


def subschemas(node: Any) -> Any:
    if isinstance(node, dict):
        yield node
        for inner in node.values():
            yield from subschemas(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from subschemas(inner)


def test_every_key_has_a_description_and_defaults_read_as_in_a_file() -> None:
    for owner in [SCHEMA, *SCHEMA["$defs"].values()]:
        for key, field in owner.get("properties", {}).items():
            target = SCHEMA["$defs"].get(field.get("$ref", "").rpartition("/")[2], {})
            assert field.get("description") or target.get("description"), key
    for node in subschemas(SCHEMA):
        default = node.get("default") if isinstance(node.get("default"), dict) is False else None
        if default is not None and "anyOf" in node:
            assert Draft202012Validator({**node, "$defs": SCHEMA["$defs"]}).is_valid(default), node


def test_defaults_that_differ_from_class_to_class_are_shown_with_the_class_only() -> None:
    assert "default" not in SCHEMA["$defs"]["ClassSettings"]["properties"]["max_wait"]
    assert SCHEMA["$defs"]["Classes"]["properties"]["throughput"]["default"]["max_wait"] == "10m"
