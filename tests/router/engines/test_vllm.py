"""What is read from a vLLM server, of either generation of names."""

from __future__ import annotations

from router.engines import ENGINES
from router.engines.api import Identity, Load
from tests.router.engines.fixtures import VLLM, VLLM_METRICS, VLLM_MODELS, told

vllm = ENGINES["vllm"]


def test_version_context_and_all_served_names_are_read_and_there_are_no_slots() -> None:
    assert vllm.recognise(VLLM) == Identity(
        engine="vllm", version="0.32.0", slots=None, context_tokens=32768, models=("qwen3", "my-lora")
    )


def test_the_model_list_alone_is_enough() -> None:
    identity = vllm.recognise({"/v1/models": told(VLLM_MODELS)})
    assert identity is not None
    assert identity.version == ""


def test_load_of_the_present_names() -> None:
    assert vllm.load({"/metrics": told(VLLM_METRICS)}, ("qwen3", "my-lora")) == Load(
        running=4.0, waiting=6.0, cache_used_0_1=0.25
    )


def test_load_of_the_names_of_version_0() -> None:
    text = VLLM_METRICS.replace(b"vllm:kv_cache_usage_perc", b"vllm:gpu_cache_usage_perc")
    assert vllm.load({"/metrics": told(text)}, None) == Load(running=4.0, waiting=6.0, cache_used_0_1=0.25)


def test_engines_of_one_server_add_up_and_their_caches_are_averaged() -> None:
    second = VLLM_METRICS.replace(b'engine="0"', b'engine="1"').replace(b"0.25", b"0.75")
    assert vllm.load({"/metrics": told(VLLM_METRICS + second)}, ("qwen3",)) == Load(
        running=8.0, waiting=12.0, cache_used_0_1=0.5
    )


def test_the_size_of_the_cache_is_that_of_the_smallest_engine() -> None:
    info = b'vllm:cache_config_info{block_size="%b",engine="0",num_gpu_blocks="%b"} 1.0\n'
    text = VLLM_METRICS + info % (b"16", b"2000") + info % (b"16", b"1500")
    load = vllm.load({"/metrics": told(text)}, None)
    assert load is not None
    assert load.cache_tokens == 24_000
    said = b'vllm:cache_config_info{block_size="128",kv_cache_size_tokens="524288",num_gpu_blocks="9"} 1.0\n'
    load = vllm.load({"/metrics": told(VLLM_METRICS + said)}, None)
    assert load is not None
    assert load.cache_tokens == 524_288
    switched_off = said.replace(b"{", b'{enable_prefix_caching="False",')
    load = vllm.load({"/metrics": told(VLLM_METRICS + switched_off)}, None)
    assert load is not None
    assert load.cache_tokens == 0
    unknown = vllm.load({"/metrics": told(VLLM_METRICS + info % (b"16", b"None"))}, None)
    assert unknown is not None
    assert unknown.cache_tokens is None


def test_a_scrape_without_the_figures_is_unknown_and_not_idle() -> None:
    assert vllm.load({"/metrics": told(b"python_info 1.0\n")}, None) is None
    assert vllm.load({"/metrics": told(VLLM_METRICS)}, ("another",)) is None
    assert vllm.load({"/metrics": told(VLLM_METRICS, 503)}, None) is None
