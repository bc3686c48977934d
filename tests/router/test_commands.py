"""What the commands say when something is in the way: a sentence, never a traceback, never a key."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
from typer.testing import CliRunner, Result

import router.commands
from router.commands import cli
from router.engines.api import Identity
from router.fleet.discover import Found

ROOT = Path(__file__).parents[2]


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


def process(*words: str, folder: Path, out: IO[bytes] | int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "router", *words],
        cwd=folder,
        stdout=out,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )


@pytest.mark.parametrize("words", [("schema",), ("version",), ("--version",)])
def test_a_full_disk_behind_standard_output_is_told(tmp_path: Path, words: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        ended = process(*words, folder=tmp_path, out=full)
    assert (ended.returncode, ended.stderr) == (1, "standard output cannot be written: No space left on device\n")


def test_the_version_is_told_by_a_flag_as_well() -> None:
    assert run("--version").output == run("version").output != ""


async def _found() -> list[Found]:
    return [Found(url="http://127.0.0.1:8090", identity=Identity(engine="llamacpp", models=("m",)))]


@pytest.mark.parametrize(("name", "said"), [("none/x.yaml", "No such file or directory"), ("link", "is a link to")])
def test_a_file_that_cannot_be_made_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    monkeypatch.setattr(router.commands, "discover", _found)
    (tmp_path / "link").symlink_to(tmp_path / "gone" / "x.yaml")
    done = run("init", "-o", str(tmp_path / name))
    assert done.exit_code == 1
    assert said in done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)


@pytest.mark.parametrize("command", ["top", "pipelines"])
def test_an_address_that_is_none_and_a_key_that_cannot_be_sent_are_told_without_the_key(command: str) -> None:
    done = run(command, "--once", "--admin", "foo")
    assert (done.exit_code, "'foo': expected the address of its admin port" in done.output) == (1, True)
    done = run(command, "--once", "--admin", "127.0.0.1:1", "--key", "s3cret\nkey")
    assert done.exit_code == 1
    assert "s3cret" not in done.output
    assert isinstance(done.exception, SystemExit)


@pytest.mark.parametrize("taken", ["listen", "admin"])
def test_which_of_the_two_ports_is_taken_is_told_with_its_address(tmp_path: Path, taken: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        wanted = {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", taken: address}
        text = "".join(f"{key}: {value}\n" for key, value in wanted.items())
        (tmp_path / "twolane.yaml").write_text(f"{text}backends: [{{name: a, url: 'http://127.0.0.1:9'}}]\n")
        ended = process("serve", folder=tmp_path)
    assert ended.returncode == 1
    assert f"cannot listen on {address} (`{taken}`): " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_settings_may_come_through_a_pipe() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "router", "check", "/dev/stdin"],
        cwd=ROOT,
        input="backends: [{name: desk, url: 'http://127.0.0.1:1'}]",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, "fine (1 backends" in done.stdout + done.stderr) == (0, True)
