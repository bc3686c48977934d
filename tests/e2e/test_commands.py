"""The commands as people type them, on the ports that they really use, in a network of the test's own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from bench.model_maker import ModelFiles
from bench.servers.engines import LlamaCppServer
from bench.servers.process import ROOT, open_directly
from bench.servers.router import RouterProcess
from tests.e2e.calls import CHAT, chat
from tests.e2e.own_network import in_own_network

pytestmark = pytest.mark.llamacpp


def run(
    *arguments: str, cwd: Path, stdin: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`twolane ARGUMENTS` in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "router", *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        check=False,
    )


def ask(url: str, body: object | None = None) -> dict[str, object]:
    request = urllib.request.Request(url, data=None if body is None else json.dumps(body).encode())
    with open_directly(request, timeout_s=20) as response:
        document: dict[str, object] = json.loads(response.read())
    return document


def test_urls_alone_are_enough(model: ModelFiles, tmp_path: Path) -> None:
    def work() -> None:
        with (
            LlamaCppServer(model.gguf, port=8090, alias="one", log=tmp_path / "a.log") as one,
            LlamaCppServer(model.gguf, port=8000, alias="two", log=tmp_path / "b.log") as two,
            RouterProcess(urls=[one.url, f"{two.url}/v1"], folder=tmp_path) as router,
        ):
            assert (router.url, router.admin) == ("http://127.0.0.1:8080", "http://127.0.0.1:8081")
            assert len(router.backends()) == 2
            for name in ("one", "two"):
                assert ask(router.url + CHAT, chat(model=name))["model"] == name

    in_own_network(work)


def test_bare_serve_finds_what_runs_here_and_says_so(model: ModelFiles, tmp_path: Path) -> None:
    def work() -> None:
        with (
            LlamaCppServer(model.gguf, port=8000, log=tmp_path / "a.log") as server,
            RouterProcess(folder=tmp_path) as router,
        ):
            assert "http://127.0.0.1:8000" in router.process.output()
            assert "llamacpp" in router.process.output()
            assert ask(router.url + CHAT, chat(model=server.name))["model"] == server.name

    in_own_network(work)


def test_bare_serve_with_nothing_to_find_says_what_to_do(tmp_path: Path) -> None:
    ended = in_own_network(lambda: run("serve", cwd=tmp_path))
    assert ended.returncode == 2
    assert "twolane serve http://HOST:PORT" in ended.stderr


def test_init_writes_a_file_that_check_and_serve_take_and_never_overwrites_it(
    model: ModelFiles, tmp_path: Path
) -> None:
    def work() -> None:
        with (
            LlamaCppServer(model.gguf, port=8080, slots=3, log=tmp_path / "a.log"),
            LlamaCppServer(model.gguf, port=5000, log=tmp_path / "b.log"),
        ):
            made = run("init", cwd=tmp_path)
            assert made.returncode == 0, made.stderr
            text = (tmp_path / "twolane.yaml").read_text()
            urls = {backend["url"] for backend in yaml.safe_load(text)["backends"]}
            assert urls == {"http://127.0.0.1:8080", "http://127.0.0.1:5000"}
            assert "#" in text
            assert "3 slots" in text
            assert run("check", "twolane.yaml", cwd=tmp_path).returncode == 0
            again = run("init", cwd=tmp_path)
            assert again.returncode == 1
            assert (tmp_path / "twolane.yaml").read_text() == text
            with RouterProcess(folder=tmp_path) as router:  # finds the file in its folder
                assert set(router.url.split(":")) != {"http", "//127.0.0.1", "8080"}, "that port is a server's"
                assert len(router.backends()) == 2

    in_own_network(work)


def test_a_taken_port_is_told_in_a_sentence(tmp_path: Path) -> None:
    def work() -> subprocess.CompletedProcess[str]:
        with socket.create_server(("127.0.0.1", 8080)):
            return run("serve", "http://127.0.0.1:8000", cwd=tmp_path)

    ended = in_own_network(work)
    assert ended.returncode == 1
    assert "cannot listen" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_server_on_the_routers_usual_port_is_no_hindrance(model: ModelFiles, tmp_path: Path) -> None:
    def work() -> None:
        with (
            LlamaCppServer(model.gguf, port=8080, log=tmp_path / "a.log") as server,
            RouterProcess(urls=[server.url], folder=tmp_path) as router,
        ):
            assert router.url != server.url
            assert ask(router.url + CHAT, chat(model=server.name))["model"] == server.name

    in_own_network(work)


def test_explain_tells_the_decision_without_sending(model: ModelFiles, tmp_path: Path, desk: LlamaCppServer) -> None:
    settings = {"backends": [{"name": "desk", "url": desk.url}]}
    (tmp_path / "t.yaml").write_text(yaml.safe_dump(settings))
    call = {"path": CHAT, "headers": {"x-twolane-class": "bulk"}, "body": chat(model=desk.name)}
    ended = run("explain", "-c", "t.yaml", cwd=tmp_path, stdin=json.dumps(call))
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert (told["class"], told["source"]) == ("throughput", "header")
    assert told["decision"]["backend"] == "desk"


def test_check_tells_each_problem_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(
        "listen: 127.0.0.1:8080\n"
        "backends:\n"
        "  - {name: a, url: 'http://127.0.0.1:1', lane: fast}\n"
        "  - {name: a, url: 'http://127.0.0.1:2'}\n"
        "timeouts: {connect: 5}\n"
        "colour: red\n"
    )
    ended = run("check", "bad.yaml", cwd=tmp_path)
    assert ended.returncode == 2
    lines = ended.stderr.strip().splitlines()
    for place, key in (
        ("bad.yaml:3:", "backends[0].lane"),
        ("bad.yaml:5:", "timeouts.connect"),
        ("bad.yaml:6:", "colour"),
    ):
        assert any(line.startswith(place) and key in line for line in lines), ended.stderr
    assert run("serve", "-c", "bad.yaml", cwd=tmp_path).returncode == 2


def test_schema_is_json_schema(tmp_path: Path) -> None:
    ended = run("schema", cwd=tmp_path)
    assert ended.returncode == 0
    assert "backends" in json.loads(ended.stdout)["properties"]
