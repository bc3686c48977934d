"""Short ways to read settings in tests."""

from __future__ import annotations

import textwrap

import pytest

from router.settings.load import Problem, SettingsError, parse
from router.settings.model import Settings

BACKENDS = "backends: [{name: desk, url: 'http://127.0.0.1:9000'}]\n"
"""What every file needs; one line, so that tests can count."""


def settings(text: str, **env: str) -> Settings:
    """The settings in `text`, to which a backend called desk is added in front."""
    return parse(BACKENDS + textwrap.dedent(text), "f.yaml", env)


def whole(text: str, **env: str) -> Settings:
    return parse(text, "f.yaml", env)


def problems(text: str, **env: str) -> tuple[Problem, ...]:
    """What is wrong with a whole file."""
    with pytest.raises(SettingsError) as caught:
        parse(text, "f.yaml", env)
    return caught.value.problems


def only(text: str, **env: str) -> str:
    """The one problem of a file that begins with a good backend, as text."""
    found = problems(BACKENDS + textwrap.dedent(text), **env)
    assert len(found) == 1, [str(problem) for problem in found]
    return str(found[0])
