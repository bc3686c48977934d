"""What is this call? The words in which the question is asked and answered.

This page is for authors of classifiers. A classifier is plain synchronous Python: it is handed `Features` and returns a
`Verdict`. It does no I/O, reads no clock, logs nothing and draws no random numbers, so the same object serves in the
proxy, in a test and in a replay of yesterday's traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from classifiers.arrival import Arrival
from classifiers.blocks import NO_BLOCKS, Blocks
from classifiers.carry import LogOdds
from classifiers.marks import Marks
from classifiers.shape import Shape


class CallClass(StrEnum):
    """What the caller is waiting for."""

    TTFT = "ttft"
    """The first token: somebody reads while the answer is written."""
    MIXED = "mixed"
    """The end of a pipeline, of which this call is one hop."""
    THROUGHPUT = "throughput"
    """The complete answer, and seconds of wait are fine."""


SYNONYMS: Mapping[str, CallClass] = {
    "ttft": CallClass.TTFT,
    "interactive": CallClass.TTFT,
    "latency": CallClass.TTFT,
    "mixed": CallClass.MIXED,
    "hop": CallClass.MIXED,
    "agent": CallClass.MIXED,
    "throughput": CallClass.THROUGHPUT,
    "batch": CallClass.THROUGHPUT,
    "bulk": CallClass.THROUGHPUT,
}
"""Every spelling that is accepted on input, in headers and in YAML alike."""


class Source(StrEnum):
    """Who decided the class. Headers outrank rules, and both outrank what follows; of the built-in tables the one about
    what callers chose on purpose is asked before a model, the other in place of one.
    """

    HEADER = "header"
    RULE = "rule"
    MODEL = "model"
    BUILTIN = "builtin"
    DEFAULT = "default"


SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"})
"""Lower-case names of headers that no classifier sees."""


@dataclass(slots=True, kw_only=True)
class Features:
    """One call as numbers and short words. Never holds the caller's text.

    Made for each call, and changed by the methods below alone; frozen, making it would take four times as long.

    Token counts are estimates made before any tokenizer has seen the prompt (see `classifiers.estimate`).
    """

    surface: str
    """Name of the client API that was called, e.g. `openai_chat` (see `router.surfaces`)."""
    model: str | None = None
    stream: bool = False
    prompt_tokens: int = 0
    """Everything that the engine must prefill: system text, history, tools, documents. Media count nothing. Where the
    model has reported counts of other prompts, these are taken into account."""
    estimated_tokens: int = 0
    """The same as the text alone tells; 0 where token ids came, which need no estimate."""
    system_tokens: int = 0
    last_tokens: int = 0
    """The newest message alone."""
    turns: int = 0
    """Messages in the conversation; 1 for a bare prompt."""
    last_role: str = ""
    prompts: int = 1
    """Independent inputs in one call: prompts of a completion batch, inputs of an embedding, documents of a rerank."""
    max_tokens: int | None = None
    """The caller's limit on output tokens; None: not given."""
    choices: int = 1
    tools: int = 0
    tool_results: int = 0
    media: int = 0
    """Images, audio clips and files in the messages."""
    response_format: str = ""
    """`json_object`, `json_schema`, ... or empty for text."""
    service_tier: str = ""
    priority: int | None = None
    """The body's own `priority`, as the caller wrote it."""
    background: bool = False
    prompt_cache_key: str = ""
    previous_response_id: str = ""
    session_id: str = ""
    """Of the conversation or task that the body names, in `metadata` or otherwise, with the name of the field."""
    opening_key: str = ""
    """Hash of what each turn of a conversation repeats: system text, tools, first message; empty: no such text."""
    shape: Shape | None = None
    """What the text looks like, once somebody has asked (`looked_at`); None where a surface has none to look at."""
    unread: Callable[[], Shape] | None = field(default=None, repr=False, compare=False)
    """Looks at the text, which it holds until `forget_text`."""
    marks: Marks | None = None
    """By what related calls are recognised, once somebody has asked (`recognised_by`)."""
    unmarked: Callable[[], Marks] | None = field(default=None, repr=False, compare=False)
    """Finds that out; holds the text as well."""
    uncut: Callable[[], Blocks] | None = field(default=None, repr=False, compare=False)
    """Cuts the prompt into blocks; holds the text as well."""
    arrival: Arrival | None = None
    """What the client did before; None where nobody keeps count, as in `explain` of a single call."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Lower-case names; the last of repeated headers. Those of `SECRET_HEADERS` are left out."""

    def looked_at(self) -> Shape | None:
        """What the text looks like. Finding out takes most of the time of a judgement, so it waits for the question."""
        if self.unread is not None:
            self.shape, self.unread = self.unread(), None
        return self.shape

    def recognised_by(self) -> Marks | None:
        """What the call has in common with others."""
        if self.unmarked is not None:
            self.marks, self.unmarked = self.unmarked(), None
        return self.marks

    def blocks(self) -> Blocks:
        """By what it is seen how far a prompt is the same as another one. None is left where the text was forgotten."""
        return self.uncut() if self.uncut is not None else NO_BLOCKS

    def forget_text(self) -> None:
        """Judging is over."""
        self.unread = self.unmarked = self.uncut = None

    def came_with(self, arrival: Arrival) -> None:
        """For whoever keeps count of clients: once, before a classifier sees the call.

        In place, since a copy of all fields would take longer than deciding.
        """
        self.arrival = arrival

    def counted_as(self, prompt_tokens: int) -> None:
        """For whoever knows what this model makes of a prompt; the estimate stays beside it. In place, as above."""
        self.prompt_tokens = prompt_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The class of a call, how sure the classifier is, and why in words that a person understands."""

    call_class: CallClass
    confidence: float
    """0..1; 1.0 where the caller or the operator said so."""
    source: Source
    reasons: tuple[str, ...]
    """Stable snake_case words first to last in weight, e.g. `("stream", "short_prompt")`."""
    alone: LogOdds | None = None
    """What a model said of the call before earlier ones were taken into account, for those that follow (see
    `classifiers.carry`); None: no model was asked, the client is new, or the model carries nothing over."""


class Classifier(Protocol):
    """One voice in the chain. Returning None passes the question on to the next voice."""

    def classify(self, features: Features) -> Verdict | None: ...
