"""What is read from a llama.cpp server, also with its pages switched off."""

from __future__ import annotations

from router.engines import ENGINES
from router.engines.api import Identity, Load, Loading, Ready, Sick
from tests.router.engines.fixtures import (
    LLAMACPP,
    LLAMACPP_LOADING,
    LLAMACPP_METRICS,
    LLAMACPP_MODELS,
    LLAMACPP_OFF,
    LLAMACPP_PROPS,
    LLAMACPP_ROUTER_MODELS,
    LLAMACPP_ROUTER_PROPS,
    LLAMACPP_SLOTS,
    told,
)

llamacpp = ENGINES["llamacpp"]


def test_slots_context_of_a_slot_version_and_all_names_are_read() -> None:
    assert llamacpp.recognise(LLAMACPP) == Identity(
        engine="llamacpp", version="b11549-0a1b2c3", slots=4, context_tokens=2560, models=("tiny", "small")
    )


def test_it_is_recognised_by_either_page_alone() -> None:
    by_props = llamacpp.recognise({"/props": told(LLAMACPP_PROPS)})
    by_models = llamacpp.recognise({"/v1/models": told(LLAMACPP_MODELS), "/props": told(LLAMACPP_OFF, 501)})
    assert by_props == Identity(engine="llamacpp", version="b11549-0a1b2c3", slots=4, context_tokens=2560)
    assert by_models == Identity(engine="llamacpp", context_tokens=2560, models=("tiny", "small"))


def test_a_server_of_several_models_has_no_slots_and_the_largest_context() -> None:
    answers = {"/props": told(LLAMACPP_ROUTER_PROPS), "/v1/models": told(LLAMACPP_ROUTER_MODELS)}
    assert llamacpp.recognise(answers) == Identity(
        engine="llamacpp", version="b11549-0a1b2c3", slots=None, context_tokens=4096, models=("gemma", "qwen")
    )


def test_a_model_list_without_details_as_while_loading_is_enough() -> None:
    models = {"object": "list", "data": [{"id": "tiny", "owned_by": "llamacpp", "meta": None}]}
    assert llamacpp.recognise({"/v1/models": told(models)}) == Identity(engine="llamacpp", models=("tiny",))


def test_loading_waits_and_full_slots_are_not_sickness() -> None:
    assert llamacpp.ready(told({"status": "ok"})) == Ready()
    assert llamacpp.ready(told(LLAMACPP_LOADING, 503)) == Loading()
    assert llamacpp.ready(told({"status": "loading model"}, 503)) == Loading()
    assert llamacpp.ready(told({"status": "no slot available", "slots_idle": 0}, 503)) == Ready()
    assert llamacpp.ready(told({"status": "error"}, 500)) == Sick("/health answered HTTP 500")


def test_load_comes_from_metrics() -> None:
    assert llamacpp.load({"/metrics": told(LLAMACPP_METRICS)}, ("tiny",)) == Load(running=3.0, waiting=2.0)


def test_the_cache_share_of_older_versions_is_read() -> None:
    text = LLAMACPP_METRICS + b"llamacpp:kv_cache_usage_ratio 0.25\n"
    assert llamacpp.load({"/metrics": told(text)}, None) == Load(running=3.0, waiting=2.0, cache_used_0_1=0.25)


def test_slots_tell_who_runs_where_metrics_are_switched_off() -> None:
    answers = {"/metrics": told(LLAMACPP_OFF, 501), "/slots": told(LLAMACPP_SLOTS)}
    load = llamacpp.load(answers, None)
    assert load == Load(running=2.0, waiting=None)
    assert "diary" not in repr(load)


def test_slots_of_older_versions_have_a_number_for_their_state() -> None:
    assert llamacpp.load({"/slots": told([{"state": 1}, {"state": 0}])}, None) == Load(running=1.0)


def test_where_both_are_off_the_load_is_unknown() -> None:
    assert llamacpp.load({"/metrics": told(LLAMACPP_OFF, 501), "/slots": told(LLAMACPP_OFF, 501)}, None) is None
    assert llamacpp.load({"/slots": told([])}, None) is None
    assert llamacpp.load({"/slots": told([{"id": 0}])}, None) is None
    assert llamacpp.load({}, None) is None
