"""Traces: each call as spans of OpenTelemetry, sent by OTLP over HTTP. Needs the extra `traces`.

Nothing is measured for a trace: when a call has ended, its spans are made of the facts that are known anyway, with the
times that they had, and handed to OpenTelemetry's batch processor, whose thread sends them. What a call costs before is
two random numbers, since the backend is told our span as its parent.

Names and attributes follow the gen_ai conventions (status: development). No words of a prompt or an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from router.bucket import Bucket
from router.observe.facts import CallFacts, JudgedCall
from router.observe.trace_context import Trace, read

_BURST_S: Final = 2.0
"""Traces of so many seconds may begin at once."""
_SCOPE: Final = InstrumentationScope("twolane")
_PATH: Final = "/v1/traces"
_OPERATIONS: Final = {
    "openai_chat": "chat",
    "openai_responses": "chat",
    "anthropic_messages": "chat",
    "ollama_chat": "chat",
    "openai_completions": "text_completion",
    "llamacpp_completion": "text_completion",
    "ollama_generate": "text_completion",
    "openai_embeddings": "embeddings",
    "ollama_embed": "embeddings",
}
_OTHER_OPERATION: Final = "generate_content"
_NO_FAULT: Final = ("completed", "client_gone")

Random = Callable[[int], int]
"""So many random bits."""
Value = str | int | float | bool


class Traces:
    """Begins the trace of each call and sends what became of it. `close` blocks until the rest is sent."""

    def __init__(
        self,
        endpoint: str,
        *,
        headers: Mapping[str, str],
        share_0_1: float,
        per_minute: int | None,
        version: str,
        bits: Random,
    ) -> None:
        """Of the calls whose caller has not decided about it `share_0_1` are recorded, at most so many a minute."""
        url = endpoint if endpoint.rstrip("/").endswith(_PATH) else endpoint.rstrip("/") + _PATH
        self._processor = BatchSpanProcessor(OTLPSpanExporter(endpoint=url, headers=dict(headers)))
        self._resource = Resource.create({"service.name": "twolane", "service.version": version})
        self._below = int(share_0_1 * (1 << 64))
        self._per_minute = per_minute
        self._room: Bucket | None = None
        """None: all may be recorded, or none was yet."""
        self._bits = bits

    def begin(self, header: str | None, now_s: float) -> Trace:
        caller = read(header)
        span_id = f"{self._bits(64) or 1:016x}"
        if caller is not None:
            return caller._replace(span_id=span_id)
        number = self._bits(128) or 1
        sampled = number % (1 << 64) < self._below and self._has_room(now_s)
        return Trace(f"{number:032x}", "", sampled=sampled, span_id=span_id)

    def _has_room(self, now_s: float) -> bool:
        """Take room for one more trace, if there is some."""
        if self._per_minute is None:
            return True
        if self._room is None:
            self._room = Bucket(self._per_minute, now_s, holds_s=max(_BURST_S, 60.0 / self._per_minute))
        if self._room.level(now_s) < 1:
            return False
        self._room.take(1, now_s)
        return True

    def ended(self, facts: CallFacts, judged: JudgedCall | None, unix_ns: int) -> None:
        """The call of these facts ended at that time, in nanoseconds since 1970."""
        trace = facts.trace
        if trace is None or not trace.sampled or not trace.span_id:
            return
        arrived_ns = unix_ns - round(facts.complete_s * 1e9)
        root = self._context(trace.trace_id, trace.span_id)
        for name, since_s, until_s in _stages(facts):
            context = self._context(trace.trace_id, f"{self._bits(64) or 1:016x}")
            self._send(name, context, root, arrived_ns, since_s, until_s)
        self._send(
            f"{_operation(facts)} {facts.model}".rstrip(),
            root,
            self._context(trace.trace_id, trace.parent_id, remote=True) if trace.parent_id else None,
            arrived_ns,
            0.0,
            facts.complete_s,
            kind=SpanKind.SERVER,
            attributes=dict(_attributes(facts, judged)),
            status=Status(StatusCode.UNSET if facts.outcome in _NO_FAULT else StatusCode.ERROR),
        )

    def close(self) -> None:
        self._processor.shutdown()  # type: ignore[no-untyped-call]

    def _context(self, trace_id: str, span_id: str, *, remote: bool = False) -> SpanContext:
        return SpanContext(int(trace_id, 16), int(span_id, 16), remote, TraceFlags(TraceFlags.SAMPLED))

    def _send(
        self,
        name: str,
        context: SpanContext,
        parent: SpanContext | None,
        arrived_ns: int,
        since_s: float,
        until_s: float,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: dict[str, Value] | None = None,
        status: Status | None = None,
    ) -> None:
        span = ReadableSpan(
            name,
            context=context,
            parent=parent,
            resource=self._resource,
            attributes=attributes or {},
            kind=kind,
            status=status or Status(StatusCode.UNSET),
            start_time=arrived_ns + round(since_s * 1e9),
            end_time=arrived_ns + round(until_s * 1e9),
            instrumentation_scope=_SCOPE,
        )
        self._processor.on_end(span)


def _stages(facts: CallFacts) -> Iterator[tuple[str, float, float]]:
    """What a call went through, with seconds since its arrival; only what it came to."""
    if facts.call_class == "none":
        return
    yield "classify", 0.0, facts.decide_s
    placed_s = facts.decide_s + facts.queue_s
    yield "queue", facts.decide_s, placed_s
    if not facts.backend:
        return
    if facts.connect_s:
        yield "connect", placed_s, placed_s + facts.connect_s
    sent_s = placed_s + (facts.connect_s or 0.0)
    if facts.ttft_s is not None:
        yield "first token", sent_s, facts.ttft_s
        yield "stream", facts.ttft_s, facts.complete_s
    else:
        yield "answer", sent_s, facts.complete_s


def _operation(facts: CallFacts) -> str:
    return _OPERATIONS.get(facts.surface, _OTHER_OPERATION)


def _attributes(facts: CallFacts, judged: JudgedCall | None) -> Iterator[tuple[str, Value]]:
    yield "gen_ai.operation.name", _operation(facts)
    yield "gen_ai.request.model", facts.model
    yield "gen_ai.request.stream", facts.stream
    yield "http.response.status_code", facts.status
    yield "twolane.request_id", facts.request_id
    yield "twolane.class", str(facts.call_class)
    yield "twolane.reason", facts.reason
    yield "twolane.outcome", facts.outcome
    yield "twolane.surface", facts.surface
    if facts.outcome not in _NO_FAULT:
        yield "error.type", facts.outcome
    if facts.backend:
        yield "twolane.backend", facts.backend
        yield "twolane.lane", str(facts.lane)
        yield "twolane.retries", facts.retries
    if judged is not None:
        if judged.server is not None:
            yield "gen_ai.provider.name", judged.server.engine
        if (missed := judged.missed(facts)) is not None:
            yield "twolane.slo_missed", " ".join(missed)
    for name, figure in (
        ("gen_ai.usage.input_tokens", facts.prompt_tokens),
        ("gen_ai.usage.cache_read.input_tokens", facts.cached_tokens),
        ("gen_ai.usage.output_tokens", facts.output_tokens),
        ("gen_ai.response.time_to_first_chunk", facts.ttft_s),
        ("gen_ai.server.time_per_output_token", facts.tpot_s),
    ):
        if figure is not None:
            yield name, figure
