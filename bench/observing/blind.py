"""`python -m bench.observing.blind FILE`: a router that keeps no account of its calls, for comparison.

Nothing is told of ended calls: no metrics, goodput, dashboard, audit, logs, traces or decision log. Times of tokens are
not kept either.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvloop

import router.watch
from router.app import App
from router.garbage import collect_rarely
from router.observe.facts import CallFacts, JudgedCall
from router.settings.load import load


class BlindApp(App):
    def _call_ended(self, facts: CallFacts, judged: JudgedCall | None) -> None:
        pass


class NoGaps:
    """In place of `router.observe.gaps.Gaps`."""

    __slots__ = ()

    def came(self, at_s: list[float]) -> None:
        pass

    def flow(self) -> None:
        return None


async def serve(path: Path) -> None:
    setattr(router.watch, "Gaps", NoGaps)  # noqa: B010 - mypy would not let a class be replaced by another one
    loaded = load(path)
    app = BlindApp(loaded.settings, loaded.path, loaded.digest)
    app.heed_signals()
    await app.start()
    collect_rarely()
    await app.run()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(Path(sys.argv[1])))
