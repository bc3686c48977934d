"""Judgement by what is plain from a call, as two tables: the first row that holds decides.

`PURPOSE` is about what the caller chose: a service tier, an API that is for one thing, many prompts in one call. These
rows are asked before any model. `SHAPES` judges by stream, tools and size, where there is no learned model. The idea
behind them: can anybody use the first token before the answer is complete? Who streams may be reading; who does not
stream is a program. Programs that carry results of tools are hops of a pipeline, and programs that send much at once or
want records back are batches. `confidence` is how often a row is right on labelled calls, roughly; rows about words
that callers chose on purpose are surer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from classifiers.api import CallClass, Features, Source, Verdict
from classifiers.surfaces import EMBEDDINGS

LONG_PROMPT_TOKENS = 4000
"""A prompt whose prefill alone takes longer than a person would like to wait on most local servers."""
DOCUMENT_TOKENS = 1500
"""A first message of this size carries a document."""
CONVERSATION_TURNS = 4
"""Messages from which on an answer of the model is among them: system, user, assistant, user."""
LABEL_TOKENS = 32
"""An answer that is limited to this is a label or a number."""
MANY_TEXTS = 8
"""Texts of one embedding call: more is an index being built."""
QUERY_TOKENS = 64
"""Longest text that is embedded to look something up; a longer one is put into an index."""
MANY_DOCUMENTS = 100
"""Documents of one rerank or score call: more is an evaluation, fewer are the candidates of one question."""

_RANKING_SURFACES = frozenset({"rerank", "score"})
_SMALL_SURFACES = frozenset(
    {"tokenize", "detokenize", "anthropic_count_tokens", "ollama_show", "llamacpp_apply_template"}
)
_BATCH_TIERS = frozenset({"flex", "batch"})
_TOOL_ROLES = frozenset({"tool", "function"})

_TTFT, _MIXED, _THROUGHPUT = CallClass.TTFT, CallClass.MIXED, CallClass.THROUGHPUT

Row = tuple[Callable[[Features], bool], Verdict | None]
"""What must hold, and what follows; None: nothing can be told."""


def _embeds(call: Features) -> bool:
    return call.surface in EMBEDDINGS


def _is_query(call: Features) -> bool:
    return call.prompt_tokens <= QUERY_TOKENS * call.prompts


def has_history(call: Features) -> bool:
    """Whether an answer of the model is part of what is asked."""
    return call.turns >= CONVERSATION_TURNS or call.previous_response_id != ""


def _may_have_purpose(call: Features) -> bool:
    """Whether it is worth while to ask row by row; most calls are plain."""
    return call.surface in _WITH_PURPOSE or call.prompts > 1 or call.service_tier != "" or call.background


def _row(holds: Callable[[Features], bool], call_class: CallClass, confidence: float, *reasons: str) -> Row:
    return holds, Verdict(call_class=call_class, confidence=confidence, source=Source.BUILTIN, reasons=reasons)


PURPOSE: tuple[Row, ...] = (
    # What the caller chose on purpose.
    _row(lambda call: call.service_tier in _BATCH_TIERS, _THROUGHPUT, 0.95, "batch_service_tier"),
    _row(lambda call: call.service_tier == "priority", _TTFT, 0.9, "priority_service_tier"),
    _row(lambda call: call.background, _THROUGHPUT, 0.95, "background"),
    # What the API is for.
    _row(lambda call: call.surface == "llamacpp_infill", _TTFT, 0.95, "infill"),
    _row(lambda call: call.surface in _RANKING_SURFACES and call.prompts > MANY_DOCUMENTS, _THROUGHPUT, 0.8, "ranking"),
    _row(lambda call: call.surface in _RANKING_SURFACES, _MIXED, 0.7, "ranking"),
    _row(lambda call: _embeds(call) and call.prompts > MANY_TEXTS, _THROUGHPUT, 0.9, "embedding", "many_texts"),
    _row(lambda call: _embeds(call) and _is_query(call), _MIXED, 0.5, "embedding", "query"),
    _row(lambda call: _embeds(call), _THROUGHPUT, 0.7, "embedding"),
    _row(lambda call: call.surface in _SMALL_SURFACES, _TTFT, 0.9, "no_generation"),
    # Dictation and an archive of recordings look the same.
    (lambda call: call.surface == "openai_audio", None),
    _row(lambda call: call.prompts > 1, _THROUGHPUT, 0.85, "many_prompts"),
)
"""Asked with and without a model."""

_WITH_PURPOSE = EMBEDDINGS | _RANKING_SURFACES | _SMALL_SURFACES | {"llamacpp_infill", "openai_audio"}

SHAPES: tuple[Row, ...] = (
    # Hops.
    _row(lambda call: call.last_role in _TOOL_ROLES or call.tool_results > 0, _MIXED, 0.9, "tool_results"),
    _row(lambda call: call.tools > 0 and call.stream, _MIXED, 0.6, "tools", "stream"),
    _row(lambda call: call.tools > 0, _MIXED, 0.8, "tools"),
    # Batches.
    _row(lambda call: call.choices > 1, _THROUGHPUT, 0.8, "many_choices"),
    _row(lambda call: not call.stream and bool(call.response_format), _THROUGHPUT, 0.65, "no_stream", "records"),
    # Somebody may be reading.
    _row(lambda call: call.stream and bool(call.response_format), _THROUGHPUT, 0.5, "stream", "records"),
    _row(lambda call: call.stream and call.prompt_tokens > LONG_PROMPT_TOKENS, _MIXED, 0.55, "stream", "long_prompt"),
    _row(lambda call: call.stream and has_history(call), _TTFT, 0.65, "stream", "conversation"),
    _row(lambda call: call.stream and call.prompt_tokens > DOCUMENT_TOKENS, _MIXED, 0.7, "stream", "document"),
    _row(lambda call: call.stream, _TTFT, 0.65, "stream"),
    # Nobody reads before the end.
    _row(has_history, _MIXED, 0.6, "no_stream", "conversation"),
    _row(lambda call: call.prompt_tokens > LONG_PROMPT_TOKENS, _THROUGHPUT, 0.8, "no_stream", "long_prompt"),
    _row(lambda call: 0 < (call.max_tokens or 0) <= LABEL_TOKENS, _THROUGHPUT, 0.8, "no_stream", "short_answer"),
    _row(lambda call: True, _THROUGHPUT, 0.55, "no_stream"),
)
"""Asked where there is no model."""

UNLEARNED = _WITH_PURPOSE
"""APIs whose calls no model has seen: what they are for is plain, or nothing can be told."""


@dataclass(frozen=True, slots=True)
class Builtin:
    """The voice that speaks where neither the caller nor the operator said anything."""

    shapes: bool = True
    """False where a learned model is asked instead."""

    def classify(self, features: Features) -> Verdict | None:
        if _may_have_purpose(features):
            for holds, verdict in PURPOSE:
                if holds(features):
                    return verdict
        return next(verdict for holds, verdict in SHAPES if holds(features)) if self.shapes else None
