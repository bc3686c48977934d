"""Ollama: many models on one address, loaded when asked for; says neither how many calls it takes nor how busy it is.

Facts: docs/api.md of Ollama; not run here.
"""

from __future__ import annotations

from typing import Final

from policies.api import Lane
from router.engines.answers import largest, object_at, objects, text_at, words
from router.engines.api import Answers, Identity
from router.engines.openai import OpenAICompatible, model_entries, owners

LATEST: Final = ":latest"


class Ollama(OpenAICompatible):
    name = "ollama"
    default_lane = Lane.LATENCY
    caches_by_slot = True
    default_slots: int | None = (
        1  # its own default, OLLAMA_NUM_PARALLEL=1; what is sent beyond that would wait inside, unordered
    )
    surfaces = frozenset(
        {
            "ollama_chat",
            "ollama_generate",
            "ollama_embed",
            "ollama_show",
            "openai_chat",
            "openai_completions",
            "openai_embeddings",
            "openai_responses",
            "anthropic_messages",
        }
    )
    identity_paths: tuple[str, ...] = ("/", "/api/version", "/api/tags", "/api/ps", "/v1/models")
    health_path = "/api/version"

    def recognise(self, answers: Answers) -> Identity | None:
        version = next(iter(words([object_at(answers, "/api/version").get("version")])), "")
        tags = object_at(answers, "/api/tags")
        listed = isinstance(tags.get("models"), list)
        if b"Ollama is running" not in text_at(answers, "/") and not (version and listed):
            return None
        in_memory = objects(object_at(answers, "/api/ps").get("models"))
        names = words(model.get("name") or model.get("model") for model in objects(tags.get("models")))
        if "twolane" in owners(answers):  # a router, which has more than it lists to clients of Ollama
            names = words(entry["id"] for entry in model_entries(answers))
        return Identity(
            engine=self.name,
            version=version,
            context_tokens=largest(model.get("context_length") for model in in_memory),
            models=names if listed else None,
        )

    def same_model(self, asked: str, served: str) -> bool:
        return _full_name(asked) == _full_name(served)


def tagged(name: str) -> str:
    """As Ollama lists a name: with `:latest` where it has no tag."""
    return name if ":" in name.rpartition("/")[2] else name + LATEST


def _full_name(name: str) -> str:
    """`qwen3` is `qwen3:latest` and `registry.ollama.ai/library/qwen3:latest`; `qwen3:1b` is another model."""
    return tagged(name.lower().removeprefix("registry.ollama.ai/").removeprefix("library/"))
