"""What pipelines cost each call: `python -m bench.pipelines.cost`, CPU microseconds.

From the tags to the hop, its end, and its due time; without reading the body and without the hashes of its parts, which
are made for the judgement in any case. The least of some rounds, since other programs only add to it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from classifiers.api import CallClass, Features
from classifiers.tags import tags_of
from router.pipelines import Pipelines
from router.surfaces import find, read_call

_ROUNDS: Final = 15
_CALLS: Final = 2_000
_TAGS: Final = {
    "x-twolane-pipeline": "3fa29c41-5d1e-4c62-9e0b-2f6d",
    "x-twolane-hop": "internal",
    "x-twolane-deadline-ms": "20000",
}
_HEADERS: Final = {f"x-other-{number}": "value" for number in range(12)}


def _asked(system: str, text: str) -> list[dict[str, Any]]:
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]


def _loop(hops: int, task: str = "Find the bug.") -> list[dict[str, Any]]:
    messages = _asked("You work with tools.", task)
    for number in range(hops):
        call = {"id": f"{task} {number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"{task} {number}", "content": f"result {number}"})
    return messages


def _features(messages: Sequence[Mapping[str, Any]], headers: Mapping[str, str]) -> Features:
    body = orjson.dumps({"model": "m", "messages": messages})
    features = read_call(find("POST", "/v1/chat/completions"), body, dict(headers))
    features.recognised_by()
    return features


def cost_us(calls: Sequence[Features], call_class: CallClass, count: int = _CALLS) -> float:
    """Of one of so many calls on average."""
    found = []
    for _ in range(_ROUNDS):
        store = Pipelines()
        at_s = 0.0
        began_ns = time.process_time_ns()
        for number in range(count):
            at_s += 0.3
            _take(store, calls[number % len(calls)], call_class, at_s)
        found.append((time.process_time_ns() - began_ns) / count / 1e3)
    return min(found)


def _take(store: Pipelines, features: Features, call_class: CallClass, at_s: float) -> None:
    tags = tags_of(features)
    store.believes("10.0.0.1 program", tags)
    hop = store.arrive("10.0.0.1 program", features, call_class, tags, at_s)
    if hop.deadline_s is not None:
        store.due(hop, at_s)
    hop.placed("desk", "m", at_s)
    store.ended(
        hop,
        at_s + 0.2,
        complete=True,
        first_s=at_s + 0.1,
        prompt_tokens=100,
        cached_tokens=10,
        output_tokens=20,
    )


def main() -> None:
    chats = [_features(_asked("You are kind.", f"Hello {number}."), _HEADERS) for number in range(100)]
    rows = [_features(_asked("Sort it.", f"Row {number} {'word ' * 99}"), _HEADERS) for number in range(100)]
    loop = [_features(_loop(hops), _HEADERS) for hops in range(1, 12)]
    tagged = [_features(_loop(hops), {**_HEADERS, **_TAGS}) for hops in range(1, 12)]
    unknown = [_features(_loop(12, f"Task {number}."), _HEADERS) for number in range(300)]
    for name, us in (
        ("a chat of one message", cost_us(chats, CallClass.TTFT)),
        ("a row of a job", cost_us(rows, CallClass.THROUGHPUT)),
        ("a loop of tools, untagged", cost_us(loop, CallClass.MIXED)),
        ("a loop of tools, tagged, with a deadline", cost_us(tagged, CallClass.MIXED)),
        ("a history of 24 messages that nobody knows", cost_us(unknown, CallClass.MIXED, len(unknown))),
    ):
        print(f"{name:44} {us:6.1f} us")


if __name__ == "__main__":
    main()
