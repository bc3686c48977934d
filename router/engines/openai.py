"""Any server with an OpenAI-compatible API: the last resort, and what all other kinds have in common."""

from __future__ import annotations

from typing import Any

from classifiers.api import CallClass
from policies.api import Lane
from router.engines.answers import as_object, error_words, largest, object_at, objects, parsed, words
from router.engines.api import Answer, Answers, Identity, Load, Loading, Ready, Sick

_OVERFLOWS = (
    "exceed_context_size_error",  # llama.cpp
    "available context size",  # llama.cpp before that type
    "maximum context length",  # vLLM, SGLang, OpenAI
    "maximum model length",  # vLLM, for encoder-decoder models
    "model's context length",  # SGLang
    "maximum allowed length",  # SGLang
    "exceeds the context length",  # Ollama
    "greater than the context length",  # LM Studio
    "when context the overflows",  # LM Studio, sic
    "context_length_exceeded",  # OpenAI
)


_WRONG_CALLS = (
    "input is not supported",  # llama.cpp: an image or audio for a model without it
    "missing data required for image input",  # Ollama: the same
    "failed to load image",  # llama.cpp
    "increase the physical batch size",  # llama.cpp: an input to embed that is too long
    "failed to parse messages",  # llama.cpp
    "jinja exception",  # llama.cpp: the template of the model refuses the messages
    "roles must alternate",  # the same, before it said so
    "requires --jinja",  # llama.cpp: tools
    "[json.exception.",  # llama.cpp: a field of another type than it expects
)
"""What servers say with status 500 of calls that would be a 400 elsewhere."""


class OpenAICompatible:
    """Asks only for `/v1/models`: nothing else can be expected of a server of unknown make."""

    name: str = "openai"
    default_lane: Lane = Lane.THROUGHPUT
    default_slots: int | None = None
    caches_by_slot: bool = False
    surfaces: frozenset[str] = frozenset(
        {
            "openai_chat",
            "openai_completions",
            "openai_embeddings",
            "openai_responses",
            "openai_audio",
            "rerank",
            "score",
        }
    )
    identity_paths: tuple[str, ...] = ("/v1/models",)
    health_path: str = "/v1/models"
    load_paths: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<engine {self.name}>"

    def recognise(self, answers: Answers) -> Identity | None:
        listing = object_at(answers, "/v1/models")
        if not isinstance(listing.get("data"), list):
            return None
        entries = model_entries(answers)
        if not entries and listing.get("object") != "list":
            return None
        # An empty list says little: some servers load whatever model they are asked for.
        return Identity(
            engine=self.name,
            models=words(entry["id"] for entry in entries) or None,
            context_tokens=largest(_context(entry) for entry in entries),
        )

    def ready(self, answer: Answer) -> Ready | Loading | Sick:
        if 200 <= answer.status < 300 or answer.status == 429:  # too busy to say so is not sick
            return Ready()
        if answer.status == 503 and "loading" in error_words(answer):
            return Loading(answer.body if as_object(parsed(answer.body).get("error")) else b"")
        if answer.status in (401, 403):
            return Sick(f"{self.health_path} answered HTTP {answer.status}: check this backend's api_key")
        return Sick(f"{self.health_path} answered HTTP {answer.status}")

    def load(self, answers: Answers, models: tuple[str, ...] | None) -> Load | None:
        return None

    def same_model(self, asked: str, served: str) -> bool:
        return asked == served

    def priority(self, call_class: CallClass) -> int | None:
        return None

    def context_overflow(self, answer: Answer) -> bool:
        """True also where prompt and `max_tokens` together are too long: a larger context could take both."""
        if not 400 <= answer.status < 500:
            return False
        said = error_words(answer)
        # One list for all: kinds wrap each other, and a gateway in front passes on what it was told.
        return any(phrase in said for phrase in _OVERFLOWS)

    def blames_call(self, answer: Answer) -> bool:
        if answer.status != 500:
            return False
        said = error_words(answer)
        return any(phrase in said for phrase in _WRONG_CALLS)


def model_entries(answers: Answers) -> list[dict[str, Any]]:
    """The entries of `/v1/models` that have an id."""
    entries = objects(object_at(answers, "/v1/models").get("data"))
    return [entry for entry in entries if isinstance(entry.get("id"), str)]


def owners(answers: Answers) -> frozenset[str]:
    """Every `owned_by` of `/v1/models`: most servers put their own name there."""
    return frozenset(words(entry.get("owned_by") for entry in model_entries(answers)))


def _context(entry: dict[str, Any]) -> int | None:
    """No standard names it; these are the names that servers have chosen."""
    meta = as_object(entry.get("meta"))
    return largest(
        (entry.get("max_model_len"), entry.get("context_length"), entry.get("context_window"), meta.get("n_ctx"))
    )
