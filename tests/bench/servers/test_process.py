"""Child processes that never outlive who started them, and failures that say why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bench.servers.process import ROOT, ServerFailed, ServerProcess, free_port, is_free
from tests.scripted import eventually

FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("child", child.pid, flush=True)
time.sleep(60)
"""
"""A server with a helper of its own."""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def family_pids(process: ServerProcess) -> list[int]:
    process.wait_until(lambda: "child" in process.output(), timeout_s=10, what="child")
    return [process.pid, int(process.output().split()[1])]


def test_stop_ends_a_server_and_its_helpers(tmp_path: Path) -> None:
    process = ServerProcess([sys.executable, "-c", FAMILY], log=tmp_path / "log")
    pids = family_pids(process)
    assert all(map(alive, pids))
    process.stop()
    assert not any(map(alive, pids))
    process.stop()


def test_a_server_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    process = ServerProcess([sys.executable, "-c", code], log=tmp_path / "log")
    process.wait_until(lambda: "up" in process.output(), timeout_s=10, what="up")
    process.stop(grace_s=0.1)
    assert not alive(process.pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_nothing_is_left_when_the_starter_dies(tmp_path: Path, number: int) -> None:
    code = f"""
        import sys, time
        from pathlib import Path
        from bench.servers.process import ServerProcess
        process = ServerProcess([sys.executable, "-c", {FAMILY!r}], log=Path({str(tmp_path / "log")!r}))
        process.wait_until(lambda: "child" in process.output(), timeout_s=10, what="child")
        print(process.pid, process.output().split()[1], process._leash.pid, flush=True)
        time.sleep(60)
    """
    starter = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    with starter:
        assert starter.stdout
        pids = [int(word) for word in starter.stdout.readline().split()]
        assert len(pids) == 3
        starter.send_signal(number)
    await eventually(lambda: not any(map(alive, pids)), within_s=10)


async def test_a_killed_leash_takes_the_server_along(tmp_path: Path) -> None:
    process = ServerProcess([sys.executable, "-c", "import time; time.sleep(60)"], log=tmp_path / "log")
    os.kill(process._leash.pid, signal.SIGKILL)
    await eventually(lambda: not alive(process.pid))
    process.stop()


def test_a_server_that_ends_early_is_reported_with_its_code_and_last_words(tmp_path: Path) -> None:
    code = "import sys; print('no such model'); sys.exit(3)"
    with (
        ServerProcess([sys.executable, "-c", code], log=tmp_path / "log") as process,
        pytest.raises(ServerFailed, match=r"(?s)code 3.*no such model"),
    ):
        process.wait_until(lambda: False, timeout_s=10, what="answer")


def test_a_server_that_takes_too_long_is_stopped_and_reported(tmp_path: Path) -> None:
    code = "import time; print('still loading', flush=True); time.sleep(60)"
    process = ServerProcess([sys.executable, "-c", code], log=tmp_path / "log")
    process.wait_until(lambda: "loading" in process.output(), timeout_s=10, what="word")
    with pytest.raises(ServerFailed, match=r"(?s)no answer after 0.1 s.*still loading"):
        with process.stopped_on_failure():
            process.wait_until(lambda: False, timeout_s=0.1, what="answer")
    assert not alive(process.pid)


def test_a_command_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="could not run"):
        ServerProcess([str(tmp_path / "nothing")], log=tmp_path / "log")


def test_the_exit_code_is_the_servers_own(tmp_path: Path) -> None:
    for code, expected in (("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", 137)):
        with ServerProcess([sys.executable, "-c", code], log=tmp_path / "log") as process:
            assert process.wait(10) == expected


def test_free_ports_are_free_and_differ() -> None:
    ports = [free_port() for _ in range(20)]
    assert len(set(ports)) == 20
    assert all(map(is_free, ports))
