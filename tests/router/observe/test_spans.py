"""Spans as bytes: the same as OpenTelemetry's own encoder writes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from router.observe import spans
from router.observe.spans import INTERNAL, SERVER, attribute, recurring

TRACE, OWN, PARENT = bytes(range(16)), bytes(range(1, 9)), bytes(range(11, 19))
OF = Resource.create({"service.name": "twolane", "service.version": "1.2.3", "number": 7})
VALUES = st.text(max_size=300) | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats(allow_nan=False) | st.booleans()
NANOSECONDS = st.integers(0, (1 << 63) - 1)


def theirs(
    name: str, since_ns: int, until_ns: int, attributes: dict[str, Any], *, server: bool, parent: bool, failed: bool
) -> bytes:
    def context(span_id: bytes, remote: bool) -> SpanContext:
        flags = TraceFlags(TraceFlags.SAMPLED)
        return SpanContext(int.from_bytes(TRACE, "big"), int.from_bytes(span_id, "big"), remote, flags)

    made = ReadableSpan(
        name,
        context=context(OWN, False),
        parent=context(PARENT, server) if parent else None,
        resource=OF,
        attributes=attributes,
        kind=SpanKind.SERVER if server else SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR if failed else StatusCode.UNSET),
        start_time=since_ns,
        end_time=until_ns,
        instrumentation_scope=InstrumentationScope("twolane"),
    )
    encoded: bytes = encode_spans([made]).SerializeToString()
    return encoded


@given(
    st.text(max_size=300),
    NANOSECONDS,
    NANOSECONDS,
    st.dictionaries(st.text(min_size=1, max_size=20), VALUES, max_size=5),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_a_span_is_what_opentelemetry_would_have_written(
    name: str, since_ns: int, until_ns: int, values: dict[str, Any], server: bool, parent: bool, failed: bool
) -> None:
    ours = spans.request(
        spans.resource(OF.attributes),
        "twolane",
        spans.span(
            name,
            TRACE,
            OWN,
            PARENT if parent else b"",
            since_ns,
            until_ns,
            kind=SERVER if server else INTERNAL,
            attributes=b"".join(attribute(key, value) for key, value in values.items()),
            failed=failed,
            remote=parent and server,
        ),
    )
    wanted = theirs(name, since_ns, until_ns, values, server=server, parent=parent, failed=failed)
    assert ExportTraceServiceRequest.FromString(ours) == ExportTraceServiceRequest.FromString(wanted)


@pytest.mark.parametrize("value", [True, 1, 1.0, "1"])
def test_values_that_are_equal_but_of_another_kind_are_kept_apart(value: Any) -> None:
    for other in (True, 1, 1.0, "1"):
        recurring("k", other)
    assert recurring("k", value) == attribute("k", value)


def test_half_a_character_does_not_break_a_span() -> None:
    made = spans.request(b"", "twolane", spans.span("\ud800", TRACE, OWN, b"", 0, 1))
    (resource,) = ExportTraceServiceRequest.FromString(made).resource_spans
    assert resource.scope_spans[0].spans[0].name == "?"
