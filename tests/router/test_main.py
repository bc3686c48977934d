"""The router as a process: what it says of its addresses, and that a hangup signal renews its certificate."""

from __future__ import annotations

import re
import signal
import socket
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.servers.process import ROOT, ServerProcess
from tests.certificates import Authority

START_S = 20.0


def started(folder: Path, **settings: Any) -> ServerProcess:
    """`twolane serve` with these settings, listening."""
    document = {"listen": "127.0.0.1:0", "admin": None, "backends": [{"name": "a", "url": "http://127.0.0.1:9"}]}
    (folder / "twolane.yaml").write_text(yaml.safe_dump({**document, **settings}), encoding="utf-8")
    process = ServerProcess(
        [sys.executable, "-m", "router", "serve"],
        log=folder / "router.log",
        env={"PYTHONPATH": str(ROOT)},
        cwd=folder,
    )
    with process.stopped_on_failure():
        process.wait_until(lambda: "serves on" in process.output(), timeout_s=START_S, what="listening router")
    return process


def said(process: ServerProcess, pattern: str) -> str:
    found = re.search(pattern, process.output())
    assert found, process.output()
    return found[1]


def shown(port: int, trusted: ssl.SSLContext) -> object:
    """Serial number of the certificate that a client gets to see."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
        with trusted.wrap_socket(plain, server_hostname="localhost") as secure:
            return (secure.getpeercert() or {})["serialNumber"]


def test_a_hangup_signal_renews_the_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.pair("localhost")
    with started(tmp_path, tls=pair.settings) as process:
        port = int(said(process, r"serves on https://127\.0\.0\.1:(\d+)"))
        trusted = authority.trusted()
        before = shown(port, trusted)
        authority.pair("localhost")
        process.signal(signal.SIGHUP)
        process.wait_until(lambda: '"reloaded"' in process.output(), timeout_s=10, what="reload")
        assert shown(port, trusted) != before


def test_a_hangup_signal_in_the_middle_of_the_start_does_not_end_it(tmp_path: Path) -> None:
    document = {"listen": "127.0.0.1:0", "admin": None, "backends": [{"name": "a", "url": "http://127.0.0.1:9"}]}
    (tmp_path / "twolane.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    # What is imported first of all that takes long waits until the signal has come.
    (tmp_path / "typer.py").write_text(
        "import os, sys\nfrom time import sleep\nprint('importing', file=sys.stderr, flush=True)\n"
        "while not os.path.exists('told'):\n    sleep(0.01)\n"
        "sys.path.remove(os.getcwd())\ndel sys.modules['typer']\nimport typer\nsys.modules['typer'] = typer\n",
        encoding="utf-8",
    )
    process = ServerProcess(
        [sys.executable, "-m", "router", "serve"],
        log=tmp_path / "router.log",
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        cwd=tmp_path,
    )
    with process:
        process.wait_until(lambda: "importing" in process.output(), timeout_s=START_S, what="router that starts")
        process.signal(signal.SIGHUP)
        (tmp_path / "told").touch()
        process.wait_until(lambda: "serves on" in process.output(), timeout_s=START_S, what="listening router")


def test_sockets_are_named_and_gone_after_the_end(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("s")
    with started(folder, listen=f"unix:{folder}/p", admin=f"unix:{folder}/a") as process:
        assert said(process, r"serves on (\S+)") == f"unix:{folder}/p"
        assert said(process, r"admin and metrics on (\S+)") == f"unix:{folder}/a"
        process.signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert not (folder / "p").exists()
    assert not (folder / "a").exists()


def test_a_door_that_is_open_on_purpose_is_told_at_start(tmp_path: Path) -> None:
    with started(tmp_path, listen="0.0.0.0:0", insecure=True) as process:
        assert "without keys: whoever reaches this address may use your servers" in process.output()
