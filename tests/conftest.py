"""What all tests share."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

from bench import model_maker
from bench.model_maker import ModelFiles

# A busy machine is no reason for a property to fail; CI draws the same examples each time.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def model() -> ModelFiles:
    """The random-weight model that the real servers of the tests speak with."""
    return model_maker.cached("tiny")


@pytest.fixture(autouse=True)
def _no_settings_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies and keys of the developer's shell must not reach a client under test."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith(("OPENAI_", "ANTHROPIC_", "OLLAMA_", "LANGCHAIN_")):
            monkeypatch.delenv(name)
