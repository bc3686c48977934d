"""What is read from an SGLang server: its labels repeat calls, and its metrics may be off."""

from __future__ import annotations

from router.engines import ENGINES
from router.engines.api import Identity, Load
from tests.router.engines.fixtures import SGLANG, SGLANG_INFO, SGLANG_METRICS, SGLANG_MODELS, told

sglang = ENGINES["sglang"]
BUSY = Load(running=5.0, waiting=7.0, cache_used_0_1=0.5)


def load(metrics: bytes) -> Load | None:
    return sglang.load({"/metrics": told(metrics)}, ("llama",))


def test_identity_has_what_really_runs_at_once_and_the_context_of_the_model() -> None:
    assert sglang.recognise(SGLANG) == Identity(
        engine="sglang", version="0.5.9", slots=104, context_tokens=131072, models=("llama",)
    )


def test_the_page_of_older_versions_is_read_too() -> None:
    info = {**SGLANG_INFO, "internal_states": [], "context_length": 8192}
    identity = sglang.recognise({"/get_server_info": told(info)})
    assert identity == Identity(engine="sglang", version="0.5.9", slots=128, context_tokens=8192, models=("llama",))


def test_the_model_list_alone_is_enough() -> None:
    assert sglang.recognise({"/v1/models": told(SGLANG_MODELS)}) == Identity(
        engine="sglang", context_tokens=131072, models=("llama",)
    )


def test_both_prefixes_are_read_and_counted_once() -> None:
    underscore = SGLANG_METRICS.replace(b"sglang:", b"sglang_")
    assert load(SGLANG_METRICS) == load(underscore) == load(SGLANG_METRICS + underscore) == BUSY


def test_ranks_that_share_a_model_report_the_same_calls_and_are_counted_once() -> None:
    assert load(SGLANG_METRICS + SGLANG_METRICS.replace(b'tp_rank="0"', b'tp_rank="1"')) == BUSY


def test_the_size_of_the_cache_is_read() -> None:
    found = load(SGLANG_METRICS + b'sglang:max_total_num_tokens{model_name="llama"} 71000.0\n')
    assert found is not None
    assert found.cache_tokens == 71_000


def test_data_parallel_ranks_add_up() -> None:
    ranks = b"".join(SGLANG_METRICS.replace(b'tp_rank="0"', b'dp_rank="%d",tp_rank="0"' % rank) for rank in (0, 1))
    assert load(ranks) == Load(running=10.0, waiting=14.0, cache_used_0_1=0.5)


def test_with_priority_scheduling_the_sample_for_all_priorities_counts() -> None:
    def with_priority(value: bytes) -> bytes:
        return SGLANG_METRICS.replace(b'tp_rank="0"', b'priority="' + value + b'",tp_rank="0"')

    assert load(with_priority(b"") + with_priority(b"0") + with_priority(b"-1")) == BUSY


def test_without_metrics_the_json_figures_serve() -> None:
    ranks = [
        {"dp_rank": 0, "num_running_reqs": 3, "num_waiting_reqs": 1},
        {"dp_rank": 1, "num_running_reqs": 2, "num_waiting_reqs": 0},
    ]
    assert sglang.load({"/v1/loads": told({"loads": ranks})}, None) == Load(running=5.0, waiting=1.0)
    older = [{"dp_rank": 0, "num_reqs": 6, "num_waiting_reqs": 4, "num_tokens": 99}]
    assert sglang.load({"/get_load": told(older)}, None) == Load(running=2.0, waiting=4.0)


def test_where_nothing_is_told_the_load_is_unknown() -> None:
    assert load(b"") is None
    assert sglang.load({"/v1/loads": told({"loads": []}), "/get_load": told([])}, None) is None
    assert sglang.load({"/v1/loads": told({"loads": [{"num_running_reqs": "many"}]})}, None) is None
