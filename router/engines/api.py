"""What differs between kinds of inference servers, as pure functions over bytes that a probe has fetched.

An engine does no I/O: it says which paths to ask and reads the answers. `router.fleet.probes` does the asking.
Everything that a server may leave out is None, which means unknown and never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from classifiers.api import CallClass
from policies.api import Lane


@dataclass(frozen=True, slots=True)
class Answer:
    """What a probe got from one path."""

    status: int
    body: bytes


Answers = Mapping[str, Answer]
"""By path; a path that gave no HTTP answer at all is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a server is: changes only when it restarts."""

    engine: str
    version: str = ""
    slots: int | None = None
    """Calls it works on at once; None for engines that batch without fixed slots."""
    context_tokens: int | None = None
    """Per slot."""
    models: tuple[str, ...] | None = None
    """Names that it answers to, in its own order; None: it does not say, so any name may be tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a server works on, whoever sent it."""

    running: float | None = None
    waiting: float | None = None
    cache_used_0_1: float | None = None
    cache_tokens: int | None = None
    """That its cache holds, used or not; 0: it keeps nothing of prompts."""


@dataclass(frozen=True, slots=True)
class Ready:
    pass


@dataclass(frozen=True, slots=True)
class Loading:
    """Alive, model not in memory yet: wait, no penalty."""

    said: bytes = field(default=b"", compare=False)
    """The body in which the server said so, if it is `{"error": {...}}`."""


@dataclass(frozen=True, slots=True)
class Sick:
    reason: str


class Engine(Protocol):
    """One kind of server."""

    name: str
    """As in YAML: llamacpp, vllm, sglang, ollama, lmstudio, openai."""
    default_lane: Lane
    default_slots: int | None
    """Calls at once where neither the server nor the operator says; None: it batches, there is no such number."""
    caches_by_slot: bool
    """Each slot keeps the last prompt that it worked on. False: one store keeps blocks of all prompts."""
    surfaces: frozenset[str]
    """Names of the client surfaces that it serves (see `router.surfaces`)."""
    identity_paths: tuple[str, ...]
    """Asked at start, after an outage and every half minute."""
    health_path: str
    load_paths: tuple[str, ...]
    """Asked at each probe; the first that answers usefully is enough."""

    def recognise(self, answers: Answers) -> Identity | None:
        """The identity, if these answers are of this kind of server; else None."""
        ...

    def ready(self, answer: Answer) -> Ready | Loading | Sick:
        """Reads the answer of `health_path`."""
        ...

    def load(self, answers: Answers, models: tuple[str, ...] | None) -> Load | None:
        """Reads the answers of `load_paths`; None: they say nothing (switched off, wrong version)."""
        ...

    def same_model(self, asked: str, served: str) -> bool:
        """Whether a client that asks for `asked` means `served` (Ollama: `qwen3` is `qwen3:latest`)."""
        ...

    def priority(self, call_class: CallClass) -> int | None:
        """The body's `priority` number for a class, lower first on vLLM, higher first on SGLang; None: not sent."""
        ...

    def context_overflow(self, answer: Answer) -> bool:
        """Whether a 4xx answer says that the prompt does not fit the context (not that the call was wrong)."""
        ...

    def blames_call(self, answer: Answer) -> bool:
        """Whether a 500 answer says by its words that the call was wrong, and nothing else would fail there."""
        ...
