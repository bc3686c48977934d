"""Durations and sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from router.settings.units import (
    IN_FILE,
    LONGEST_S,
    Bytes,
    PositiveSeconds,
    Seconds,
    duration_text,
    parse_duration,
    parse_size,
    size_text,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("2s", 2.0), ("1.5s", 1.5), ("10m", 600.0), ("1h", 3600.0), ("0s", 0.0), ("8760h", LONGEST_S)],
)
def test_a_duration_has_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value", ["5", "5 s", " 5s", "5s\n", "-1s", "1e3s", ".5s", "5S", "5sec", "1h30m", "s", "", "٣s", 5, 2.5, True, None]
)
def test_anything_else_is_no_duration(value: object) -> None:
    with pytest.raises(ValueError, match="a number and its unit"):
        parse_duration(value)


@pytest.mark.parametrize("text", ["8761h", "9" * 400 + "s", "9" * 50_000 + "h"])
def test_a_duration_longer_than_a_year_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="at most 8760h"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"), [("1B", 1), ("64KiB", 65536), ("2MB", 2_000_000), ("1GiB", 2**30), ("3kB", 3000)]
)
def test_a_size_has_a_whole_number_and_a_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("value", ["5", "1.5MiB", "5 MiB", "5mb", "5K", "", 5, None, "9" * 5000 + "B"])
def test_anything_else_is_no_size(value: object) -> None:
    with pytest.raises(ValueError, match="a whole number and its unit"):
        parse_size(value)


def test_a_size_beyond_any_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 1024GiB"):
        parse_size("1025GiB")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.5, "500ms"), (0.07, "70ms"), (90.0, "90s"), (120.0, "2m"), (3600.0, "1h"), (0.0, "0s"), (0.0005, "0.0005s")],
)
def test_seconds_are_written_as_people_write_them(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@given(st.floats(0, LONGEST_S))
def test_what_is_written_reads_back_as_the_same_duration(seconds: float) -> None:
    assert parse_duration(duration_text(seconds)) == pytest.approx(seconds, rel=1e-6, abs=1e-9)


@given(st.integers(0, 2**40))
def test_what_is_written_reads_back_as_the_same_size(size: int) -> None:
    assert parse_size(size_text(size)) == size


def test_in_code_plain_numbers_are_fine_and_in_a_file_they_are_not() -> None:
    assert TypeAdapter(Seconds).validate_python(2) == 2.0
    assert TypeAdapter(Bytes).validate_python(5) == 5
    for kind, value in ((Seconds, 2), (Seconds, 2.5), (Bytes, 5)):
        with pytest.raises(ValidationError):
            TypeAdapter[object](kind).validate_python(value, context=IN_FILE)


@pytest.mark.parametrize("value", [True, float("nan"), float("inf"), -1.0])
def test_in_code_too_nonsense_is_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Seconds).validate_python(value)


def test_zero_is_refused_where_it_would_mean_never_or_always() -> None:
    assert TypeAdapter(Seconds).validate_python("0s") == 0.0
    with pytest.raises(ValidationError):
        TypeAdapter(PositiveSeconds).validate_python("0s")
