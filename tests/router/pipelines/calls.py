"""Calls as tests of pipelines send them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from classifiers.api import CallClass, Features
from classifiers.tags import tags_of
from router.pipelines import Hop, Pipelines
from router.pipelines.hop import Pipeline
from router.surfaces import find, read_call

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
SYSTEM = {"role": "system", "content": "You work with tools."}
CLIENT = "10.0.0.1 OpenAI/Python"


def features_of(
    messages: Sequence[Mapping[str, Any]], headers: Mapping[str, str] | None = None, **more: Any
) -> Features:
    body = {"model": "m", "messages": list(messages), **more}
    return read_call(find("POST", "/v1/chat/completions"), orjson.dumps(body), dict(headers or {}))


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def calls_tool(id_: str) -> dict[str, Any]:
    call = {"id": id_, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def result(id_: str, text: str = "found") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": text}


def task_of(hop: Hop) -> Pipeline:
    """That it belongs to."""
    assert hop.pipeline is not None
    return hop.pipeline


class Stage:
    """A store, and a clock that a test moves."""

    def __init__(self, **more: Any) -> None:
        self.store = Pipelines(key=b"test", **more)
        self.now_s = 1_000.0

    def arrive(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        client: str = CLIENT,
        headers: Mapping[str, str] | None = None,
        call_class: CallClass = CallClass.MIXED,
        after_s: float = 0.1,
        recognise: bool = True,
        **more: Any,
    ) -> Hop:
        self.now_s += after_s
        features = features_of(messages, headers, **more)
        return self.store.arrive(client, features, call_class, tags_of(features), self.now_s, recognise=recognise)

    def end(self, hop: Hop, *, takes_s: float = 1.0, complete: bool = True, ids: Sequence[str] = ()) -> None:
        hop.placed("desk", "m", self.now_s)
        self.now_s += takes_s
        self.store.ended(
            hop,
            self.now_s,
            complete=complete,
            first_s=self.now_s - takes_s / 2,
            prompt_tokens=100,
            cached_tokens=50,
            output_tokens=20,
            ids=ids,
        )

    def whole(self, messages: Sequence[Mapping[str, Any]], *, takes_s: float = 1.0, **more: Any) -> Hop:
        hop = self.arrive(messages, **more)
        self.end(hop, takes_s=takes_s)
        return hop
