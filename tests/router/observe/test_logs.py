"""Lines on standard error: none of them holds anybody up, whether they can be written or not."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Literal

import pytest
import structlog

from router.observe import logs

Form = Literal["console", "json"]
both_forms = pytest.mark.parametrize("form", ["console", "json"])


class Sink(io.RawIOBase):
    """Keeps each write by itself, or refuses all of them."""

    def __init__(self, *, full: bool = False) -> None:
        self.full = full
        self.writes: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        if self.full:
            raise OSError(28, "No space left on device")
        self.writes.append(bytes(data))  # type: ignore[call-overload]
        return len(self.writes[-1])


Configured = Callable[[Form], Sink]


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch, logs_again: None) -> Iterator[Configured]:
    """Sets up logs in that form, on a sink in place of standard error."""
    sink = Sink()

    def configure(form: Form) -> Sink:
        monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BufferedWriter(sink), write_through=True))
        logs.configure("info", form)
        return sink

    yield configure
    sink.full = False  # what is left in the buffer goes there at last


@both_forms
def test_a_line_is_written_at_once(form: Form, configured: Configured) -> None:
    sink = configured(form)
    structlog.get_logger("twolane.test").info("one")

    assert b"one" in b"".join(sink.writes)


@both_forms
def test_lines_that_are_told_together_are_written_in_one_go(form: Form, configured: Configured) -> None:
    sink = configured(form)
    log = structlog.get_logger("twolane.test")
    with logs.together():
        for number in range(16):
            log.info("ended", number=number)
        assert sink.writes == []

    assert len(sink.writes) == 1
    lines = sink.writes[0].splitlines()
    assert len(lines) == 16
    if form == "json":
        assert [json.loads(line)["number"] for line in lines] == list(range(16))


@both_forms
def test_what_was_told_before_a_failure_is_written_all_the_same(form: Form, configured: Configured) -> None:
    sink = configured(form)
    with suppress(LookupError), logs.together():
        structlog.get_logger("twolane.test").info("before")
        raise LookupError

    structlog.get_logger("twolane.test").info("after")
    said = b"".join(sink.writes)
    assert said.index(b"before") < said.index(b"after")


@both_forms
def test_nothing_is_raised_where_nothing_can_be_written(form: Form, configured: Configured) -> None:
    sink = configured(form)
    log = structlog.get_logger("twolane.test")
    sink.full = True
    log.error("lost")
    with logs.together():
        log.error("lost too")

    sink.full = False
    log.info("written again")
    assert b"written again" in b"".join(sink.writes)


def test_what_a_thread_has_to_say_meanwhile_is_not_lost(configured: Configured) -> None:
    sink = configured("json")
    log = structlog.get_logger("twolane.test")
    with ThreadPoolExecutor(4) as threads:
        done = [threads.submit(log.info, "aside", number=number) for number in range(400)]
        while not all(each.done() for each in done):
            with logs.together():
                log.info("ended")

    said = [json.loads(line) for line in b"".join(sink.writes).splitlines()]
    assert sorted(line["number"] for line in said if line["event"] == "aside") == list(range(400))


def test_lines_can_be_told_together_before_logs_are_set_up() -> None:
    structlog.reset_defaults()
    told: list[object] = []
    with logs.together():
        told.append("told")
    assert told
