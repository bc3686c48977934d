"""What the emulated servers say of themselves: /metrics with the names of the real ones, /slots, /props, /v1/models."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import orjson

from bench.emulator.dialects import CREATED
from router.simulate.engine import Load, SimulatedEngine
from router.simulate.sequence import Sequence as Call
from router.simulate.sequence import Stage

_FIRST_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
    1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
_TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
_CALL_S = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0,
    40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0,
)  # fmt: skip
_TOKENS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0, 20000.0)


class Histogram:
    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        self._counts[bisect_left(self._bounds, value)] += times
        self._sum += value * times

    def lines(self, name: str, labels: str) -> Iterable[str]:
        totals = list(accumulate(self._counts))
        yield f"# TYPE {name} histogram"
        for bound, total in zip((*map(str, self._bounds), "+Inf"), totals, strict=True):
            yield f'{name}_bucket{{{labels},le="{bound}"}} {total}'
        yield f"{name}_count{{{labels}}} {totals[-1]}"
        yield f"{name}_sum{{{labels}}} {self._sum}"


class Totals:
    """Sums over the calls that have ended."""

    def __init__(self) -> None:
        self.calls = 0
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.prompt_s = 0.0
        self.predicted_tokens = 0
        self.predicted_s = 0.0
        self.longest_tokens = 0
        self.first_s = Histogram(_FIRST_S)
        self.token_s = Histogram(_TOKEN_S)
        self.mean_token_s = Histogram(_TOKEN_S)
        self.call_s = Histogram(_CALL_S)
        self.queue_s = Histogram(_CALL_S)
        self.prefill_s = Histogram(_CALL_S)
        self.decode_s = Histogram(_CALL_S)
        self.prompt_sizes = Histogram(_TOKENS)
        self.answer_sizes = Histogram(_TOKENS)

    def add(self, call: Call) -> None:
        assert call.admitted_s is not None
        assert call.first_s is not None
        assert call.end_s is not None
        prefill_s, decode_s = call.first_s - call.admitted_s, call.end_s - call.first_s
        self.calls += 1
        self.prompt_tokens += call.prompt_tokens
        self.cached_tokens += call.cached_tokens
        self.prompt_s += prefill_s
        self.predicted_tokens += call.output_tokens
        self.predicted_s += decode_s
        self.longest_tokens = max(self.longest_tokens, call.prompt_tokens + call.output_tokens)
        self.first_s.observe(call.first_s - call.submitted_s)
        if gaps := call.output_tokens - 1:
            self.token_s.observe(decode_s / gaps, gaps)
            self.mean_token_s.observe(decode_s / gaps)
        self.call_s.observe(call.end_s - call.submitted_s)
        self.queue_s.observe(call.admitted_s - call.submitted_s)
        self.prefill_s.observe(prefill_s)
        self.decode_s.observe(decode_s)
        self.prompt_sizes.observe(call.prompt_tokens)
        self.answer_sizes.observe(call.output_tokens)


def llamacpp_metrics(totals: Totals, load: Load) -> bytes:
    computed = totals.prompt_tokens - totals.cached_tokens
    counters = {
        "prompt_tokens_total": computed,
        "prompt_tokens_cached_total": totals.cached_tokens,
        "prompt_seconds_total": totals.prompt_s,
        "tokens_predicted_total": totals.predicted_tokens,
        "tokens_predicted_seconds_total": totals.predicted_s,
        "n_tokens_max": totals.longest_tokens,
    }
    gauges = {
        "prompt_tokens_seconds": computed / totals.prompt_s if totals.prompt_s else 0,
        "predicted_tokens_seconds": totals.predicted_tokens / totals.predicted_s if totals.predicted_s else 0,
        "requests_processing": load.running,
        "requests_deferred": load.waiting,
    }
    lines = [*_plain("llamacpp", "counter", counters), *_plain("llamacpp", "gauge", gauges)]
    return "\n".join((*lines, "")).encode()


def _plain(prefix: str, kind: str, values: dict[str, float]) -> Iterable[str]:
    for name, value in values.items():
        yield f"# TYPE {prefix}:{name} {kind}"
        yield f"{prefix}:{name} {value:g}"


def vllm_metrics(totals: Totals, load: Load, engine: SimulatedEngine, model: str) -> bytes:
    labels = f'engine="0",model_name="{model}"'
    waiting = "vllm:num_requests_waiting_by_reason"
    spec = engine.spec
    lines = [
        "# TYPE vllm:num_requests_running gauge",
        f"vllm:num_requests_running{{{labels}}} {float(load.running)}",
        "# TYPE vllm:num_requests_waiting gauge",
        f"vllm:num_requests_waiting{{{labels}}} {float(load.waiting)}",
        f"# TYPE {waiting} gauge",
        f'{waiting}{{{labels},reason="capacity"}} {float(load.waiting)}',
        f'{waiting}{{{labels},reason="deferred"}} 0.0',
        "# TYPE vllm:kv_cache_usage_perc gauge",
        f"vllm:kv_cache_usage_perc{{{labels}}} {load.cache_used_0_1}",
        "# TYPE vllm:cache_config_info gauge",
        f'vllm:cache_config_info{{block_size="{spec.block_tokens}",enable_prefix_caching="True",engine="0",'
        f'kv_cache_size_tokens="{spec.cache_tokens}",num_gpu_blocks="{spec.cache_tokens // spec.block_tokens}"}} 1.0',
    ]
    counters = {
        "prefix_cache_queries_total": totals.prompt_tokens,
        "prefix_cache_hits_total": totals.cached_tokens,
        "num_preemptions_total": engine.preemptions,
        "prompt_tokens_total": totals.prompt_tokens,
        "prompt_tokens_cached_total": totals.cached_tokens,
        "generation_tokens_total": totals.predicted_tokens,
    }
    for name, value in counters.items():
        lines += [f"# TYPE vllm:{name.removesuffix('_total')} counter", f"vllm:{name}{{{labels}}} {float(value)}"]
    lines.append("# TYPE vllm:request_success counter")
    lines.append(f'vllm:request_success_total{{{labels},finished_reason="stop"}} {float(totals.calls)}')
    histograms = {
        "time_to_first_token_seconds": totals.first_s,
        "inter_token_latency_seconds": totals.token_s,
        "request_time_per_output_token_seconds": totals.mean_token_s,
        "e2e_request_latency_seconds": totals.call_s,
        "request_queue_time_seconds": totals.queue_s,
        "request_prefill_time_seconds": totals.prefill_s,
        "request_decode_time_seconds": totals.decode_s,
        "request_prompt_tokens": totals.prompt_sizes,
        "request_generation_tokens": totals.answer_sizes,
    }
    for name, histogram in histograms.items():
        lines += histogram.lines(f"vllm:{name}", labels)
    return "\n".join((*lines, "")).encode()


def llamacpp_props(engine: SimulatedEngine, model: str) -> bytes:
    return orjson.dumps(
        {
            "default_generation_settings": {"params": {}, "n_ctx": engine.spec.context_tokens},
            "total_slots": engine.spec.sequences,
            "model_alias": model,
            "model_path": f"models/{model}.gguf",
            "modalities": {"vision": False, "video": False, "audio": False},
            "endpoint_slots": True,
            "endpoint_props": True,
            "endpoint_metrics": True,
            "build_info": "b11549-emulated",
            "is_sleeping": False,
        }
    )


def llamacpp_slots(engine: SimulatedEngine) -> list[dict[str, Any]]:
    busy = {call.room[0]: call for call in engine.running()}
    return [_slot(number, busy.get(number), engine) for number in range(engine.spec.sequences)]


def _slot(number: int, call: Call | None, engine: SimulatedEngine) -> dict[str, Any]:
    slot: dict[str, Any] = {
        "id": number,
        "n_ctx": engine.spec.context_tokens,
        "speculative": False,
        "is_processing": call is not None,
    }
    if call is not None:
        done = call.prompt_tokens if call.stage is Stage.DECODE else call.prompt_tokens - call.left_tokens
        decoded = engine.tokens_out(call)
        slot |= {
            "id_task": call.order,
            "n_prompt_tokens": call.prompt_tokens,
            "n_prompt_tokens_processed": done - call.cached_tokens,
            "n_prompt_tokens_cache": call.cached_tokens,
            "next_token": [{"has_next_token": True, "n_remain": -1, "n_decoded": decoded}],
        }
    return slot


def models(dialect: str, model: str, context_tokens: int) -> bytes:
    entry: dict[str, Any] = {"id": model, "object": "model", "created": CREATED, "owned_by": dialect}
    if dialect == "vllm":
        entry |= {"root": model, "parent": None, "max_model_len": context_tokens}
        return orjson.dumps({"object": "list", "data": [entry]})
    entry |= {"aliases": [model], "tags": [], "meta": {"n_ctx": context_tokens, "n_ctx_train": context_tokens}}
    named = {"name": model, "model": model, "type": "model", "capabilities": ["completion"]}
    return orjson.dumps({"models": [named], "object": "list", "data": [entry]})
