"""Parts of messages and prompts that are no plain text: media, calls of tools, token ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

MEDIA = frozenset(
    {
        "audio",
        "audio_url",
        "computer_screenshot",
        "document",
        "file",
        "image",
        "image_embeds",
        "image_url",
        "input_audio",
        "input_file",
        "input_image",
        "input_video",
        "video",
        "video_url",
    }
)


def is_one_prompt(items: list[Any]) -> bool:
    """Whether an array is token ids. (llama.cpp allows text between them; it will not stand at both ends.)"""
    return bool(items) and (isinstance(items[0], int) or isinstance(items[-1], int))


def text_source(source: object) -> object:
    """What a document holds that is text: a string, or parts; None where it is encoded."""
    match source:
        case {"type": "text", "data": text} | {"type": "content", "content": text}:
            return text
        case _:
            return None


def take_called(function: Mapping[str, Any], texts: list[str]) -> None:
    """Add name and arguments of a call that the model made earlier."""
    for name in ("name", "arguments", "input"):
        if name in function:
            value = function[name]
            if isinstance(value, str):
                texts.append(value)
            elif isinstance(value, (dict, list)):
                texts.append(written(value))


def written(value: object) -> str:
    """As JSON; empty where it is nested deeper than any server reads."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return ""
