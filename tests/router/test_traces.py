"""Traces against a receiver that speaks OTLP: real protobuf over real HTTP, from calls through a real router."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from router.settings.model import Settings
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CHAT = {"model": "m", "messages": [{"role": "user", "content": "a secret word"}], "stream": True}


class Receiver:
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.raw = b""
        self.port = 0

    async def take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.raw += body
        self.requests.append(ExportTraceServiceRequest.FromString(body))
        self.headers.append(dict(request.headers))
        return web.Response(body=b"", content_type="application/x-protobuf")

    @property
    def spans(self) -> list[Span]:
        scopes = (scope for each in self.requests for part in each.resource_spans for scope in part.scope_spans)
        return [span for scope in scopes for span in scope.spans]

    def named(self, name: str) -> Span:
        (found,) = (span for span in self.spans if span.name == name)
        return found


@asynccontextmanager
async def receiver() -> AsyncIterator[Receiver]:
    received = Receiver()
    app = web.Application()
    app.router.add_post("/v1/traces", received.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    received.port = runner.addresses[0][1]
    try:
        yield received
    finally:
        await runner.cleanup()


async def stream(request: Received, peer: Peer) -> None:
    await peer.stream_head()
    for _ in range(3):
        await asyncio.sleep(0.02)
        await peer.token("x")
    await peer.event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3}})
    await peer.chunk(b"data: [DONE]\n\n")
    await peer.last_chunk()


def told(span: Span) -> dict[str, Any]:
    values = ((each.key, each.value) for each in span.attributes)
    return {key: getattr(value, value.WhichOneof("value")) for key, value in values}


async def flushed(router: Running, receiver: Receiver, spans: int) -> None:
    """What waits in the batch is sent now and not in five seconds."""
    router.app._ended.flush()
    traces = router.app._tracing.traces
    assert traces is not None
    await asyncio.to_thread(traces._processor.force_flush)
    await eventually(lambda: len(receiver.spans) >= spans)


def collector(port: int, **more: Any) -> dict[str, Any]:
    return {"endpoint": f"http://127.0.0.1:{port}", **more}


async def test_a_streamed_call_is_a_span_with_its_stages_inside() -> None:
    async with receiver() as collected, ScriptedBackend(stream) as backend:
        async with router_for(backend, traces=collector(collected.port, headers={"x-key": "k1"})) as router:
            context = f"traceparent: 00-{TRACE}-{SPAN}-01"
            answer = await router.post("/v1/chat/completions", CHAT, context, "tracestate: a=b", "x-request-id: r1")
            assert answer.status == 200
            await flushed(router, collected, 6)
    root = collected.named("chat m")
    assert (root.trace_id.hex(), root.parent_span_id.hex()) == (TRACE, SPAN)
    assert root.kind == Span.SPAN_KIND_SERVER
    stages = [collected.named(name) for name in ("classify", "queue", "connect", "first token", "stream")]
    assert {span.parent_span_id for span in stages} == {root.span_id}
    assert {span.trace_id.hex() for span in collected.spans} == {TRACE}
    for before, after in pairwise(stages):
        assert before.start_time_unix_nano <= before.end_time_unix_nano <= after.start_time_unix_nano + 1000
    assert root.start_time_unix_nano == stages[0].start_time_unix_nano
    assert root.end_time_unix_nano == stages[-1].end_time_unix_nano
    attributes = told(root)
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.request.model"] == "m"
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (5, 3)
    assert attributes["twolane.class"] == "ttft"
    assert attributes["twolane.backend"] == "b0"
    assert attributes["twolane.request_id"] == "r1"
    assert attributes["http.response.status_code"] == 200
    assert attributes["gen_ai.response.time_to_first_chunk"] > 0.0
    assert b"secret" not in collected.raw, "no words of a prompt"
    assert collected.headers[0]["x-key"] == "k1"
    sent = backend.received[0]
    assert sent.all("traceparent") == [f"00-{TRACE}-{root.span_id.hex()}-01"]
    assert sent.one("tracestate") == "a=b"


async def test_a_call_without_a_trace_begins_one_and_the_share_decides_whether_it_is_recorded() -> None:
    async with receiver() as collected, ScriptedBackend(stream) as backend:
        async with router_for(backend, traces=collector(collected.port)) as router:
            await router.post("/v1/chat/completions", CHAT)
            await flushed(router, collected, 5)
        assert collected.named("chat m").parent_span_id == b""
        async with router_for(backend, traces=collector(collected.port, share=0.0)) as router:
            await router.post("/v1/chat/completions", CHAT)
        assert len([span for span in collected.spans if span.name == "chat m"]) == 1
    first, second = (request.one("traceparent") or "" for request in backend.received)
    assert first.endswith("-01")
    assert second.endswith("-00"), "those behind it do not record it either"


async def test_no_more_calls_are_recorded_than_may_be_but_a_caller_that_records_is_obeyed() -> None:
    async with receiver() as collected, ScriptedBackend(stream) as backend:
        async with router_for(backend, traces=collector(collected.port, per_minute=1)) as router:
            for _ in range(3):
                await router.post("/v1/chat/completions", CHAT)
            await router.post("/v1/chat/completions", CHAT, f"traceparent: 00-{TRACE}-{SPAN}-01")
            await flushed(router, collected, 10)
    said = [(request.one("traceparent") or "")[-2:] for request in backend.received]
    assert said == ["01", "00", "00", "01"]
    assert len([span for span in collected.spans if span.name == "chat m"]) == 2


async def test_a_caller_that_records_nothing_is_obeyed() -> None:
    async with receiver() as collected, ScriptedBackend(stream) as backend:
        async with router_for(backend, traces=collector(collected.port)) as router:
            await router.post("/v1/chat/completions", CHAT, f"traceparent: 00-{TRACE}-{SPAN}-00")
    assert collected.spans == []


async def test_a_call_that_fails_is_an_error_in_its_trace() -> None:
    async def broken(request: Received, peer: Peer) -> None:
        peer.reset()

    async with receiver() as collected, ScriptedBackend(broken) as backend:
        async with router_for(backend, traces=collector(collected.port)) as router:
            answer = await router.post("/v1/chat/completions", CHAT)
            assert answer.status >= 500
            await flushed(router, collected, 1)
    root = collected.named("chat m")
    assert root.status.code == 2
    assert told(root)["error.type"] == "backend_error"


async def test_a_collector_that_is_gone_harms_no_call() -> None:
    async with ScriptedBackend(stream) as backend:
        async with router_for(backend, traces=collector(9)) as router:
            for _ in range(3):
                assert (await router.post("/v1/chat/completions", CHAT)).status == 200


async def test_without_traces_the_header_of_a_caller_goes_on_as_it_is() -> None:
    async with ScriptedBackend(stream) as backend, router_for(backend) as router:
        await router.post("/v1/chat/completions", CHAT, f"traceparent: 00-{TRACE}-{SPAN}-01")
        await router.post("/v1/chat/completions", CHAT)
    assert [request.one("traceparent") for request in backend.received] == [f"00-{TRACE}-{SPAN}-01", None]


def test_what_traces_need_is_imported_only_for_them() -> None:
    program = "import sys, router.commands; print([n for n in sys.modules if n.startswith('opentelemetry')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("endpoint", ["127.0.0.1:4318", "grpc://x:4317", "http://user:pw@x:4318", "http://x y"])
def test_an_address_that_is_none_is_refused_with_what_to_write(endpoint: str) -> None:
    with pytest.raises(ValueError, match=r"expected the OTLP address|credentials do not belong"):
        Settings.model_validate({"backends": [{"name": "b", "url": "http://x:1"}], "traces": {"endpoint": endpoint}})
