"""The reader of single metrics: exact, tolerant and linear."""

from __future__ import annotations

import math
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.engines.prometheus_text import Sample, samples


def test_labels_and_value_of_each_line_are_read_in_order() -> None:
    text = b'a{x="1",y="two"} 3.5\nb 1\na{x="2"} 4\na 5\n'
    assert samples(text, "a") == [Sample({"x": "1", "y": "two"}, 3.5), Sample({"x": "2"}, 4.0), Sample({}, 5.0)]


def test_only_the_exact_name_counts() -> None:
    text = b'wait_by_reason{r="a"} 1\nwait_created 1.7e+09\nwait_total 9\nmy_wait 8\nwait 2\nx{n="\nwait"} 3\n'
    assert samples(text, "wait") == [Sample({}, 2.0)]


def test_comments_are_passed_over() -> None:
    assert samples(b"# HELP a a 7\n# TYPE a gauge\n# a 6\na 1\n", "a") == [Sample({}, 1.0)]


def test_nan_and_infinity_are_read_as_such() -> None:
    values = [sample.value for sample in samples(b"a NaN\na +Inf\na -Inf\na nan\n", "a")]
    assert math.isnan(values[0])
    assert values[1:3] == [math.inf, -math.inf]
    assert math.isnan(values[3])


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b"a 1 1395066363000", 1.0),
        (b"a\t1", 1.0),
        (b"  a 1", 1.0),
        (b"a 1\r", 1.0),
        (b'a{le="0.1"} 8 # {trace_id="q"} 0.05 1.2', 8.0),
        (b'a{x="1",} 2', 2.0),
        (b'a {x="1"} 2', 2.0),
        (b'a{ x = "1" , y="2" }2', 2.0),
        (b"a{} 2", 2.0),
        (b"a 1e3", 1000.0),
        (b"a 0x10", None),
        (b"a 1_000", None),
        (b"a", None),
        (b"a ", None),
        (b"a one", None),
        (b"a{", None),
        (b'a{x="1" 2', None),
        (b'a{x="1} 2', None),
        (b"a{x=1} 2", None),
        (b'a{x="1"', None),
        (b'a{x="1"}', None),
        (b'a{x="1"}}2', None),
        (b'a{="1"} 2', None),
    ],
)
def test_odd_lines_are_read_and_broken_lines_are_skipped(line: bytes, value: float | None) -> None:
    text = b'a{n="first"} 10\n' + line + b'\na{n="last"} 20'
    expected = [10.0, 20.0] if value is None else [10.0, value, 20.0]
    assert [sample.value for sample in samples(text, "a")] == expected


def test_escapes_in_label_values_are_undone() -> None:
    (sample,) = samples(rb'a{path="C:\\x",text="say \"hi\"\nnow",brace="}"} 1', "a")
    assert sample.labels == {"path": "C:\\x", "text": 'say "hi"\nnow', "brace": "}"}


def test_label_values_that_are_not_utf8_do_no_harm() -> None:
    (sample,) = samples(b'a{m="\xff\xfe"} 1', "a")
    assert sample.value == 1.0


_PIECES = st.sampled_from(
    [b"a", b"a{", b"}", b'"', b"\\", b"\n", b"\r", b" ", b"=", b",", b"1", b"NaN", b"# ", b'x="y"', b"\x00", b"\xff"]
)


@given(st.lists(_PIECES, max_size=60).map(b"".join))
def test_no_bytes_make_it_raise(text: bytes) -> None:
    samples(text, "a")


_LABELS = st.dictionaries(st.text(string.ascii_letters + "_", min_size=1, max_size=5), st.text(max_size=8), max_size=4)


@given(st.lists(st.tuples(_LABELS, st.floats(allow_nan=False)), max_size=6))
def test_what_is_written_is_read(written: list[tuple[dict[str, str], float]]) -> None:
    def escaped(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    lines = [
        "gauge{" + ",".join(f'{key}="{escaped(value)}"' for key, value in labels.items()) + f"}} {number!r}"
        for labels, number in written
    ]
    text = "\n".join(["# TYPE gauge gauge", *lines, "other 1", ""]).encode("utf-8", "replace")
    read = samples(text, "gauge")
    assert [sample.value for sample in read] == [number for _, number in written]
    assert [set(sample.labels) for sample in read] == [set(labels) for labels, _ in written]


@pytest.mark.parametrize(
    "unit",
    [b"a{", b'a{x="', b"\\", b'a{x="\\', b"a ", b"a", b'a{x="1",', b" ", b"a{,,,", b"a 1\n", b"\na{x=\n"],
    ids=repr,
)
def test_time_is_linear_in_the_length(unit: bytes) -> None:
    def seconds(size: int) -> float:
        text = unit * (size // len(unit))
        best = math.inf
        for _ in range(3):
            began = time.perf_counter()
            samples(text, "a")
            best = min(best, time.perf_counter() - began)
        return best

    small, large = seconds(20_000), seconds(400_000)
    assert large < max(small, 0.0005) * 20 * 8, "twenty times the text took far more than twenty times as long"


def test_a_large_scrape_costs_little() -> None:
    noise = b"".join(
        b'vllm:latency_seconds_bucket{engine="0",le="%d",model_name="m"} 1.0\n' % number for number in range(1500)
    )
    text = noise + b'vllm:num_requests_running{model_name="m"} 4.0\n' + noise
    began = time.perf_counter()
    for _ in range(50):
        assert samples(text, "vllm:num_requests_running")[0].value == 4.0
    assert (time.perf_counter() - began) / 50 < 0.005
