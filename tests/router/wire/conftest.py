"""Server and upstream client run on uvloop and have to run on plain asyncio as well: their tests run on both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

LoopFactory = Callable[[], asyncio.AbstractEventLoop]

_ON_BOTH = {"test_dial", "test_server", "test_upstream", "test_upstream_relay", "test_upstream_reuse"}


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, LoopFactory]:
    plain: dict[str, LoopFactory] = {"asyncio": asyncio.new_event_loop}
    return plain | {"uvloop": uvloop.new_event_loop} if item.path.stem in _ON_BOTH else plain
