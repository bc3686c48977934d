"""What is asked of sockets and certificates has to hold on uvloop, which serves, and on plain asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, LoopFactory]:
    plain: dict[str, LoopFactory] = {"asyncio": asyncio.new_event_loop}
    return plain | {"uvloop": uvloop.new_event_loop} if item.path.stem == "test_ports" else plain
