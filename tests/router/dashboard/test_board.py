"""What is put together for a page, and that nothing of it is left when the page is gone."""

from __future__ import annotations

from typing import Any

import pytest

from router.observe.steps import Steps
from tests.router.running import router_for
from tests.scripted import ScriptedBackend


def fails() -> Steps[dict[str, Any]]:
    raise RuntimeError("a mistake of ours")


async def test_alternatives_are_looked_at_only_while_a_page_is_open_also_where_it_could_not_be_filled() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        app = router.app

        def looks() -> bool:
            return app.line.witness is not None

        async with app.board.page() as page:
            assert looks()
            assert (await page.frame() or b"").startswith(b"event: all\n")
        assert not looks()
        app.board._goodput = fails
        with pytest.raises(RuntimeError):
            async with app.board.page():
                pass
        assert not looks()
