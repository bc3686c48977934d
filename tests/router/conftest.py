"""Sockets and certificates on uvloop, which serves, and on plain asyncio; logs that are set up in one test only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping

import pytest
import structlog
import uvloop

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, LoopFactory]:
    plain: dict[str, LoopFactory] = {"asyncio": asyncio.new_event_loop}
    return plain | {"uvloop": uvloop.new_event_loop} if item.path.stem == "test_ports" else plain


@pytest.fixture
def logs_again() -> Iterator[None]:
    """Logs are set up in one test only, and the handlers of pytest are not closed by that."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)
