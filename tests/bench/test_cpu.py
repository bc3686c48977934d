"""CPU time, memory and mapped libraries of a process and its children."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench import cpu

BURN = """
import time
def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
"""
WAIT = "\nprint('ready', flush=True)\ninput()\n"


@contextmanager
def child(code: str) -> Iterator[int]:
    """A Python process that has run `code` and now waits."""
    command = [sys.executable, "-c", code + WAIT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process.pid
        process.kill()


def test_cpu_time_includes_threads_that_have_ended() -> None:
    with child(
        BURN + "import threading\nthread = threading.Thread(target=burn, args=(0.2,))\nthread.start()\nthread.join()"
    ) as pid:
        assert 0.2 <= cpu.cpu_seconds(pid) < 2


def test_cpu_time_includes_children() -> None:
    code = (
        "import subprocess, sys\n"
        f"burner = {BURN + 'burn(0.2)' + WAIT!r}\n"
        "grandchild = subprocess.Popen([sys.executable, '-c', burner], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "grandchild.stdout.readline()\n"
    )
    with child(code) as pid:
        assert len(cpu.family(pid)) == 2
        assert 0.2 <= cpu.cpu_seconds(pid) < 2


def test_a_process_that_waits_uses_no_cpu_time() -> None:
    with child("") as pid:
        before_s = cpu.cpu_seconds(pid)
        assert cpu.cpu_seconds(pid) - before_s < 0.01


def test_memory_grows_by_what_a_process_fills() -> None:
    with child("") as small, child("held = b'x' * 50_000_000") as large:
        grown = cpu.memory(large).pss_bytes - cpu.memory(small).pss_bytes
        assert grown == pytest.approx(50_000_000, rel=0.1)


def test_shared_pages_count_whole_in_rss_and_in_part_in_pss() -> None:
    here = cpu.memory(os.getpid())
    assert 0 < here.pss_bytes <= here.rss_bytes


def test_a_package_with_compiled_parts_shows_in_the_maps_once_it_is_imported() -> None:
    with child("") as pid:
        assert not cpu.has_mapped(pid, "orjson")
    with child("import orjson") as pid:
        assert cpu.has_mapped(pid, "orjson")


def test_a_process_that_is_gone_is_an_error() -> None:
    with child("") as pid:
        pass
    with pytest.raises(ProcessLookupError):
        cpu.cpu_seconds(pid)
