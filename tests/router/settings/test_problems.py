"""How a problem reads."""

from __future__ import annotations

import pytest

from router.settings.problems import KeyErrors, Path, Problem, SettingsError, dotted


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("listen",), "listen"),
        (("backends", 2, "url"), "backends[2].url"),
        (("models", "qwen3:4b", "desk"), 'models."qwen3:4b".desk'),
        (("header", "x-team"), "header.x-team"),
        (("a b",), '"a b"'),
        (("a\nb\x1b[31m",), '"a?b?[31m"'),
        (("x" * 100 + "!",), f'"{"x" * 60}..."'),
    ],
)
def test_a_path_reads_as_in_a_sentence(path: Path, text: str) -> None:
    assert dotted(path) == text


def test_a_problem_leaves_out_what_it_does_not_know() -> None:
    assert str(Problem(source="f", line=2, column=3, key_path="a.b", message="no")) == "f:2:3: a.b: no"
    assert str(Problem(source="f", line=2, column=3, message="no")) == "f:2:3: no"
    assert str(Problem(source="f", message="no")) == "f: no"


def test_problems_come_in_the_order_of_the_file() -> None:
    places = [(3, 1), (1, 9), (1, 2)]
    error = SettingsError(Problem(source="f", line=line, column=column, message="no") for line, column in places)
    assert str(error).splitlines() == ["f:1:2: no", "f:1:9: no", "f:3:1: no"]


def test_errors_of_keys_name_them() -> None:
    assert str(KeyErrors([(("a", 1), "no"), (("b",), "never")])) == "a[1]: no; b: never"
