"""The W3C header of traces: what is read, what is not believed, what is written."""

from __future__ import annotations

import pytest

from router.observe.trace_context import Trace, read

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def test_a_caller_says_trace_span_and_whether_it_is_recorded() -> None:
    assert read(f"00-{TRACE}-{SPAN}-01") == Trace(TRACE, SPAN, sampled=True)
    assert read(f"00-{TRACE}-{SPAN}-00") == Trace(TRACE, SPAN, sampled=False)


def test_later_versions_may_say_more() -> None:
    assert read(f"01-{TRACE}-{SPAN}-09-more") == Trace(TRACE, SPAN, sampled=True)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "nonsense",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-zz",
        f"01-{TRACE}-{SPAN}-01-" + "x" * 1000,
    ],
)
def test_what_cannot_be_read_is_no_trace(header: str | None) -> None:
    assert read(header) is None


def test_the_backend_is_told_our_span_as_its_parent() -> None:
    ours = Trace(TRACE, SPAN, sampled=True, span_id="00f067aa0ba902b7")
    assert ours.header == f"00-{TRACE}-00f067aa0ba902b7-01".encode()
    assert ours._replace(sampled=False).header.endswith(b"-00")
