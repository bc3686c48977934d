"""What an ended call tells of its judgement never fails the call, and what is lost of it is counted."""

from __future__ import annotations

from pathlib import Path

import orjson

from router.observe.decisions import DecisionLog
from router.observe.gauges import Gauges
from router.observe.judgements import Judgements
from router.observe.metrics import Metrics
from tests.router.dashboard.calls import ended, judged


def _gauges() -> Gauges:
    raise AssertionError("nobody scrapes")


async def test_a_line_that_cannot_be_put_together_is_counted_and_those_after_it_are_written(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    judgements = Judgements(Metrics(_gauges))
    judgements.write_to(
        DecisionLog(
            file,
            max_bytes=10**6,
            keep=1,
            text_hashes=False,
            vector="v",
            numbers=lambda numbers: {},
            wall_ns=lambda: 10**18,
        )
    )
    for status in (200, 10**30, 200):
        judgements.ended(ended(status=status), judged(), 10**18)
    assert judgements.dropped == 1
    judgements.write_to(None)
    await judgements.retire()
    assert judgements.dropped == 1
    assert [orjson.loads(line)["status"] for line in file.read_bytes().splitlines()] == [200, 200]
