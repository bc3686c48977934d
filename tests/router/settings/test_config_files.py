"""The shipped settings files: each loads, and the full one shows every key with its true default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from classifiers.api import CallClass
from policies.api import Lane
from router.settings.document import read
from router.settings.load import load
from router.settings.model import Settings
from router.settings.outline import every_key, sections
from router.settings.security import ClientKey
from tests.certificates import Authority

CONFIG = Path(__file__).parents[3] / "config"
FULL = CONFIG / "twolane.yaml"


EXAMPLE = re.compile(r"^(\w+): (?:null|\[\])[^\n]*\n((?:#(?:  |  - )\s*\S.*\n)+)", re.MULTILINE)
"""A key whose default is nothing, and below it, as comments, what could stand there."""


def with_examples() -> str:
    """The full file with these comments taken for settings."""
    text = FULL.read_text(encoding="utf-8")
    shown = EXAMPLE.sub(lambda match: f"{match[1]}:\n{match[2].replace('#  ', '  ')}", text)
    assert shown != text
    return shown


def full() -> Any:
    return read(with_examples(), FULL.name, {"EDITOR_KEY": "k"}).value


def paths(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*place, key)
            yield from paths(inner, (*place, key))
    elif isinstance(value, list):
        for item in value:
            yield from paths(item, (*place, "*"))


@pytest.mark.parametrize("path", sorted(CONFIG.glob("*.yaml")), ids=lambda path: path.name)
def test_every_shipped_file_loads_without_any_variable(path: Path) -> None:
    assert load(path, {}).settings.backends


def test_the_stories_have_their_files() -> None:
    assert {path.name for path in CONFIG.glob("*.yaml")} == {
        "twolane.yaml",
        "minimal.yaml",
        "workstation-and-gpu.yaml",
        "agents.yaml",
        "one-server.yaml",
    }


def test_the_full_file_has_every_key() -> None:
    assert set(every_key()) - set(paths(full())) == set()


def test_the_examples_in_the_full_file_work_and_show_the_defaults(tmp_path: Path) -> None:
    pair = Authority(tmp_path).pair("localhost")
    (tmp_path / "nightly.key").write_text("k2\n", encoding="utf-8")
    path = tmp_path / "twolane.yaml"
    path.write_text(with_examples(), encoding="utf-8")
    found = load(path, {"EDITOR_KEY": "k1"}).settings
    assert found.tls is not None
    assert found.tls.cert.path == pair.cert
    first, second = found.keys
    assert first == ClientKey(name="editor", key=SecretStr("k1"))
    assert (second.secret, second.classes) == ("k2", (CallClass.THROUGHPUT,))


def test_what_the_full_file_shows_are_the_defaults() -> None:
    shown = load(FULL, {}).settings
    bare = Settings(backends=shown.backends)
    for key in Settings.model_fields.keys() - {"backends", "models", "classify"}:
        assert getattr(shown, key) == getattr(bare, key), key
    assert shown.classify.builtin == bare.classify.builtin
    assert shown.classify.default == bare.classify.default


def test_the_full_file_shows_the_defaults_of_a_backend() -> None:
    first = load(FULL, {}).settings.backends[0]
    for key, field in sections()["backends", "*"].items():
        if key not in ("name", "url", "lane"):
            assert getattr(first, key) == field.default, key


def test_every_line_of_the_full_file_with_a_default_says_what_it_is() -> None:
    bare = [
        line
        for line in FULL.read_text(encoding="utf-8").splitlines()
        if line.strip()
        and not line.lstrip().startswith(("#", "-", "slo:", "lanes:", "keep_free:", "max_wait:", "mixed:"))
        if "#" not in line and not line.endswith(":") and "chat:" not in line
    ]
    assert bare == []


def test_lines_of_shipped_files_fit_a_screen() -> None:
    long = [line for path in CONFIG.glob("*.yaml") for line in path.read_text("utf-8").splitlines() if len(line) > 130]
    assert long == []


def test_the_workstation_keeps_a_slot_for_the_chat() -> None:
    found = load(CONFIG / "workstation-and-gpu.yaml", {}).settings
    assert found.models["chat"].keys() == {"desk", "rack"}
    assert found.classes.of(CallClass.THROUGHPUT).keep_free[Lane.LATENCY] == 1
    assert found.classes.ttft.slo.ttft == 0.5


def test_agents_keep_the_conversation_together() -> None:
    found = load(CONFIG / "agents.yaml", {}).settings
    assert found.policy.use == "prefix_affinity"
    assert found.classes.ttft.slo.tpot == 0.05


def test_one_server_takes_its_url_from_outside() -> None:
    path = CONFIG / "one-server.yaml"
    assert load(path, {"TWOLANE_BACKEND": "http://h:1"}).settings.backends[0].url == "http://h:1"
    assert load(path, {}).settings.backends[0].url == "http://127.0.0.1:11434"
