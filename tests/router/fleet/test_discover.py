"""Looking for servers on this machine, and the settings file that is suggested for them."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.api import Lane
from router.engines.api import Identity
from router.fleet.discover import USUAL_PORTS, Found, discover, suggest_yaml
from router.settings.load import parse
from router.settings.model import Settings
from tests.router.engines.fixtures import (
    LLAMACPP,
    LLAMACPP_LOADING,
    LLAMACPP_MODELS,
    LMSTUDIO,
    OLLAMA,
    OTHER,
    SGLANG,
    VLLM,
    told,
)
from tests.router.fleet.raw_server import GARBAGE, HANG, RawServer, Script, raw_server, response

V4 = ("127.0.0.1",)
LLAMA = Identity(engine="llamacpp", version="b11549", slots=4, context_tokens=2560, models=("tiny",))
QWEN = Identity(engine="vllm", version="0.32.0", context_tokens=32768, models=("Qwen/Qwen3-4B",))


def settings_of(text: str) -> Settings:
    return parse(text, "twolane.yaml", env={})


def test_the_usual_ports_are_those_of_the_known_servers() -> None:
    assert set(USUAL_PORTS) == {8080, 8000, 8081, 30000, 11434, 1234, 5000, 10240}


async def test_all_kinds_are_found_and_listed_in_the_order_of_the_ports() -> None:
    scripts: Sequence[Script] = (VLLM, OLLAMA, LLAMACPP, OTHER, LMSTUDIO, SGLANG)
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(raw_server(script)) for script in scripts]
        found = await discover([server.port for server in servers], V4)
    assert [one.identity.engine for one in found] == ["vllm", "ollama", "llamacpp", "openai", "lmstudio", "sglang"]
    assert [one.url for one in found] == [server.url for server in servers]


@pytest.mark.parametrize(
    "script",
    [
        {},
        {"/": told(b"<html>hello</html>"), "/v1/models": told(b"<html>hello</html>")},
        {"/v1/models": told(b"forbidden", 403)},
        {"/v1/models": told({"error": "not found"})},
        {"/v1/models": GARBAGE},
        {"/v1/models": HANG},
    ],
    ids=["404", "web site", "forbidden", "some API", "garbage", "hangs"],
)
async def test_what_is_no_inference_server_is_left_out(script: Script) -> None:
    async with raw_server(script) as server:
        assert await discover([server.port], V4, timeout_s=0.2) == []


async def test_a_port_that_hangs_does_not_hold_up_the_others() -> None:
    async with raw_server({"/v1/models": HANG}) as hung, raw_server(VLLM) as server:
        began = time.monotonic()
        found = await discover([hung.port, server.port], V4, timeout_s=0.2)
        assert time.monotonic() - began < 1.0
    assert [one.url for one in found] == [server.url]


@pytest.mark.parametrize("headers", [("Server: twolane",), ("x-twolane-backend: desk",)], ids=repr)
async def test_a_router_is_no_backend_though_it_answers_like_one(headers: tuple[str, ...]) -> None:
    models = json.dumps(LLAMACPP_MODELS).encode()
    async with raw_server({**LLAMACPP, "/v1/models": response(200, models, *headers)}) as server:
        assert await discover([server.port], V4) == []
        assert server.asked == ["/v1/models"]


async def test_a_router_behind_a_proxy_is_known_by_its_list_of_models() -> None:
    models = told({"object": "list", "data": [{"id": "chat", "object": "model", "owned_by": "twolane"}]})
    async with raw_server({"/v1/models": models}) as server:
        assert await discover([server.port], V4) == []


async def test_a_server_that_is_loading_is_listed_as_such() -> None:
    loading = told(LLAMACPP_LOADING, 503)
    script: Script = {"/health": loading, "/props": loading, "/v1/models": told(LLAMACPP_MODELS)}
    async with raw_server(script) as server:
        assert await discover([server.port], V4) == [Found(server.url, Identity(engine="llamacpp"), loading=True)]


async def test_a_server_on_both_loopback_addresses_is_listed_once() -> None:
    if not _has_ipv6():
        pytest.skip("this machine has no IPv6 loopback")
    async with raw_server(VLLM) as server, raw_server(VLLM, "::1", server.port):
        assert [one.url for one in await discover([server.port])] == [server.url]


async def test_a_server_on_the_ipv6_loopback_alone_is_found() -> None:
    if not _has_ipv6():
        pytest.skip("this machine has no IPv6 loopback")
    async with raw_server(VLLM, "::1") as server:
        assert [one.url for one in await discover([server.port])] == [f"http://[::1]:{server.port}"]


async def test_two_servers_on_one_port_of_two_addresses_are_both_listed() -> None:
    if not _has_ipv6():
        pytest.skip("this machine has no IPv6 loopback")
    async with raw_server(VLLM) as server, raw_server(LLAMACPP, "::1", server.port):
        found = await discover([server.port])
    assert [one.identity.engine for one in found] == ["vllm", "llamacpp"]
    assert [backend.name for backend in settings_of(suggest_yaml(found)).backends] == [
        f"vllm-{server.port}",
        f"llamacpp-{server.port}",
    ]


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


async def test_closed_ports_cost_no_time() -> None:
    raw = RawServer({})
    server = await raw.start()
    server.close()
    await server.wait_closed()
    began = time.monotonic()
    assert await discover([raw.port] * 8) == []
    assert time.monotonic() - began < 1.0


# --- the suggestion


def test_the_suggestion_is_a_valid_file_with_names_addresses_and_lanes() -> None:
    text = suggest_yaml([Found("http://127.0.0.1:8090", LLAMA), Found("http://[::1]:8000", QWEN)])
    settings = settings_of(text)
    assert [(backend.name, backend.url, backend.lane) for backend in settings.backends] == [
        ("llamacpp-8090", "http://127.0.0.1:8090", Lane.LATENCY),
        ("vllm-8000", "http://[::1]:8000", Lane.THROUGHPUT),
    ]
    assert all(backend.engine == "auto" and backend.max_inflight is None for backend in settings.backends)


def test_the_suggestion_explains_what_was_found() -> None:
    text = suggest_yaml([Found("http://127.0.0.1:8090", LLAMA), Found("http://127.0.0.1:8000", QWEN)])
    assert "llama.cpp b11549, 4 slots, 2560 tokens of context each" in text
    assert "vLLM 0.32.0, 32768 tokens of context\n" in text
    assert '"Qwen/Qwen3-4B"' in text


def test_commented_examples_are_valid_when_the_marks_are_taken_off() -> None:
    text = suggest_yaml([Found("http://127.0.0.1:8090", LLAMA), Found("http://127.0.0.1:8000", QWEN)])
    active = text.replace("# models:\n#   chat", "models:\n  chat").replace("# classes:\n", "classes:\n")
    active = (
        active.replace("#   ttft", "  ttft").replace("#   mixed", "  mixed").replace("#   throughput", "  throughput")
    )
    settings = settings_of(active)
    assert settings.models == {"chat": {"llamacpp-8090": "tiny", "vllm-8000": "Qwen/Qwen3-4B"}}
    assert settings.classes == Settings.model_validate({"backends": [{"name": "a", "url": "http://h:1"}]}).classes


def test_the_router_does_not_listen_where_a_server_was_found() -> None:
    assert settings_of(suggest_yaml([Found("http://127.0.0.1:9000", LLAMA)])).listen.port == 8080
    moved = settings_of(suggest_yaml([Found("http://127.0.0.1:8080", LLAMA)]))
    assert moved.admin is not None
    assert (moved.listen.port, moved.admin.port) == (8088, 8089)
    assert settings_of(suggest_yaml([Found("http://127.0.0.1:8081", LLAMA)])).listen.port == 8088
    everywhere = [Found(f"http://127.0.0.1:{port}", LLAMA) for port in range(8080, 8100, 4)]
    assert settings_of(suggest_yaml(everywhere)).listen.port == 8104


def test_where_nothing_was_found_the_file_is_valid_and_says_what_to_do() -> None:
    text = suggest_yaml([])
    assert len(settings_of(text).backends) == 1
    assert "Put the address of yours here" in text


def test_a_server_that_does_not_tell_its_capacity_is_given_one_or_shown_how() -> None:
    ollama = suggest_yaml([Found("http://127.0.0.1:11434", Identity(engine="ollama", models=("qwen3:latest",)))])
    assert settings_of(ollama).backends[0].max_inflight == 1
    assert "OLLAMA_NUM_PARALLEL" in ollama
    assert "# max_inflight" in suggest_yaml([Found("http://127.0.0.1:8000", QWEN)])


def test_servers_of_one_lane_come_with_a_hint() -> None:
    two = [Found("http://127.0.0.1:8090", LLAMA), Found("http://127.0.0.1:8091", LLAMA)]
    assert "lane: throughput` " in suggest_yaml(two)
    assert "All servers are" not in suggest_yaml([*two, Found("http://127.0.0.1:8000", QWEN)])
    assert "All servers are" not in suggest_yaml(two[:1])


def test_a_loading_server_is_described_as_loading() -> None:
    text = suggest_yaml([Found("http://127.0.0.1:8090", Identity(engine="llamacpp"), loading=True)])
    assert "loading" in text
    assert len(settings_of(text).backends) == 1


def test_long_lists_of_models_are_cut() -> None:
    many = Identity(engine="openai", models=tuple(f"m{number}" for number in range(300)))
    text = suggest_yaml([Found("http://127.0.0.1:8000", many)])
    assert "m4 and 295 more" in text
    assert "m5" not in text


@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from(["http://127.0.0.1:8000", "http://[::1]:8080"]))
def test_nothing_that_a_server_says_of_itself_breaks_the_file(model: str, version: str, url: str) -> None:
    identity = Identity(engine="vllm", version=version, models=(model,))
    settings = settings_of(suggest_yaml([Found(url, identity)]))
    assert len(settings.backends) == 1
    assert settings.models == {}
