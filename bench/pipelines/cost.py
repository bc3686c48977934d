"""What pipelines cost each call: `python -m bench.pipelines.cost`, CPU microseconds.

From the tags to the hop, its end, and its due time; without reading the body and without the hashes of its parts, which
are made for the judgement in any case.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

import orjson

from classifiers.api import CallClass, Features
from classifiers.tags import tags_of
from router.pipelines import Pipelines
from router.surfaces import find, read_call

_ROUNDS: Final = 7
_CALLS: Final = 2_000
_TAGS: Final = {
    "x-twolane-pipeline": "3fa29c41-5d1e-4c62-9e0b-2f6d",
    "x-twolane-hop": "internal",
    "x-twolane-deadline-ms": "20000",
}
_HEADERS: Final = {f"x-other-{number}": "value" for number in range(12)}


def _chat() -> list[dict[str, Any]]:
    return [{"role": "user", "content": "Hello, how are you?"}]


def _loop(hops: int) -> list[dict[str, Any]]:
    messages = [{"role": "system", "content": "You work with tools."}, {"role": "user", "content": "Find the bug."}]
    for number in range(hops):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})  # type: ignore[dict-item]
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": f"result {number}"})
    return messages


def _features(messages: Sequence[Mapping[str, Any]], headers: Mapping[str, str]) -> Features:
    body = orjson.dumps({"model": "m", "messages": messages})
    features = read_call(find("POST", "/v1/chat/completions"), body, dict(headers))
    features.recognised_by()
    return features


def cost_us(calls: Sequence[Features]) -> float:
    """Median over some rounds of what one of them costs on average."""
    found = []
    for _ in range(_ROUNDS):
        store = Pipelines()
        at_s = 0.0
        began_ns = time.process_time_ns()
        for number in range(_CALLS):
            features = calls[number % len(calls)]
            at_s += 0.3
            tags = tags_of(features)
            store.believes("10.0.0.1 program", tags)
            hop = store.arrive("10.0.0.1 program", features, CallClass.MIXED, tags, at_s)
            if hop.deadline_s is not None:
                store.due(hop, None, at_s)
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
        found.append((time.process_time_ns() - began_ns) / _CALLS / 1e3)
    return median(found)


def main() -> None:
    loop = [_loop(hops) for hops in range(1, 12)]
    for name, calls in (
        ("a chat of one message", [_features(_chat(), _HEADERS)]),
        ("a loop of tools, untagged", [_features(messages, _HEADERS) for messages in loop]),
        ("a loop of tools, tagged", [_features(messages, {**_HEADERS, **_TAGS}) for messages in loop]),
        ("a history of 24 messages that nobody knows", [_features(_loop(40), _HEADERS)]),
    ):
        print(f"{name:44} {cost_us(calls):6.1f} us")


if __name__ == "__main__":
    main()
