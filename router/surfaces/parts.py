"""Messages and their parts: text, and what is no plain text, such as media, calls of tools, token ids.

Reading holds up everybody else, and a body of a hundred megabytes can have tens of millions of parts. So where there
are more than any conversation has, the first and the newest are read, and the size of the rest is guessed by a few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

MOST_MESSAGES: Final = 4096
"""Half of them from the beginning, half from the end."""
MOST_PARTS: Final = 8192
"""Of all messages together."""
NEWEST_PARTS: Final = 1024
"""Of the newest message at least."""
_LOOKED_AT: Final = 256
"""Of those that are not read: by these their size is guessed."""
_LOOKED_INTO: Final = 8
"""Parts of one of them."""
_HOLDS_TEXT: Final = ("content", "text", "output")

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


_BESIDE_CONTENT = {
    name: place
    for place, name in enumerate(
        ("reasoning_content", "reasoning", "thinking", "tool_calls", "tool_call_id", "function_call", "images")
    )
}
"""Fields of a message that are read, beside role and content, and in which order."""
_BESIDE = frozenset(_BESIDE_CONTENT)


@dataclass(slots=True)
class Contents:
    """What was met in the contents of messages beside their texts."""

    media: int = 0
    tool_results: int = 0
    tool_call_ids: list[str] = field(default_factory=list)
    parts_left: int = MOST_PARTS
    """That may still be read; below 0: some were not."""
    unread: list[list[Any]] = field(default_factory=list)
    """Parts for which nothing was left."""
    unread_chars: int = 0
    """Of what else is not read, about."""

    def take_message(self, message: Mapping[str, Any], texts: list[str]) -> None:
        """Add a message of a chat to `texts`, whichever of the APIs it was written for."""
        content = message.get("content")
        if isinstance(content, str):
            texts.append(content)
        elif content is not None:
            self.take_content(content, texts)
        found = _BESIDE.intersection(message)
        for name in found if len(found) < 2 else sorted(found, key=_BESIDE_CONTENT.__getitem__):
            self._take_beside(name, message[name], texts)

    def _take_beside(self, name: str, value: object, texts: list[str]) -> None:
        if name == "tool_calls":
            if isinstance(value, list):
                self._take_calls(value, texts)
        elif name == "tool_call_id":
            if isinstance(value, str) and value:
                self.tool_call_ids.append(value)
        elif name == "function_call":
            if isinstance(value, dict):
                take_called(value, texts)
        elif name == "images":
            if isinstance(value, list):
                self.media += len(value)
        elif isinstance(value, str):
            texts.append(value)

    def take_content(self, content: object, texts: list[str]) -> None:
        """Add content in any of its shapes: a string, parts, parts in parts."""
        waiting, left = [content], self.parts_left
        while waiting:
            left -= 1
            if left < 0:
                self.unread.append(waiting)
                break
            item = waiting.pop()
            if isinstance(item, str):
                texts.append(item)
            elif isinstance(item, list):
                if len(item) > left:
                    self.unread_chars += chars_of(item, range(left, len(item)))
                waiting += item[:left][::-1]  # the first of them is the next to be taken
            elif isinstance(item, dict):
                waiting.append(self._take_part(item, texts))
        self.parts_left = left

    def _take_part(self, part: Mapping[str, Any], texts: list[str]) -> object:
        """Add the text of one part; returns the content that is nested in it."""
        for name in ("text", "thinking", "refusal"):
            if isinstance(part.get(name), str):
                texts.append(part[name])
        type_ = part.get("type")
        if isinstance(type_, str):
            if type_ in MEDIA:
                self.media += 1
                return text_source(part.get("source"))
            if type_ == "tool_result":
                self.tool_results += 1
                call_id = part.get("tool_use_id")
                if isinstance(call_id, str) and call_id:
                    self.tool_call_ids.append(call_id)
        if "input" in part:
            take_called(part, texts)
        return part.get("content")

    def _take_calls(self, calls: list[Any], texts: list[str]) -> None:
        for call in calls[: max(0, self.parts_left)]:
            if isinstance(call, dict):
                function = call["function"] if "function" in call else call.get("custom")
                if isinstance(function, dict):
                    take_called(function, texts)
        self.parts_left -= len(calls)


def ends_of(items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """The first and the newest of them with their places; all, where they are no more than are read."""
    if len(items) <= MOST_MESSAGES:
        yield from enumerate(items)
    else:
        half = MOST_MESSAGES // 2
        yield from enumerate(items[:half])
        yield from enumerate(items[-half:], len(items) - half)


def between(items: Sequence[Any]) -> range:
    """The places that `ends_of` leaves out."""
    half = MOST_MESSAGES // 2
    return range(half, len(items) - half) if len(items) > MOST_MESSAGES else range(0)


def chars_of(items: Sequence[Any], places: range, depth: int = 3) -> int:
    """About how many characters messages, parts or prompts hold, by a few of them; a token id is worth four."""
    step = len(places) // (_LOOKED_AT if depth == 3 else _LOOKED_INTO) + 1
    chars = 0
    for place in places[::step]:
        item = items[place]
        if isinstance(item, dict):
            item = next((item[name] for name in _HOLDS_TEXT if item.get(name)), None)
        if isinstance(item, str):
            chars += len(item)
        elif isinstance(item, list) and is_one_prompt(item):
            chars += 4 * len(item)
        elif isinstance(item, list) and depth:
            chars += chars_of(item, range(len(item)), depth - 1)
    return chars * step


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
