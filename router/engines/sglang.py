"""SGLang: batches up to `max_running_requests` calls.

Facts: its HTTP routes, answers and metric labels of versions 0.4 and 0.5 as documented; not run here.
"""

from __future__ import annotations

from collections.abc import Sequence

from classifiers.api import CallClass
from policies.api import Lane
from router.engines.answers import amount, count, json_at, largest, object_at, objects, text_at, words
from router.engines.api import Answers, Identity, Load
from router.engines.gauges import known, mean, summed
from router.engines.openai import OpenAICompatible, model_entries, owners
from router.engines.prometheus_text import Sample

_PRIORITY = {CallClass.TTFT: 10, CallClass.MIXED: 0, CallClass.THROUGHPUT: -10}
_RANKS = frozenset({"tp_rank", "pp_rank", "moe_ep_rank"})


class Sglang(OpenAICompatible):
    """Serves `/metrics` only with `--enable-metrics`; the JSON figures are there without."""

    name = "sglang"
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
            "ollama_chat",
            "ollama_generate",
        }
    )
    identity_paths: tuple[str, ...] = ("/v1/models", "/server_info", "/get_server_info")
    health_path = "/health"
    load_paths: tuple[str, ...] = ("/metrics", "/v1/loads", "/get_load")

    def recognise(self, answers: Answers) -> Identity | None:
        info = object_at(answers, "/server_info") or object_at(answers, "/get_server_info")
        own = "model_path" in info and ("tp_size" in info or "mem_fraction_static" in info)
        if not own and "sglang" not in owners(answers):
            return None
        entries = model_entries(answers)
        names = words([*(entry["id"] for entry in entries), info.get("served_model_name")])
        return Identity(
            engine=self.name,
            version=next(iter(words([info.get("version")])), ""),
            slots=_slots(info.get("internal_states")) or count(info.get("max_running_requests")),
            context_tokens=count(info.get("context_length"))
            or largest(entry.get("max_model_len") for entry in entries),
            models=names or None,
        )

    def load(self, answers: Answers, models: tuple[str, ...] | None) -> Load | None:
        metrics = text_at(answers, "/metrics")
        running = summed(_once(_both("num_running_reqs", metrics, models)))
        waiting = summed(_once(_both("num_queue_reqs", metrics, models)))
        if running is not None or waiting is not None:
            cache = mean(_once(_both("token_usage", metrics, models)))
            sizes = [int(sample.value) for sample in _both("max_total_num_tokens", metrics, models)]
            size = min(sizes, default=0) or None
            return Load(running=running, waiting=waiting, cache_used_0_1=cache, cache_tokens=size)
        return _from_loads(answers) or _from_get_load(answers)

    def priority(self, call_class: CallClass) -> int | None:
        """Higher first, which is what it does unless started with `--schedule-low-priority-values-first`."""
        return _PRIORITY[call_class]


def _slots(states: object) -> int | None:
    """What each data-parallel rank really runs at once, which the memory of its cards may set lower than was asked."""
    per_rank = [count(state.get("effective_max_running_requests_per_dp")) for state in objects(states)]
    known_ranks = [slots for slots in per_rank if slots is not None]
    return sum(known_ranks) or None


def _both(name: str, metrics: bytes, models: tuple[str, ...] | None) -> list[Sample]:
    return known(metrics, (f"sglang:{name}", f"sglang_{name}"), models)


def _once(found: Sequence[Sample]) -> list[Sample]:
    """Each call once.

    With priority scheduling there is one sample per priority and one for all, whose label is empty. With metrics for
    all schedulers, ranks that share the work of one model report the same calls.
    """
    totals = [sample for sample in found if sample.labels.get("priority") == ""] or found
    per_group: dict[frozenset[tuple[str, str]], Sample] = {}
    for sample in totals:
        group = frozenset(label for label in sample.labels.items() if label[0] not in _RANKS)
        seen = per_group.get(group)
        if seen is None or sample.value > seen.value:
            per_group[group] = sample
    return list(per_group.values())


def _from_loads(answers: Answers) -> Load | None:
    """Since 0.5.6: one entry per data-parallel rank."""
    ranks = objects(object_at(answers, "/v1/loads").get("loads"))
    running = [amount(rank.get("num_running_reqs")) for rank in ranks]
    waiting = [amount(rank.get("num_waiting_reqs")) for rank in ranks]
    return _added(running, waiting)


def _from_get_load(answers: Answers) -> Load | None:
    """Before: `num_reqs` counts those that wait, too."""
    ranks = objects(json_at(answers, "/get_load"))
    waiting = [amount(rank.get("num_waiting_reqs")) for rank in ranks]
    total = [amount(rank.get("num_reqs")) for rank in ranks]
    running = [
        None if every is None or idle is None else max(0.0, every - idle)
        for every, idle in zip(total, waiting, strict=True)
    ]
    return _added(running, waiting)


def _added(running: Sequence[float | None], waiting: Sequence[float | None]) -> Load | None:
    runs = [value for value in running if value is not None]
    waits = [value for value in waiting if value is not None]
    if not runs and not waits:
        return None
    return Load(running=sum(runs) if runs else None, waiting=sum(waits) if waits else None)
