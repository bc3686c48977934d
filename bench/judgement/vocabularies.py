"""What real tokenizers make of a call: six common vocabularies, and the markers that their chat templates write.

The tokenizers are those of `splintr` (development only). A template's own fixed sentences (a date, "you have access to
functions") are left out: they differ from release to release, and the router learns them from `usage`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import splintr


@dataclass(frozen=True, slots=True)
class Frame:
    """Tokens that a chat template writes around the texts."""

    per_message: int
    per_prompt: int
    """Beginning of the text, and the opening of the answer."""


FITTED: Final[Mapping[str, Frame]] = {
    "llama3": Frame(5, 5),  # <|start_header_id|> role <|end_header_id|> \n\n ... <|eot_id|>
    "qwen3": Frame(5, 3),  # <|im_start|> role \n ... <|im_end|> \n
    "gemma3": Frame(5, 4),  # <start_of_turn> role \n ... <end_of_turn> \n
    "mistral_v3": Frame(2, 1),  # [INST] ... [/INST], or ... </s>
    "deepseek_v3": Frame(1, 2),  # a marker for the role
    "gpt-oss": Frame(4, 2),  # <|start|> role <|message|> ... <|end|>
}
"""The estimate is fitted to the median of these."""
OTHERS: Final[Mapping[str, Frame]] = {
    "glm4": Frame(2, 3),
    "kimi_k2": Frame(4, 3),
    "llama2": Frame(4, 1),  # 32,000 pieces: an older kind, which cuts finer
}
"""Vocabularies that it has not seen."""


@cache
def tokenizer(name: str) -> Any:
    return splintr.Tokenizer.from_pretrained(name)


def count(name: str, text: str) -> int:
    """Tokens of `text` alone; what looks like a special token in it is ordinary text."""
    return len(tokenizer(name).encode_ordinary(text))


def texts_of(body: Mapping[str, Any]) -> list[str]:
    """What an engine tokenizes of this request, without the template's own words. Not by the reader under test."""
    texts = [text for name in ("prompt", "suffix", "input") for text in _texts(body.get(name))]
    for message in body.get("messages", ()):
        texts += _texts(message.get("content"))
        for call in message.get("tool_calls") or ():
            texts += [call["function"]["name"], call["function"]["arguments"]]
    tools = body.get("tools") or body.get("functions") or ()
    return texts + [json.dumps(tool, ensure_ascii=False) for tool in tools]  # with blanks, as templates write it


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for item in content:
            yield from _texts(item["text"] if isinstance(item, dict) and "text" in item else item)


def prompt_tokens(name: str, body: Mapping[str, Any]) -> int:
    """What an engine with this vocabulary would report as `usage.prompt_tokens`."""
    tokens = sum(count(name, text) for text in texts_of(body))
    if "messages" not in body:
        return tokens + 1
    frame = FITTED.get(name) or OTHERS[name]
    return tokens + frame.per_message * len(body["messages"]) + frame.per_prompt
