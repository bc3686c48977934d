"""Asking one backend, which may hang, lie, talk garbage, be loading or be another server than a moment ago."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count

import pytest
from structlog.testing import capture_logs

from router.engines.api import Answer, Identity, Load, Loading, Ready, Sick
from router.fleet import probes
from router.fleet.probes import Asker, Prober
from router.settings.backend import Backend
from tests.router.engines.fixtures import (
    LLAMACPP,
    LLAMACPP_LOADING,
    LLAMACPP_METRICS,
    LLAMACPP_MODELS,
    LLAMACPP_OFF,
    LLAMACPP_SLOTS,
    OLLAMA,
    OTHER,
    SGLANG,
    VLLM,
    VLLM_METRICS,
    told,
)
from tests.router.fleet.raw_server import GARBAGE, HANG, Script, raw_server, response

SHORT_S = 0.15
LLAMACPP_IS = Identity(
    engine="llamacpp", version="b11549-0a1b2c3", slots=4, context_tokens=2560, models=("tiny", "small")
)


def turned(answers: Iterator[Answer | bytes]) -> Callable[[], Answer | bytes]:
    return lambda: next(answers)


@asynccontextmanager
async def prober(
    url: str, *, engine: str = "auto", timeout_s: float = 2.0, clock: Callable[[], float] = time.monotonic, **more: str
) -> AsyncIterator[Prober]:
    backend = Backend.model_validate({"name": "desk", "url": url, "engine": engine, **more})
    asking = Prober(backend, clock=clock, timeout_s=timeout_s)
    try:
        yield asking
    finally:
        await asking.close()


# --- asking


@pytest.mark.parametrize(
    "raw",
    [
        HANG,
        GARBAGE,
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000,
        response(200, b"x" * (probes.MOST_BYTES + 1)),
    ],
    ids=["hangs", "garbage", "closes", "cut off", "bad chunk", "bad gzip", "endless head", "huge"],
)
async def test_what_goes_wrong_on_the_way_is_no_answer(raw: bytes) -> None:
    async with raw_server({"/x": raw, "/y": told(b"fine")}) as server:
        asker = Asker(server.url)
        replies = await asker.ask_all(("/x", "/y"), 0.5)
        await asker.close()
    assert list(replies) == ["/y"]
    assert replies["/y"].answer == Answer(200, b"fine")


async def test_a_refused_connection_and_a_name_without_an_address_are_no_answer() -> None:
    async with raw_server({}) as server:
        closed = server.url
    for url in (closed, "http://no-such-host.invalid:80", "http://a..b:80", "http://[::1]:1"):
        asker = Asker(url)
        assert await asker.ask("/v1/models", 1.0) is None
        await asker.close()


async def test_redirects_are_answers_and_are_not_followed() -> None:
    async with raw_server({"/x": response(302, b"", "Location: /y"), "/y": told(b"elsewhere")}) as server:
        asker = Asker(server.url)
        reply = await asker.ask("/x", 1.0)
        await asker.close()
    assert reply is not None
    assert reply.answer.status == 302
    assert server.asked == ["/x"]


async def test_a_body_that_is_compressed_unasked_is_read() -> None:
    body = gzip.compress(b"hello")
    async with raw_server({"/x": response(200, body, "Content-Encoding: gzip")}) as server:
        asker = Asker(server.url)
        reply = await asker.ask("/x", 1.0)
        await asker.close()
    assert reply is not None
    assert reply.answer.body == b"hello"
    assert "accept-encoding: identity" in server.heads[0].lower()


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with raw_server({"/x": told(b"")}) as server:
        asker = Asker(server.url)
        assert await asker.ask("/x", 1.0) is not None
        await asker.close()


@pytest.mark.parametrize(
    "headers", [("Server: twolane",), ("server: Twolane/0.1",), ("X-Twolane-Backend: desk",)], ids=repr
)
async def test_an_answer_of_a_router_is_told_from_that_of_a_server(headers: tuple[str, ...]) -> None:
    script = {"/r": response(200, b"{}", *headers), "/s": response(200, b"{}", "Server: llama.cpp")}
    async with raw_server(script) as server:
        asker = Asker(server.url)
        replies = await asker.ask_all(("/r", "/s"), 1.0)
        await asker.close()
    assert replies["/r"].from_router
    assert not replies["/s"].from_router


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_the_address_may_be_written_with_or_without_v1(suffix: str) -> None:
    """Field case: `/v1/v1/models` is 404."""
    async with raw_server(VLLM) as server, prober(server.url + suffix) as asking:
        identity = await asking.identify()
    assert isinstance(identity, Identity)
    assert not [path for path in server.asked if "/v1/v1" in path or "//" in path]


async def test_the_key_is_sent_to_the_backend_and_appears_nowhere_else() -> None:
    with capture_logs() as logs:
        async with raw_server({**LLAMACPP}) as server, prober(server.url, api_key="s3cret") as asking:
            await asking.identify()
            probe = await asking.check()
            shown = repr((asking, probe, asking.identity, vars(asking)["_asker"]))
    assert all("Authorization: Bearer s3cret" in head for head in server.heads)
    assert "s3cret" not in repr(logs) + shown


async def test_without_a_key_no_authorization_is_sent() -> None:
    async with raw_server({**LLAMACPP}) as server, prober(server.url) as asking:
        await asking.identify()
    assert not [head for head in server.heads if "authorization" in head.lower()]


# --- what it is


async def test_a_server_of_unknown_kind_is_recognised() -> None:
    async with raw_server(LLAMACPP) as server, prober(server.url) as asking:
        assert await asking.identify() == LLAMACPP_IS
        assert asking.identity == LLAMACPP_IS
        assert repr(asking.engine) == "<engine llamacpp>"


async def test_hung_paths_do_not_hold_up_the_others_beyond_the_timeout() -> None:
    script: Script = {**LLAMACPP, "/health": HANG, "/api/tags": HANG, "/": HANG, "/version": HANG}
    async with raw_server(script) as server, prober(server.url, timeout_s=SHORT_S) as asking:
        began = time.monotonic()
        assert await asking.identify() == LLAMACPP_IS
        assert time.monotonic() - began < SHORT_S * 4


async def test_a_server_that_says_nothing_is_not_identified() -> None:
    script = dict.fromkeys(LLAMACPP, HANG)
    async with raw_server(script) as server, prober(server.url, timeout_s=SHORT_S) as asking:
        assert await asking.identify() is None
        assert asking.identity is None


async def test_a_web_site_is_not_identified() -> None:
    async with raw_server({"/": told(b"<html>hi</html>")}) as server, prober(server.url) as asking:
        assert await asking.identify() is None
        probe = await asking.check()
    assert isinstance(probe.readiness, Sick)
    assert "set engine" in probe.readiness.reason


async def test_a_server_that_is_loading_is_not_recognised_by_the_half_that_answers() -> None:
    """Field case: `/v1/models` answers before the weights are in."""
    loading = told(LLAMACPP_LOADING, 503)
    script: Script = {"/health": loading, "/props": loading, "/v1/models": told(LLAMACPP_MODELS)}
    async with raw_server(script) as server, prober(server.url) as asking:
        assert await asking.identify() == Loading()
        assert (await asking.check()).readiness == Loading()
        assert asking.identity is None

        before = len(server.asked)
        server.script.update(LLAMACPP)
        assert await asking.identify() == LLAMACPP_IS
        assert sorted(server.asked[before:]) == ["/health", "/props", "/v1/models"]


async def test_a_recognised_server_is_asked_only_what_its_kind_knows() -> None:
    async with raw_server(VLLM) as server, prober(server.url) as asking:
        await asking.identify()
        server.asked.clear()
        await asking.identify()
    assert sorted(server.asked) == ["/v1/models", "/version"]


async def test_another_server_behind_the_same_address_is_recognised() -> None:
    async with raw_server(VLLM) as server, prober(server.url) as asking:
        for kind, script in (
            ("vllm", VLLM),
            ("llamacpp", LLAMACPP),
            ("ollama", OLLAMA),
            ("openai", OTHER),
            ("sglang", SGLANG),
        ):
            server.script = dict(script)
            identity = await asking.identify()
            assert isinstance(identity, Identity)
            assert identity.engine == kind
            assert repr(asking.engine) == f"<engine {kind}>"


async def test_the_last_resort_does_not_stick() -> None:
    slow: Script = {**OLLAMA, "/": HANG, "/api/version": HANG, "/api/tags": HANG}
    async with raw_server(slow) as server, prober(server.url, timeout_s=SHORT_S) as asking:
        first = await asking.identify()
        server.script = dict(OLLAMA)
        second = await asking.identify()
    assert isinstance(first, Identity)
    assert isinstance(second, Identity)
    assert [first.engine, second.engine] == ["openai", "ollama"]


async def test_what_a_busy_server_does_not_say_again_is_remembered() -> None:
    async with raw_server(LLAMACPP) as server, prober(server.url, timeout_s=SHORT_S) as asking:
        await asking.identify()
        server.script["/props"] = HANG
        assert await asking.identify() == LLAMACPP_IS
        server.script["/props"] = told(LLAMACPP_OFF, 501)
        assert await asking.identify() == Identity(engine="llamacpp", context_tokens=2560, models=("tiny", "small"))


async def test_a_recognised_server_that_is_slow_is_not_asked_for_the_paths_of_other_kinds() -> None:
    async with raw_server(LLAMACPP) as server, prober(server.url, timeout_s=SHORT_S) as asking:
        await asking.identify()
        server.script = dict.fromkeys(LLAMACPP, HANG)
        server.asked.clear()
        await asking.identify()
        await asking.identify()
    assert set(server.asked) <= {"/health", "/props", "/v1/models"}


async def test_an_outage_does_not_forget_what_the_server_was() -> None:
    async with raw_server(LLAMACPP) as server, prober(server.url) as asking:
        await asking.identify()
        server.script = dict.fromkeys(LLAMACPP, b"")
        assert await asking.identify() is None
        assert asking.identity == LLAMACPP_IS


async def test_the_configured_kind_stands_and_only_its_paths_are_asked() -> None:
    hidden = {"/v1/models": told({"object": "list", "data": [{"id": "m", "owned_by": "gateway"}]})}
    async with raw_server(hidden) as server, prober(server.url, engine="vllm") as asking:
        assert await asking.identify() == Identity(engine="vllm", models=("m",))
    assert sorted(server.asked) == ["/v1/models", "/version"]


async def test_a_configured_kind_that_says_nothing_of_itself_may_be_tried_with_any_model() -> None:
    async with raw_server({"/version": told({"version": "1"})}) as server, prober(server.url, engine="vllm") as asking:
        assert await asking.identify() == Identity(engine="vllm")
        server.script = {"/version": told(b"bad gateway", 502), "/v1/models": told(b"bad gateway", 502)}
        assert await asking.identify() is None
        assert asking.identity == Identity(engine="vllm")


# --- how it is


async def test_health_and_load_are_asked_at_once_and_timed_by_the_given_clock() -> None:
    ticks = count(100.0, 0.5)
    script: Script = {**LLAMACPP, "/metrics": told(LLAMACPP_METRICS)}
    async with raw_server(script) as server, prober(server.url, clock=lambda: next(ticks)) as asking:
        await asking.identify()
        probe = await asking.check()
    assert probe.readiness == Ready()
    assert probe.load == Load(running=3.0, waiting=2.0)
    assert (probe.at_s, probe.took_s) == (100.0, 0.5)


async def test_a_check_of_an_unknown_server_identifies_it_first() -> None:
    script: Script = {**VLLM, "/metrics": told(VLLM_METRICS)}
    async with raw_server(script) as server, prober(server.url) as asking:
        probe = await asking.check()
        assert asking.identity is not None
        assert asking.identity.engine == "vllm"
    assert (probe.readiness, probe.load) == (Ready(), Load(running=4.0, waiting=6.0, cache_used_0_1=0.25))


async def test_a_server_that_is_gone_gives_no_readiness_and_no_load() -> None:
    async with raw_server(LLAMACPP) as server:
        url = server.url
    async with prober(url) as unknown, prober(url, engine="llamacpp") as configured:
        for asking in (unknown, configured):
            probe = await asking.check()
            assert (probe.readiness, probe.load) == (None, None)


async def test_readiness_follows_loading_within_one_probe() -> None:
    health = turned(iter([told(LLAMACPP_LOADING, 503), told({"status": "ok"})]))
    async with raw_server({**LLAMACPP, "/health": health}) as server, prober(server.url, engine="llamacpp") as asking:
        assert (await asking.check()).readiness == Loading()
        assert (await asking.check()).readiness == Ready()


async def test_missing_metrics_are_normal_logged_once_and_not_asked_for_again() -> None:
    """Field case: `/metrics` 501 and `/slots` 404."""
    script: Script = {**LLAMACPP, "/metrics": told(LLAMACPP_OFF, 501)}
    with capture_logs() as logs:
        async with raw_server(script) as server, prober(server.url) as asking:
            await asking.identify()
            found = [await asking.check() for _ in range(5)]
            await asking.identify()
            found += [await asking.check() for _ in range(2)]
    assert {(probe.readiness, probe.load) for probe in found} == {(Ready(), None)}
    assert [log["event"] for log in logs] == ["metrics_missing"]
    assert logs[0]["backend"] == "desk"
    assert "501" in repr(logs[0]["said"])
    assert server.asked.count("/metrics") == 2, "once after each identification"


async def test_metrics_that_are_switched_on_later_are_found() -> None:
    async with raw_server({**LLAMACPP, "/metrics": told(LLAMACPP_OFF, 501)}) as server, prober(server.url) as asking:
        await asking.identify()
        assert (await asking.check()).load is None
        server.script["/metrics"] = told(LLAMACPP_METRICS)
        await asking.identify()
        assert (await asking.check()).load == Load(running=3.0, waiting=2.0)


async def test_slots_stand_in_for_metrics_and_prompts_are_not_kept() -> None:
    script: Script = {**LLAMACPP, "/metrics": told(LLAMACPP_OFF, 501), "/slots": told(LLAMACPP_SLOTS)}
    with capture_logs() as logs:
        async with raw_server(script) as server, prober(server.url) as asking:
            await asking.identify()
            probe = await asking.check()
            server.asked.clear()
            await asking.check()
            kept = repr((probe, vars(asking), asking.identity))
    assert probe.load == Load(running=2.0)
    assert "diary" not in kept + repr(logs)
    assert "/metrics" not in server.asked, "the path that works is asked first"
    assert logs == []


async def test_frozen_metrics_neither_fail_nor_delay_health_beyond_the_timeout() -> None:
    script: Script = {**LLAMACPP, "/metrics": HANG, "/slots": HANG}
    with capture_logs() as logs:
        async with raw_server(script) as server, prober(server.url, timeout_s=SHORT_S) as asking:
            await asking.identify()
            began = time.monotonic()
            found = [await asking.check() for _ in range(3)]
            assert time.monotonic() - began < SHORT_S * 3 * 2
            assert "/slots" not in server.asked, "it would hang in the same place"
            server.script["/metrics"] = told(LLAMACPP_METRICS)
            thawed = await asking.check()
    assert {(probe.readiness, probe.load) for probe in found} == {(Ready(), None)}
    assert thawed.load == Load(running=3.0, waiting=2.0)
    assert [log["event"] for log in logs] == ["metrics_missing"]


async def test_late_health_is_no_answer_although_the_load_is_told() -> None:
    script: Script = {**LLAMACPP, "/health": HANG, "/metrics": told(LLAMACPP_METRICS)}
    async with raw_server(script) as server, prober(server.url, timeout_s=SHORT_S, engine="llamacpp") as asking:
        probe = await asking.check()
    assert (probe.readiness, probe.load) == (None, Load(running=3.0, waiting=2.0))


async def test_a_server_that_is_loading_or_gone_is_not_accused_of_missing_metrics() -> None:
    script = {"/health": told(LLAMACPP_LOADING, 503), "/metrics": told(LLAMACPP_LOADING, 503)}
    with capture_logs() as logs:
        async with raw_server(script) as server, prober(server.url, engine="llamacpp") as asking:
            await asking.check()
    assert logs == []


async def test_a_kind_without_metrics_is_not_accused_of_missing_them() -> None:
    with capture_logs() as logs:
        async with raw_server(OLLAMA) as server, prober(server.url) as asking:
            await asking.identify()
            assert (await asking.check()).readiness == Ready()
    assert logs == []


async def test_lines_of_models_that_the_server_does_not_list_are_left_out() -> None:
    other = VLLM_METRICS.replace(b'"qwen3"', b'"someone-elses"')
    script: Script = {**VLLM, "/metrics": told(VLLM_METRICS + other)}
    async with raw_server(script) as server, prober(server.url) as asking:
        assert (await asking.check()).load == Load(running=4.0, waiting=6.0, cache_used_0_1=0.25)


async def test_probes_do_not_pile_up() -> None:
    script: Script = {"/health": HANG, "/metrics": HANG}
    async with raw_server(script) as server, prober(server.url, timeout_s=SHORT_S, engine="llamacpp") as asking:
        await asyncio.gather(*(asking.check() for _ in range(3)))
    assert server.asked.count("/health") == 3
    assert server.most_open <= 2
