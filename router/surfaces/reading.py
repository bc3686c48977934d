"""Reading a call from its body: what the APIs have in common.

Bodies are read leniently. What only one server in the world would take passes; an error is raised for what none could
accept. Text is counted as tokens, token ids as themselves, and everything that is encoded (images, audio, files)
not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from classifiers.api import Features
from classifiers.blocks import cut, in_order
from classifiers.estimate import estimate_repeated, estimate_tokens
from classifiers.marks import KEPT_MESSAGES, Message, marks_of
from classifiers.shape import fields_of, shape_of
from router.errors import BadRequest
from router.surfaces.naming import session_of
from router.surfaces.opening import LONG_PROMPT_CHARS, opening_key
from router.surfaces.parts import NEWEST_PARTS, Contents, between, chars_of, ends_of, is_one_prompt, written

Body = Mapping[str, Any]
Headers = Mapping[str, str]

SYSTEM_ROLES = frozenset({"system", "developer"})
_TOOL_ROLES = frozenset({"tool", "function"})
_LETTERS = {"system": "s", "developer": "s", "assistant": "a", "tool": "t", "function": "t"}
"""Roles as `Message` names them; others speak for the user."""
_TOKENS_PER_MESSAGE = 4
"""Role and borders, as chat templates write them."""
_CHARS_PER_TOKEN = 4
"""Of text that is not read."""
_TOKENS_PER_ANSWER = 3
"""How a chat template opens the answer."""
_LARGEST = 2**53
"""Larger numbers are read as this one: JSON that others can read has none, and what is logged has to be such."""

_CONSTRAINTS = {
    "format": "json_schema",
    "grammar": "grammar",
    "guided_choice": "choice",
    "guided_grammar": "grammar",
    "guided_json": "json_schema",
    "guided_regex": "regex",
    "json_schema": "json_schema",
    "structured_outputs": "json_schema",
}
"""Fields by which local servers are told to keep to a form, and what to call that."""
_KINDS = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}


def kind(value: object) -> str:
    """What a value is, in the words of JSON."""
    return _KINDS.get(type(value), "a number")


@dataclass(slots=True)
class Prompt(Contents):
    """What a call asks the engine to read, by its place in the conversation."""

    system: list[str] = field(default_factory=list)
    earlier: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)
    opening: list[str] = field(default_factory=list)
    """What the conversation began with, up to the user's first words; stays the same from turn to turn."""
    last_counted: int = 0
    """Tokens beside `last`: those that came as ids, and those of a text that is read many times."""
    turns: int = 0
    prompts: int = 1
    last_role: str = ""
    messages: list[Message] = field(default_factory=list)
    """The newest ones."""
    beside: list[str] = field(default_factory=list)
    """System text that stands beside the messages."""
    compared: list[Message] = field(default_factory=list)
    """From the first message on, as far as they are nothing but text."""
    whole: bool = True
    """`compared` is all of them."""

    def take_messages(
        self, messages: list[Any], where: str = "messages", as_message: Callable[[Any], Any] | None = None
    ) -> None:
        """Read a chat. Raises `BadRequest` where a message is no object; `where` names the field for the error, and
        `as_message` makes messages of items that are none.
        """
        self.turns += len(messages)
        newest = len(messages) - 1
        marked = newest - KEPT_MESSAGES
        unread = between(messages)
        for index, message in _read(messages, where, as_message):
            role = message.get("role")
            if not isinstance(role, str):
                role = ""
            if role == "assistant":
                # Results that the model has already answered to do not make this call the hop of a tool.
                self.tool_results = 0
            elif role in _TOOL_ROLES:
                self.tool_results += 1
            if index == newest:
                self.last_role = role
                texts = self.last
                self.parts_left = max(self.parts_left, NEWEST_PARTS)
            else:
                texts = self.system if role in SYSTEM_ROLES else self.earlier
            taken = self._take(role, message, texts)
            if index >= marked:
                self.messages.append(taken)
            # Asked of the new texts alone: a million empty messages must not be gone through a million times.
            if role == "user" and not self.opening and any(taken[1]):
                self.opening = self.earlier + self.last
            if index + 1 == unread.start:
                self.whole = self.whole and not unread
        self.unread_chars += chars_of(messages, unread)

    def _take(self, role: str, message: Body, texts: list[str]) -> Message:
        """Add it to `texts`, and to what is compared; who said it, and the new texts."""
        content = message.get("content")
        # Most messages are a role and a text, and nothing else need be looked for.
        if len(message) == 2 and "role" in message and isinstance(content, str):
            texts.append(content)
            taken: Message = (_LETTERS.get(role, "u"), [content])
        else:
            before, results, media = len(texts), self.tool_results, self.media
            self.take_message(message, texts)
            taken = ("t" if self.tool_results > results else _LETTERS.get(role, "u"), texts[before:])
            self.whole = self.whole and self.media == media and self.parts_left >= 0
        if self.whole:
            self.compared.append(taken)
        return taken

    def heard(self) -> list[Message]:
        """All that can be compared; of several prompts at once nothing, nor of one that came as token ids."""
        bare = self.whole and self.prompts == 1 and not (self.compared or self.last_counted or not self.last)
        return [("u", self.last)] if bare else self.compared

    def chars_left_out(self) -> int:
        """About how many characters there are beside the texts."""
        return self.unread_chars + chars_of(self.unread, range(len(self.unread)))

    def take_system(self, text: object) -> None:
        """Add a system text that stands beside the messages; it counts as a message, like everywhere else."""
        if text:
            self.turns += 1
            before = len(self.system)
            self.take_content(text, self.system)
            self.beside = self.system[before:]

    def take_beginning(self, prompt: object) -> None:
        """A prompt that has no messages may still be one turn of many; a short one is not taken for that."""
        if isinstance(prompt, str) and len(prompt) >= LONG_PROMPT_CHARS:
            self.opening = [prompt[:LONG_PROMPT_CHARS]]

    def take_inputs(self, inputs: object) -> None:
        """Read one prompt or many: a string, token ids, an object with text or parts, or an array of these."""
        self.turns = 1
        if not isinstance(inputs, list) or is_one_prompt(inputs):
            self._take_input(inputs)
        else:
            self.prompts = max(1, len(inputs))
            for _, item in ends_of(inputs):
                self._take_input(item)
            self.unread_chars += chars_of(inputs, between(inputs))

    def _take_input(self, item: object) -> None:
        if isinstance(item, list) and is_one_prompt(item):
            self.last_counted += len(item)
        elif isinstance(item, dict) and "prompt_string" in item:
            self.take_content(item["prompt_string"], self.last)
            self.media += len(item["multimodal_data"]) if isinstance(item.get("multimodal_data"), list) else 0
        else:
            self.take_content(item, self.last)


