"""vLLM: batches as many calls as fit its cache, so it has no slots.

Facts: the metric names of versions 0 and 1, and server 0.32.0 as observed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from classifiers.api import CallClass
from policies.api import Lane
from router.engines.answers import largest, object_at, text_at, words
from router.engines.api import Answers, Identity, Load
from router.engines.gauges import known, mean, summed
from router.engines.openai import OpenAICompatible, model_entries, owners
from router.engines.prometheus_text import Sample

_PRIORITY = {CallClass.TTFT: -10, CallClass.MIXED: 0, CallClass.THROUGHPUT: 10}


class Vllm(OpenAICompatible):
    """`/load` is not asked: without a flag that nobody sets, it says 0 for ever."""

    name = "vllm"
    default_lane = Lane.THROUGHPUT
    surfaces = frozenset(
        {
            "openai_chat",
            "openai_completions",
            "openai_embeddings",
            "openai_responses",
            "openai_audio",
            "rerank",
            "score",
            "tokenize",
            "detokenize",
            "anthropic_messages",
            "anthropic_count_tokens",
        }
    )
    identity_paths: tuple[str, ...] = ("/v1/models", "/version")
    health_path = "/health"
    load_paths: tuple[str, ...] = ("/metrics",)

    def recognise(self, answers: Answers) -> Identity | None:
        if "vllm" not in owners(answers):
            return None
        entries = model_entries(answers)
        return Identity(
            engine=self.name,
            version=next(iter(words([object_at(answers, "/version").get("version")])), ""),
            context_tokens=largest(entry.get("max_model_len") for entry in entries),
            models=words(entry["id"] for entry in entries),
        )

    def load(self, answers: Answers, models: tuple[str, ...] | None) -> Load | None:
        metrics = text_at(answers, "/metrics")
        running = summed(known(metrics, ("vllm:num_requests_running",), models))
        waiting = summed(known(metrics, ("vllm:num_requests_waiting",), models))
        cache = mean(known(metrics, ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"), models))
        if running is None and waiting is None and cache is None:
            return None
        size = cache_size(known(metrics, ("vllm:cache_config_info",), None))
        return Load(running=running, waiting=waiting, cache_used_0_1=cache, cache_tokens=size)

    def priority(self, call_class: CallClass) -> int | None:
        """Lower first; calls that name none have 0. Refused by a server without `--scheduling-policy priority`."""
        return _PRIORITY[call_class]


def cache_size(info: Sequence[Sample]) -> int | None:
    """Tokens of the smallest cache, which is all that a prompt can find where several engines answer by turns. 0 where
    prompts are not cached."""
    sizes = [size for sample in info if (size := _tokens(sample.labels)) is not None]
    return min(sizes, default=None)


def _tokens(labels: Mapping[str, str]) -> int | None:
    if labels.get("enable_prefix_caching") == "False":
        return 0
    whole, blocks, each = [labels.get(name, "") for name in ("kv_cache_size_tokens", "num_gpu_blocks", "block_size")]
    if whole.isdecimal():
        return int(whole)
    return int(blocks) * int(each) if blocks.isdecimal() and each.isdecimal() else None
