"""Targets: what operators write, and what servers say of themselves."""

from __future__ import annotations

from typing import Any, Final

from classifiers.api import Features
from classifiers.conditions import ConditionError, compile_condition
from router.engines.prometheus_text import samples
from router.settings.load import Problem, SettingsError, parse
from router.settings.scalars import VariableError, substitute
from router.settings.units import parse_duration, parse_size
from tests.fuzz.pieces import Source

_ENV: Final = {"A": "x: # {", "B": "", "SECRET": "sk-0123456789"}
CALLS: Final = (
    Features(surface="openai_chat"),
    Features(
        surface="openai_chat",
        model="qwen3-4b[a]",
        stream=True,
        prompt_tokens=7000,
        max_tokens=2**70,
        priority=-3,
        tools=2,
        headers={"x-team": "nightly\n", "user-agent": "curl/8.5.0"},
    ),
)


def check_settings(text: str) -> None:
    """Settings, or problems that each fit into a line, with their place, and without a secret."""
    found: tuple[Problem, ...] | None = None
    try:
        parse(text, "f.yaml", _ENV)
    except SettingsError as error:
        found = error.problems
    assert found != ()
    for problem in found or ():
        assert problem.message
        assert "\n" not in str(problem)
        assert _ENV["SECRET"] not in str(problem) or _ENV["SECRET"] in text
        assert 0 <= problem.line <= text.count("\n") + text.count("\r") + len(text.splitlines()) + 2


def check_scalars(text: str) -> None:
    """Variables, durations and sizes are read, or refused in their own words."""
    try:
        substitute(text, _ENV)
    except VariableError as error:
        assert str(error)
    for read in (parse_duration, parse_size):
        try:
            assert read(text) >= 0
        except ValueError as error:
            assert "expected" in str(error)


def check_condition(wanted: dict[str, Any]) -> None:
    """A condition is compiled and asked, or refused with its key."""
    try:
        condition = compile_condition(wanted)
    except ConditionError as error:
        assert error.message
        return
    assert isinstance(str(condition), str)
    for call in CALLS:
        assert bool(condition(call)) == (condition.unmet(call) == "")


def check_scrape(text: bytes, name: str) -> None:
    """Numbers are found or not; nothing is raised."""
    for sample in samples(text, name):
        assert type(sample.value) is float
        assert all(type(key) is str and type(value) is str for key, value in sample.labels.items())


def fuzz_settings(data: bytes) -> None:
    check_settings(data.decode("utf-8", "replace"))


def fuzz_scalars(data: bytes) -> None:
    check_scalars(data.decode("utf-8", "replace"))


def fuzz_conditions(data: bytes) -> None:
    """Lines of a key and a pattern."""
    lines = [line.partition(": ") for line in data.decode("utf-8", "replace").split("\n")]
    check_condition({key: value for key, _, value in lines})
    check_condition({"header": {key: value for key, _, value in lines}, "model": [value for _, _, value in lines]})


def fuzz_scrapes(data: bytes) -> None:
    source = Source(data)
    name = source.one_of(["vllm:num_requests_running", "a"])
    check_scrape(source.rest(), name)