def _read(
    messages: list[Any], where: str, as_message: Callable[[Any], Any] | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    for index, item in ends_of(messages):
        message = item if as_message is None else as_message(item)
        if not isinstance(message, dict):
            at = f"{where}[{index}]"
            raise BadRequest(f"{at}: expected an object with role and content, got {kind(message)}", param=at)
        yield index, message


def model_of(body: Body) -> str | None:
    """Raises `BadRequest` for a model that is not text. It may be missing: servers of one model do without."""
    model = body.get("model")
    if model is None or (isinstance(model, str) and model.isascii()):
        return model or None
    if not isinstance(model, str):
        raise BadRequest(f"model: expected a string, got {kind(model)}; send the name of a model", param="model")
    if any("\ud800" <= character <= "\udfff" for character in model):
        raise BadRequest("model: it contains half a character; send the name of a model", param="model")
    return model


def messages_of(body: Body) -> list[Any]:
    """Raises `BadRequest` for messages that are missing, no array, or none."""
    messages = body.get("messages")
    if isinstance(messages, list) and messages:
        return messages
    if messages is None:
        found = "it is missing" if "messages" not in body else "got null"
    else:
        found = f"got {'an empty array' if messages == [] else kind(messages)}"
    raise BadRequest(f"messages: expected a non-empty array, {found}", param="messages")


def number(body: Body, *names: str) -> int | None:
    """The first of these fields that holds a whole number of at least 0. (-1 is one way to say: no limit.)"""
    for name in names:
        value = body.get(name)
        if type(value) is int and value >= 0:
            return min(value, _LARGEST)
    return None


def word(body: Body, name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""


def format_of(body: Body) -> str:
    """The form that the answer must have: `response_format`, or what local servers have beside it; empty for text."""
    asked = body.get("response_format")
    found = word(asked, "type") if isinstance(asked, dict) else ""
    if found and found != "text":
        return found
    if _CONSTRAINTS.keys().isdisjoint(body):
        return ""
    for name in _CONSTRAINTS.keys() & body.keys():
        if body[name]:
            return "json_object" if body[name] == "json" else _CONSTRAINTS[name]
    return ""


def tools_of(body: Body) -> list[Any]:
    tools = body.get("tools") or body.get("functions")
    return tools if isinstance(tools, list) else []


def describe(
    surface: str,
    body: Body,
    headers: Headers,
    prompt: Prompt,
    *,
    max_tokens: int | None = None,
    response_format: str = "",
    stream: bool | None = None,
) -> Features:
    """Everything that has been read, as features. `stream` None: as the body says, else not."""
    tools = tools_of(body)
    system, earlier, last = prompt.system, prompt.earlier, prompt.last
    system_tokens = (estimate_repeated(system[0]) if len(system) == 1 else estimate_all(system)) if system else 0
    last_tokens = (estimate_all(last) if last else 0) + prompt.last_counted
    prompt_tokens = system_tokens + last_tokens + _TOKENS_PER_MESSAGE * prompt.turns
    if earlier:
        prompt_tokens += estimate_all(earlier)
    tools_text = written(tools) if tools else ""
    if tools:
        prompt_tokens += estimate_repeated(tools_text)
    if prompt.last_role:
        prompt_tokens += _TOKENS_PER_ANSWER
    left_out = prompt.chars_left_out() if prompt.unread_chars or prompt.unread else 0
    prompt_tokens += left_out // _CHARS_PER_TOKEN
    model = model_of(body)
    opening = opening_key(model or "", system, tools_text, prompt.opening)
    features = Features(
        surface=surface,
        model=model,
        stream=body.get("stream") is True if stream is None else stream,
        prompt_tokens=prompt_tokens,
        estimated_tokens=0 if prompt.last_counted else prompt_tokens,
        system_tokens=system_tokens,
        last_tokens=last_tokens,
        turns=prompt.turns,
        last_role=prompt.last_role,
        prompts=prompt.prompts,
        max_tokens=max_tokens,
        tools=len(tools),
        tool_results=prompt.tool_results,
        media=prompt.media,
        response_format=response_format,
        opening_key=opening,
        unread=lambda: shape_of(body, system=system, last=last),
        unmarked=lambda: marks_of(
            system=system,
            tools=tools_text,
            last=last,
            opening_key=opening,
            opening=prompt.opening,
            messages=prompt.messages,
            tool_calls=prompt.tool_call_ids,
            fields=fields_of(body),
        ),
        uncut=lambda: cut(
            f"{model}\0{word(body, 'cache_salt')}",
            in_order(prompt.beside, tools_text, prompt.heard()),
            of_chars=None if prompt.whole else sum(map(len, system + earlier + last)) + left_out,
        ),
        headers=headers,
    )
    if not _SELDOM.isdisjoint(body):
        _take_seldom(features, body)
    return features


_SELDOM = frozenset(
    {
        "background",
        "best_of",
        "conversation",
        "litellm_session_id",
        "metadata",
        "n",
        "previous_response_id",
        "priority",
        "prompt_cache_key",
        "service_tier",
    }
)


def _take_seldom(features: Features, body: Body) -> None:
    """Fields that most calls do without."""
    features.choices = max(1, number(body, "n") or 1, number(body, "best_of") or 1)
    features.service_tier = word(body, "service_tier")
    features.priority = body["priority"] if type(body.get("priority")) is int else None
    features.background = body.get("background") is True
    features.prompt_cache_key = word(body, "prompt_cache_key")
    features.previous_response_id = word(body, "previous_response_id")
    features.session_id = session_of(body)


def estimate_all(texts: list[str]) -> int:
    """About how many tokens these texts are together."""
    if len(texts) == 1:
        return estimate_tokens(texts[0])
    # Plain texts apart from the others: one accent would make the estimate of all of them a slow one.
    plain = [text for text in texts if text.isascii()]
    tokens = estimate_tokens(" ".join(plain))
    if len(plain) < len(texts):
        tokens += estimate_tokens(" ".join([text for text in texts if not text.isascii()]))
    return tokens
