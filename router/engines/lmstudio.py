"""LM Studio: a desktop application; models are loaded when asked for.

Facts: its documentation of the REST APIs v0 and v1; not run here. It answers 200 to every path, known or not, so only
what a body contains tells anything.
"""

from __future__ import annotations

from typing import Any

from policies.api import Lane
from router.engines.answers import as_object, count, largest, object_at, objects, words
from router.engines.api import Answers, Identity
from router.engines.openai import OpenAICompatible, model_entries, owners


class LmStudio(OpenAICompatible):
    name = "lmstudio"
    default_lane = Lane.LATENCY
    caches_by_slot = True
    surfaces = frozenset(
        {"openai_chat", "openai_completions", "openai_embeddings", "openai_responses", "anthropic_messages"}
    )
    identity_paths: tuple[str, ...] = ("/v1/models", "/api/v1/models", "/api/v0/models")

    def recognise(self, answers: Answers) -> Identity | None:
        native = [
            model
            for model in objects(object_at(answers, "/api/v1/models").get("models"))
            if "loaded_instances" in model
        ]
        older = [
            model
            for model in objects(object_at(answers, "/api/v0/models").get("data"))
            if "compatibility_type" in model
        ]
        if not native and not older and "organization_owner" not in owners(answers):
            return None
        configs = _loaded(native)
        # /v1/models lists what can be asked for now; the others list everything on disk.
        names = (
            words(entry["id"] for entry in model_entries(answers))
            or words(model.get("key") for model in native)
            or words(model.get("id") for model in older)
        )
        return Identity(
            engine=self.name,
            slots=sum(slots for config in configs if (slots := count(config.get("parallel"))) is not None) or None,
            context_tokens=largest(config.get("context_length") for config in configs)
            or largest(model.get("loaded_context_length") for model in older),
            models=names or None,
        )


def _loaded(native: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How each language model that is in memory now was loaded."""
    return [
        as_object(instance.get("config"))
        for model in native
        if model.get("type") != "embedding"
        for instance in objects(model.get("loaded_instances"))
    ]
