"""Traces: each call as spans of OpenTelemetry, sent by OTLP over HTTP. Needs the extra `traces`.

Nothing is measured for a trace: when a call has ended, its spans are made of the facts that are known anyway, with the
times that they had, and handed to OpenTelemetry's batch processor, whose thread sends them with its exporter. What a
call costs before is two random numbers, since the backend is told our span as its parent.

Names and attributes follow the gen_ai conventions (status: development). No words of a prompt or an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import SpanContext, TraceFlags

from router.observe.facts import CallFacts, JudgedCall
from router.observe.spans import SERVER, attribute, recurring, request, resource, span
from router.observe.trace_context import Trace, read

_SCOPE: Final = "twolane"
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
_SAMPLED: Final = SpanContext(1, 1, False, TraceFlags(TraceFlags.SAMPLED))
"""Of no span: the batch processor asks whether there is something to send."""

Random = Callable[[int], int]
"""So many random bits."""


class _Written(ReadableSpan):
    """The spans of one call, as bytes; for the batch processor they are one span."""

    def __init__(self, spans: bytes) -> None:
        self._context = _SAMPLED
        self.spans = spans


class _Exporter(OTLPSpanExporter):
    """Sends as its base does, but what was encoded before."""

    def __init__(self, endpoint: str, headers: Mapping[str, str], of: bytes) -> None:
        super().__init__(endpoint=endpoint, headers=dict(headers))
        self._of = of

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        written = b"".join([each.spans for each in spans if isinstance(each, _Written)])
        done = self._client.export(request(self._of, _SCOPE, written))
        return SpanExportResult.SUCCESS if done.success else SpanExportResult.FAILURE


class Traces:
    """Begins the trace of each call and sends what became of it. `close` blocks until the rest is sent."""

    def __init__(
        self,
        endpoint: str,
        *,
        headers: Mapping[str, str],
        share_0_1: float,
        version: str,
        bits: Random,
    ) -> None:
        """`share_0_1` of the calls whose caller has not decided about it are recorded."""
        url = endpoint if endpoint.rstrip("/").endswith(_PATH) else endpoint.rstrip("/") + _PATH
        told = Resource.create({"service.name": "twolane", "service.version": version})
        self._processor = BatchSpanProcessor(_Exporter(url, headers, resource(told.attributes)))
        self._below = int(share_0_1 * (1 << 64))
        self._bits = bits

    def begin(self, header: str | None) -> Trace:
        caller = read(header)
        span_id = f"{self._bits(64) or 1:016x}"
        if caller is not None:
            return caller._replace(span_id=span_id)
        number = self._bits(128) or 1
        return Trace(f"{number:032x}", "", sampled=number % (1 << 64) < self._below, span_id=span_id)

    def ended(self, facts: CallFacts, judged: JudgedCall | None, unix_ns: int) -> None:
        """The call of these facts ended at that time, in nanoseconds since 1970."""
        trace = facts.trace
        if trace is not None and trace.sampled and trace.span_id:
            self._processor.on_end(_Written(self._spans(facts, judged, trace, unix_ns)))

    def _spans(self, facts: CallFacts, judged: JudgedCall | None, trace: Trace, unix_ns: int) -> bytes:
        arrived_ns = unix_ns - round(facts.complete_s * 1e9)
        trace_id, root_id, parent_id = map(bytes.fromhex, (trace.trace_id, trace.span_id, trace.parent_id))
        found = [
            span(
                f"{_operation(facts)} {facts.model}".rstrip(),
                trace_id,
                root_id,
                parent_id,
                arrived_ns,
                unix_ns,
                kind=SERVER,
                attributes=b"".join(_attributes(facts, judged)),
                failed=facts.outcome not in _NO_FAULT,
                remote=bool(parent_id),
            )
        ]
        for name, since_s, until_s in _stages(facts):
            own_id = (self._bits(64) or 1).to_bytes(8, "big")
            since_ns, until_ns = arrived_ns + round(since_s * 1e9), arrived_ns + round(until_s * 1e9)
            found.append(span(name, trace_id, own_id, root_id, since_ns, until_ns))
        return b"".join(found)

    def close(self) -> None:
        self._processor.shutdown()  # type: ignore[no-untyped-call]


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


def _attributes(facts: CallFacts, judged: JudgedCall | None) -> Iterator[bytes]:
    yield recurring("gen_ai.operation.name", _operation(facts))
    yield recurring("gen_ai.request.model", facts.model)
    yield recurring("gen_ai.request.stream", facts.stream)
    yield recurring("http.response.status_code", facts.status)
    yield attribute("twolane.request_id", facts.request_id)
    yield recurring("twolane.class", facts.call_class)
    yield recurring("twolane.reason", facts.reason)
    yield recurring("twolane.outcome", facts.outcome)
    yield recurring("twolane.surface", facts.surface)
    if facts.outcome not in _NO_FAULT:
        yield recurring("error.type", facts.outcome)
    if facts.backend:
        yield recurring("twolane.backend", facts.backend)
        yield recurring("twolane.lane", facts.lane)
        yield recurring("twolane.retries", facts.retries)
    if judged is not None:
        if judged.server is not None:
            yield recurring("gen_ai.provider.name", judged.server.engine)
        if (missed := judged.missed(facts)) is not None:
            yield recurring("twolane.slo_missed", " ".join(missed))
    for name, figure in (
        ("gen_ai.usage.input_tokens", facts.prompt_tokens),
        ("gen_ai.usage.cache_read.input_tokens", facts.cached_tokens),
        ("gen_ai.usage.output_tokens", facts.output_tokens),
        ("gen_ai.response.time_to_first_chunk", facts.ttft_s),
        ("gen_ai.server.time_per_output_token", facts.tpot_s),
    ):
        if figure is not None:
            yield attribute(name, figure)
