"""SECURITY.md tells the truth where a machine can check it: tests that it names exist, dependencies are all there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_each_test_that_it_names_exists() -> None:
    named = set(re.findall(r"`(tests/[^`]+)`", PAGE))
    assert len(named) > 10
    assert {path for path in named if not (ROOT / path).exists()} == set()


@pytest.mark.parametrize(
    "row", [line for line in PAGE.partition("## What was decided")[0].splitlines() if "| `" in line]
)
def test_each_promise_is_shown_by_a_test(row: str) -> None:
    assert re.search(r"\| `tests/", row)


def test_each_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {re.split(r"[<>=; \[]", requirement)[0].lower() for requirement in project["dependencies"]}
    listed = set(re.findall(r"^\| ([a-z-]+) \|", PAGE.partition("## Dependencies")[2], re.MULTILINE)) - {"package"}
    assert listed == wanted


def test_every_key_that_it_names_is_one_of_the_settings() -> None:
    settings = (ROOT / "config" / "twolane.yaml").read_text(encoding="utf-8")
    for key in ("keys", "admin_key", "insecure", "socket_mode", "trusted_proxies", "origins", "ca_file", "tls"):
        assert f"`{key}" in PAGE or f".{key}`" in PAGE
        assert re.search(rf"^#?\s*(- )?{key}:", settings, re.MULTILINE)
