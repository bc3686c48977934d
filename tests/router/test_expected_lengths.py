"""A running router expects of a client's next answer what its last ones were, and says so in the decision log."""

from __future__ import annotations

from pathlib import Path

import orjson

from tests.cases.apis import CHAT
from tests.router.running import router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

CALLS = 6


async def test_answers_teach_what_to_expect(tmp_path: Path) -> None:
    async def answer(request: Received, peer: Peer) -> None:
        usage = {"prompt_tokens": 300, "completion_tokens": 3000, "total_tokens": 3300}
        message = {"role": "assistant", "content": "long"}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        await peer.json({"object": "chat.completion", "choices": choices, "usage": usage})

    file = tmp_path / "d.jsonl"
    text = "Write a report about the river that runs through our town, and name the fish that live in it. " * 8
    async with ScriptedBackend(answer) as backend, router_for(backend, decisions={"file": str(file)}) as router:
        for _ in range(CALLS + 1):
            await router.post(CHAT.path, {"model": "m", "messages": [{"role": "user", "content": text}]})
        await eventually(lambda: file.exists() and len(file.read_bytes().splitlines()) == CALLS + 1)
    lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    assert [line["expected"]["seen"] for line in lines] == [*range(CALLS + 1)]
    assert lines[0]["expected"]["p50_tokens"] < 1000 < 2000 < lines[-1]["expected"]["p50_tokens"]
    assert lines[-1]["expected"]["p50_tokens"] <= lines[-1]["expected"]["p90_tokens"]
