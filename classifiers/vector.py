"""A call as a row of numbers: what the learned model is trained on and judges by.

Each entry has a name, words for a person, and a lean: for which classes it may speak. `+` may only speak for a class,
`-` only against it, `*` either way, in the order ttft, mixed, throughput. The last number of an entry is its trust: 2
lets its weight become twice as large at the same penalty. Leans are what a person knows beforehand
(tools belong to agents, a suffix to an editor); without them a fit on some dozen sources believes, say, that a
numbered choice speaks for an agent, because of the one agent that wrote numbered lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Final

from classifiers import behaviour
from classifiers.api import Features
from classifiers.behaviour import Entry
from classifiers.clients import client_of, is_traced
from classifiers.shape import Shape
from classifiers.surfaces import EMBEDDINGS, RAW
from classifiers.words import NAMES as GROUPS

_NO_SHAPE: Final = Shape()
_MOST: Final = 12
"""Counts above this say nothing more."""
_LABEL_TOKENS: Final = 32
_SHORT_TOKENS: Final = 128
_LONG_TOKENS: Final = 1024
_TALK_CHARS: Final = 400
_DOCUMENT_CHARS: Final = 1500
_INSTRUCTION_CHARS: Final = 250
"""Longest paragraph that is an instruction beside a document."""

_CALL: Final[tuple[Entry, ...]] = (
    ("stream", "it streams", "+*-", 2),
    ("temperature_zero", "temperature 0", "-**", 1),
    ("temperature_warm", "temperature above 0.3", "+*-", 1),
    ("seed", "a seed is set", "-*+", 1),
    ("stop_label", "it stops where a template goes on", "-++", 1),
    ("stop_agent", "it stops where the result of an action belongs", "-+-", 2),
    ("stop_code", "it stops where the next piece of code begins", "*-*", 1),
    ("stop_token", "it stops at special tokens", "+-*", 1),
    ("logprobs", "probabilities of the tokens are wanted", "-*+", 1),
    ("forced_tool", "the tool to call is given", "-*+", 2),
    ("tool_choice", "whether to call tools is said", "-+-", 1),
    ("usage_asked", "counts are wanted at the end of the stream", "+*-", 1),
    ("suffix", "text stands behind the place of the answer", "+--", 3),
    ("choices", "several answers are wanted", "*-+", 1),
    ("limit_label", "at most 32 tokens are wanted", "*-*", 1),
    ("limit_short", "at most 128 tokens are wanted", "*-*", 1),
    ("limit_long", "1024 tokens or more are allowed", "*+*", 1),
    ("response_format", "the form of the answer is given", "-**", 1),
    ("tools", "tools are offered", "-+-", 2),
    ("tools_offered", "tools offered", "-+-", 1),
    ("tool_results", "results of tools are there", "-+-", 3),
    ("embedding", "a text to embed", "--+", 3),
    ("prompts", "several prompts in one call", "--+", 2),
)


def _call(features: Features, shape: Shape) -> list[float]:
    envelope = shape.envelope
    limit = features.max_tokens or 0
    surface = features.surface
    return [
        features.stream,
        envelope.temperature == 0,
        envelope.temperature > 0.3,
        envelope.seed,
        envelope.stop_label,
        envelope.stop_agent,
        envelope.stop_code,
        envelope.stop_token,
        envelope.logprobs,
        envelope.forced_tool,
        envelope.tool_choice and not envelope.forced_tool,
        envelope.usage_asked,
        envelope.suffix or surface == "llamacpp_infill",
        features.choices > 1,
        0 < limit <= _LABEL_TOKENS,
        _LABEL_TOKENS < limit <= _SHORT_TOKENS,
        limit >= _LONG_TOKENS,
        features.response_format != "",
        features.tools > 0,
        min(features.tools, _MOST),
        features.tool_results > 0,
        surface in EMBEDDINGS,
        features.prompts > 1,
    ]


_CLIENT: Final[tuple[Entry, ...]] = (
    ("browser", "sent by a browser", "+--", 1.5),
    ("app", "sent by an application or editor", "+--", 1),
    ("javascript", "sent by JavaScript", "+*-", 1),
    ("script", "sent by a plain HTTP library", "-*+", 1),
    ("asynchronous", "sent by an asynchronous client", "-++", 1),
    ("for_people", "the program calls itself something for people", "+--", 1),
    ("job", "the program calls itself a job", "--+", 1),
    ("flow", "the program calls itself a flow or agent", "-+*", 1),
    ("traced", "it is part of a trace", "-+*", 1),
)


def _client(headers: Mapping[str, str]) -> list[float]:
    return [*client_of(headers), is_traced(headers)]


_TEXT: Final[tuple[Entry, ...]] = (
    ("system_chars", "characters of the system text", "-+*", 1),
    ("system_you", "the system text says who the assistant is", "+*-", 1),
    ("system_task", "the system text begins with an order", "-*+", 1),
    ("last_chars", "characters of the newest message", "-**", 1),
    ("digits", "share of digits", "-**", 1),
    ("code", "share of brackets and marks of code", "+**", 1),
    ("delimiters", "rules and headings", "-++", 1),
    ("infill", "marks of a cursor", "+--", 2),
    ("bullets", "lines of a list", "-**", 1),
    ("numbered", "numbered lines", "-**", 1),
    ("lettered", "choices to select from", "--+", 1),
    ("labelled", "lines that begin with a name", "--+", 1),
    ("labels", "names of fields or speakers", "--+", 1),
    ("repeated", "times the most frequent name comes", "--+", 1),
    ("agent_labels", "names that speak of steps", "-+-", 2),
    ("exam_labels", "names that speak of questions and answers", "-*+", 1),
    ("record_labels", "names that speak of records", "-*+", 1),
    ("shouted", "names in capitals", "-+*", 1),
    ("opens_question", "it opens with a question word", "+*-", 1),
    ("opens_task", "it opens with an order", "-*+", 1),
    ("opens_small", "it opens with a small letter", "+*-", 1),
    ("opens_mark", "it opens with no letter", "-++", 1),
    ("ends_question", "it ends with a question mark", "+**", 1),
    ("ends_colon", "it ends with a colon", "-++", 1),
    ("ends_label", "it ends with a name and a colon", "-++", 1),
    ("ends_word", "it ends within a sentence", "+**", 1),
    ("opening_task", "the first paragraph begins with an order", "-*+", 1),
    ("opening_stop", "the first paragraph is a heading or a sentence", "-*+", 1),
    ("opening_short", "a short paragraph before a long text", "-*+", 1),
    ("closing_task", "the last paragraph begins with an order", "-*+", 1),
    ("closing_short", "a short paragraph after a long text", "-*+", 1),
    ("stream_document", "streams, about a document", "*+-", 1),
    ("still_document", "does not stream, about a document", "--+", 1),
    ("talk", "a short message and no task", "+--", 1.5),
    ("talk_tools", "a short message and tools", "-+-", 1.5),
    ("system_orders", "the system text is the task", "-++", 1),
)


def _text(features: Features, shape: Shape) -> list[float]:
    text, words = shape.text, shape.system_words
    marks, lines = text.marks, text.lines
    chars, tools, system_chars = text.chars, features.tools > 0, shape.system_chars
    orders = shape.system_task or words[_LABEL] + words[_REWRITE] > 1 or words[_DEMAND] > 2
    short = chars < _TALK_CHARS and lines.lines < 3 and not orders
    document = (
        (chars > _DOCUMENT_CHARS or system_chars > _DOCUMENT_CHARS)
        and not tools
        and shape.turns.answers == 0
        and features.surface not in RAW
        and not lines.agent_labels
        and not text.infill
    )
    return [
        system_chars,
        shape.system_you,
        shape.system_task,
        chars,
        marks.digits,
        marks.code,
        min(text.delimiters, _MOST),
        text.infill,
        lines.bullets,
        lines.numbered,
        lines.lettered,
        lines.labelled,
        lines.labels,
        lines.repeated,
        min(lines.agent_labels, _MOST),
        min(lines.exam_labels, _MOST),
        min(lines.record_labels, _MOST),
        lines.shouted,
        text.opens_question,
        text.opens_task,
        text.opens_small,
        text.opens_mark,
        text.ends_question,
        text.ends_colon,
        text.ends_label,
        text.ends_word,
        text.opening_task,
        text.opening_stop,
        0 < text.opening_chars < _INSTRUCTION_CHARS and chars > 3 * text.opening_chars,
        text.closing_task,
        0 < text.closing_chars < _INSTRUCTION_CHARS and chars > 4 * text.closing_chars,
        document and features.stream,
        document and not features.stream,
        short and not tools,
        short and tools,
        orders and not shape.system_you,
    ]


_LABEL, _REWRITE, _DEMAND = (GROUPS.index(name) for name in ("label", "rewrite", "demand"))

_TURNS: Final[tuple[Entry, ...]] = (
    ("answered", "the assistant has spoken", "*+*", 1),
    ("answered_twice", "the assistant has spoken twice", "*+-", 1),
    ("answers_prose", "share of its answers that are sentences", "+**", 1),
    ("answers_code", "share of marks of code in its answers", "-+*", 1),
    ("answers_silent", "answers without text", "-+-", 1),
    ("answers_call", "answers that call tools", "-+-", 1),
    ("answers_alike", "answers that begin alike", "--+", 1),
    ("asked_alike", "messages of the user that begin alike", "-++", 1),
    ("asked_chars", "characters of the user's later messages", "-+*", 1),
    ("asked_marks", "share of digits and marks of code in them", "-+*", 1),
    ("asked_questions", "share of questions among them", "+--", 1),
)


def _turns(shape: Shape) -> list[float]:
    turns = shape.turns
    return [
        turns.answers > 0,
        turns.answers > 1,
        turns.prose,
        turns.code,
        turns.silent > 0,
        turns.calls > 0,
        turns.answers_alike,
        turns.asked_alike,
        turns.asked_chars,
        turns.asked_marks,
        turns.asked_questions,
    ]


_SPEAK_OF: Final[Mapping[str, tuple[str, str, str]]] = {
    # group: what it is about, lean in the system text, lean in the newest message; empty: not looked at
    "person": ("the writer", "", "+*-"),
    "courtesy": ("greetings and thanks", "", "+--"),
    "question": ("questions", "", "+**"),
    "wish": ("wishes", "", "+-*"),
    "label": ("labels and scores", "--+", "--+"),
    "rewrite": ("summaries, extracts, translations", "-*+", "**+"),
    "format": ("the form of the answer", "-++", "-++"),
    "record": ("records and documents", "-**", "-*+"),
    "exam": ("questions with right answers", "-*+", "-*+"),
    "agent": ("tools, steps and actions", "-+-", "-+-"),
    "persona": ("a character that talks", "+-*", ""),
    "reader": ("somebody who reads along", "*+-", "*+-"),
    "demand": ("nothing but the answer", "-*+", "-*+"),
}
_IN_SYSTEM: Final = tuple(name for name, (_, lean, _) in _SPEAK_OF.items() if lean)
_IN_TEXT: Final = tuple(name for name, (_, _, lean) in _SPEAK_OF.items() if lean)

_WORDS_OF: Final[tuple[Entry, ...]] = (
    *(
        (f"system_{name}", f"words on {_SPEAK_OF[name][0]} in the system text", _SPEAK_OF[name][1], 1)
        for name in _IN_SYSTEM
    ),
    *((f"text_{name}", f"words on {_SPEAK_OF[name][0]} in the message", _SPEAK_OF[name][2], 1) for name in _IN_TEXT),
)
_of_system, _of_text = (itemgetter(*map(GROUPS.index, names)) for names in (_IN_SYSTEM, _IN_TEXT))


def _words(shape: Shape) -> list[float]:
    return [*_of_system(shape.system_words), *_of_text(shape.text_words)]


_REQUEST: Final = (*_CALL, *_CLIENT, *_TEXT, *_TURNS, *_WORDS_OF)
_ENTRIES: Final = (*_REQUEST, *behaviour.ENTRIES)

NAMES: Final = tuple(name for name, *_ in _ENTRIES)
"""Of the entries, in their order: what the call says, then what its client did before."""
WORDS: Final[Mapping[str, str]] = {name: words for name, words, *_ in _ENTRIES}
LEANS: Final[Mapping[str, str]] = {name: lean for name, _, lean, _ in _ENTRIES}
TRUST: Final[Mapping[str, float]] = {name: trust for name, *_, trust in _ENTRIES}
ONLY_WITH_ARRIVAL: Final = frozenset(name for name, *_ in behaviour.ENTRIES)
LOGARITHMS: Final = (
    behaviour.LOGARITHMS
    | {name for name, *_ in _WORDS_OF}
    | {
        "agent_labels",
        "asked_chars",
        "bullets",
        "delimiters",
        "exam_labels",
        "labelled",
        "labels",
        "last_chars",
        "lettered",
        "numbered",
        "record_labels",
        "repeated",
        "shouted",
        "system_chars",
        "tools_offered",
    }
)
"""Amounts that matter by their order of magnitude."""


def vector(features: Features) -> list[float]:
    """The entries for one call, in the order of `NAMES`."""
    shape = features.looked_at() or _NO_SHAPE
    return [
        *_call(features, shape),
        *_client(features.headers),
        *_text(features, shape),
        *_turns(shape),
        *_words(shape),
        *behaviour.behaviour(features.arrival),
    ]
