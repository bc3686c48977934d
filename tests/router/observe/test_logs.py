"""Lines on standard error: none of them holds anybody up, whether they can be written or not."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Literal, Protocol

import pytest
import structlog

from router.observe import logs

Form = Literal["console", "json"]
both_forms = pytest.mark.parametrize("form", ["console", "json"])


class Sink(io.RawIOBase):
    """Keeps each write by itself, or refuses all of them."""

    def __init__(self, *, full: bool = False) -> None:
        self.full = full
        self.terminal = False
        self.writes: list[bytes] = []

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self.terminal

    def write(self, data: object) -> int:
        if self.full:
            raise OSError(28, "No space left on device")
        self.writes.append(bytes(data))  # type: ignore[call-overload]
        return len(self.writes[-1])


class Configured(Protocol):
    def __call__(self, form: Form, *, terminal: bool = False) -> Sink: ...


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch, logs_again: None) -> Iterator[Configured]:
    """Sets up logs in that form, on a sink in place of standard error."""
    sink = Sink()
    monkeypatch.delenv("NO_COLOR", raising=False)

    def configure(form: Form, *, terminal: bool = False) -> Sink:
        sink.terminal = terminal
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


def test_what_a_client_sent_cannot_take_over_the_terminal(configured: Configured) -> None:
    sink = configured("console")
    evil = "/v1/\x1b]0;owned\x07\x1b[2J\x9b1A\rok\u202e\u2028"
    log = structlog.get_logger("twolane.test")
    try:
        raise OSError(f"no such file: {evil}")
    except OSError as error:
        log.error(evil, path=evil, words=f"in a {evil}", many=[evil], exc_info=error)
    logging.getLogger("library").error("it said %s", evil)

    said = b"".join(sink.writes).decode()
    assert said.count("owned") == 6
    assert all(char.isprintable() or char == "\n" for char in said)
    assert said.count("\n  File") == 1, "a traceback keeps its lines"
    assert "/v1/\\x1b]0;owned\\x07" in said


def test_colours_are_for_terminals_of_those_who_want_them(
    configured: Configured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def coloured(*, terminal: bool) -> bool:
        sink = configured("console", terminal=terminal)
        sink.writes.clear()
        structlog.get_logger("twolane.test").info("one")
        return b"\x1b[" in b"".join(sink.writes)

    assert coloured(terminal=True)
    assert not coloured(terminal=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured(terminal=True)


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
