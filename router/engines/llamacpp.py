"""llama.cpp's own server: fixed slots, one context size for each, first come first served inside.

Facts: tools/server/README.md of llama.cpp, and servers b10434, b11434 and b11549 as observed.
"""

from __future__ import annotations

from policies.api import Lane
from router.engines.answers import as_object, count, error_words, json_at, largest, object_at, objects, text_at, words
from router.engines.api import Answer, Answers, Identity, Load, Loading, Ready, Sick
from router.engines.gauges import known, mean, summed
from router.engines.openai import OpenAICompatible, model_entries, owners


class LlamaCpp(OpenAICompatible):
    """`/metrics` and `/slots` may be switched off, and a server with several models ("router mode") has neither."""

    name = "llamacpp"
    default_lane = Lane.LATENCY
    caches_by_slot = True
    surfaces = frozenset(
        {
            "openai_chat",
            "openai_completions",
            "openai_embeddings",
            "openai_responses",
            "openai_audio",
            "rerank",
            "tokenize",
            "detokenize",
            "anthropic_messages",
            "anthropic_count_tokens",
            "llamacpp_completion",
            "llamacpp_infill",
            "llamacpp_apply_template",
        }
    )
    identity_paths: tuple[str, ...] = ("/health", "/props", "/v1/models")
    health_path = "/health"
    # /metrics first: asking for it does not keep a server awake that sleeps when idle, and it also counts who waits.
    load_paths: tuple[str, ...] = ("/metrics", "/slots")

    def recognise(self, answers: Answers) -> Identity | None:
        props = object_at(answers, "/props")
        defaults = as_object(props.get("default_generation_settings"))
        if not defaults and "total_slots" not in props and "llamacpp" not in owners(answers):
            return None
        entries = model_entries(answers)
        names = [name for entry in entries for name in (entry["id"], *_aliases(entry.get("aliases")))]
        per_model = [as_object(entry.get("meta")).get("n_ctx") for entry in entries]
        return Identity(
            engine=self.name,
            version=next(iter(words([props.get("build_info")])), ""),
            slots=count(props.get("total_slots")),
            context_tokens=count(defaults.get("n_ctx")) or largest(per_model),
            models=words(names) or None,
        )

    def ready(self, answer: Answer) -> Ready | Loading | Sick:
        if answer.status == 503 and "no slot available" in error_words(answer):  # before 2024: busy, not sick
            return Ready()
        return super().ready(answer)

    def load(self, answers: Answers, models: tuple[str, ...] | None) -> Load | None:
        metrics = text_at(answers, "/metrics")
        running = summed(known(metrics, ("llamacpp:requests_processing",), None))
        waiting = summed(known(metrics, ("llamacpp:requests_deferred",), None))
        if running is not None or waiting is not None:
            cache = mean(known(metrics, ("llamacpp:kv_cache_usage_ratio",), None))  # gone since 2025
            return Load(running=running, waiting=waiting, cache_used_0_1=cache)
        slots = objects(json_at(answers, "/slots"))
        busy = [slot.get("is_processing", slot.get("state")) for slot in slots]
        if not busy or not all(isinstance(state, bool | int) for state in busy):
            return None
        return Load(running=float(sum(1 for state in busy if state)))


def _aliases(value: object) -> tuple[str, ...]:
    return words(value) if isinstance(value, list) else ()
