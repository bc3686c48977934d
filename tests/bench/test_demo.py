"""`make demo` shows what it promises, and however it ends, no process stays behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.servers.process import ROOT
from tests.scripted import eventually

pytestmark = [pytest.mark.llamacpp, pytest.mark.slow]

MARK = "TWOLANE_DEMO_UNDER_TEST"


def marked(mark: str) -> list[int]:
    """Processes of anybody that were started with this mark in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@contextmanager
def running_demo(tmp_path: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    output = tmp_path / "output"
    with output.open("wb") as sink:
        demo = subprocess.Popen(
            [sys.executable, "-m", "bench.demo", *options],
            cwd=ROOT,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env={**os.environ, MARK: str(tmp_path)},
            start_new_session=True,
        )
    try:
        yield demo, output
    finally:
        demo.kill()
        demo.wait()


async def test_it_shows_each_class_who_waited_and_who_did_not(tmp_path: Path) -> None:
    with running_demo(tmp_path, "--once") as (demo, output):
        await eventually(lambda: demo.poll() is not None, within_s=90)
        text = output.read_text()
    assert demo.returncode == 0, text
    rows = {line[:20].strip(): line[20:].split() for line in text.splitlines() if re.search(r"\b(desk|rack) \w+", line)}
    assert rows["chat in an editor"][0] == "ttft"
    assert rows["row of a nightly job"][0] == "throughput"
    assert rows["hop of an agent"][0] == "mixed"
    assert rows["question, streamed"][0] == "ttft"
    waited_ms = {name: float(row[-3].replace(",", "")) for name, row in rows.items()}
    assert sum(ms > 50 for name, ms in waited_ms.items() if name.startswith("bulk")) >= 2, text
    assert all(ms <= 500 for name, ms in waited_ms.items() if not name.startswith("bulk")), text
    assert max(map(len, text.splitlines())) <= 100
    await eventually(lambda: marked(str(tmp_path)) == [])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
async def test_no_process_is_left_behind(tmp_path: Path, number: int, code: int) -> None:
    with running_demo(tmp_path) as (demo, output):
        await eventually(lambda: "in front of" in output.read_text() or demo.poll() is not None, within_s=90)
        assert len(marked(str(tmp_path))) >= 4, output.read_text()
        demo.send_signal(number)
        await eventually(lambda: demo.poll() is not None, within_s=15)
        assert demo.returncode == code, output.read_text()
    await eventually(lambda: marked(str(tmp_path)) == [], within_s=15)


async def test_what_to_try_can_be_copied_from_the_screen_until_it_is_stopped(tmp_path: Path) -> None:
    with running_demo(tmp_path) as (demo, output):
        await eventually(lambda: "Stop: Ctrl-C" in output.read_text() or demo.poll() is not None, within_s=90)
        text = output.read_text().replace("\\\n", "")
        commands = [line for line in text.splitlines() if line.startswith("curl")]
        assert len(commands) == 3
        answers = [subprocess.run(["bash", "-c", line], capture_output=True, check=True).stdout for line in commands]
        demo.send_signal(signal.SIGINT)
        await eventually(lambda: demo.poll() is not None, within_s=15)
        assert demo.returncode == 0
    assert b"data: [DONE]" in answers[0]
    assert b"x-twolane-class: throughput" in answers[1].lower()
    assert b'"desk"' in answers[2]
    await eventually(lambda: marked(str(tmp_path)) == [])
