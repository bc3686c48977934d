"""Those who are measured: how each is found, configured and started, everybody on equal terms.

Equal terms: one worker on one core, the same backend, keep-alive on both sides without a small limit, no response
buffering, no log line per call, otherwise each one's own defaults. Start command and settings go into the report.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.servers.process import ROOT

TWOLANE = "twolane"
TWOLANE_RULES = "twolane-rules"
"""Calls judged by headers, rules and prompt length, without the learned model."""
SGLANG_ROUTER = "sglang-router"
PYTHON_VARIABLE = "TWOLANE_PEERS_PYTHON"
PACKAGES = ("sglang-router==0.3.2", "smg==1.13.0")
"""Versions are pinned, so that a change of a ratio is a change of ours."""


class Missing(Exception):
    """This peer cannot be measured here; the message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a peer is given to run: ports on the loopback address and a folder of its own."""

    backend: str
    port: int
    side_port: int
    """For an admin or metrics listener."""
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    command: tuple[str, ...]
    settings: Mapping[str, str]
    """Words for the report: version, and the configuration where it is not all in the command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    name: str
    launch: Callable[[Place], Launch]
    """Writes the configuration and says how to start. Raises `Missing`."""


def _twolane(place: Place, model: str = "builtin") -> Launch:
    if not (ROOT / "router" / "__main__.py").exists():
        raise Missing("router/__main__.py does not exist yet")
    config = (
        f"listen: 127.0.0.1:{place.port}\n"
        f"admin: 127.0.0.1:{place.side_port}\n"
        "backends:\n"
        f"  - {{name: scripted, url: {place.backend}, engine: openai, lane: latency}}\n"
        f"classify: {{model: {model}}}\n"
    )
    path = place.folder / "twolane.yaml"
    path.write_text(config)
    return Launch(
        command=(sys.executable, "-m", "router", "serve", "-c", str(path)),
        settings={"version": commit(), "twolane.yaml": config, "classification": "on"},
    )


def commit() -> str:
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def nginx_config(place: Place) -> str:
    """A reverse proxy for streams: nothing buffered, upstream connections kept."""
    folder = place.folder
    scratch = "".join(
        f"  {kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return (
        f"daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/nginx.error.log;\n"
        "worker_processes 1;\nworker_rlimit_nofile 16384;\n"
        "events { worker_connections 16384; }\n"
        "http {\n"
        "  access_log off;\n"
        f"{scratch}"
        "  keepalive_requests 10000000;\n"
        "  client_body_buffer_size 128k;\n"
        f"  upstream scripted {{ server {place.backend.removeprefix('http://')}; "
        "keepalive 512; keepalive_requests 10000000; }\n"
        "  server {\n"
        f"    listen 127.0.0.1:{place.port} backlog=4096;\n"
        "    location / {\n"
        "      proxy_pass http://scripted;\n"
        "      proxy_http_version 1.1;\n"
        '      proxy_set_header Connection "";\n'
        "      proxy_buffering off;\n"
        "      proxy_read_timeout 3600s;\n"
        "    }\n"
        "  }\n"
        "}\n"
    )


def nginx_path() -> str:
    """Raises `Missing`."""
    binary = shutil.which("nginx", path=os.environ.get("PATH", "") + os.pathsep + "/usr/sbin")
    if binary is None:
        raise Missing("no nginx on the PATH; on Debian: apt-get install nginx-light")
    return binary


def _nginx(place: Place) -> Launch:
    binary = nginx_path()
    config = nginx_config(place)
    path = place.folder / "nginx.conf"
    path.write_text(config)
    said = subprocess.run([binary, "-v"], capture_output=True, text=True, check=False).stderr
    version = re.search(r"nginx/(\S+)", said)
    return Launch(
        command=(binary, "-e", str(place.folder / "nginx.error.log"), "-c", str(path)),
        settings={"version": version[1] if version else "unknown", "nginx.conf": config},
    )


def _rust_router(package: str, *module: str) -> Callable[[Place], Launch]:
    """sglang-router and its successor smg: the same flags, their own defaults but for the log."""

    def launch(place: Place) -> Launch:
        python = peers_python()
        flags = {
            "--worker-urls": place.backend,
            "--host": "127.0.0.1",
            "--port": str(place.port),
            "--policy": "round_robin",
            "--prometheus-host": "127.0.0.1",
            "--prometheus-port": str(place.side_port),
            "--log-level": "warn",
        }
        words = [word for pair in flags.items() for word in pair]
        return Launch(
            command=(str(python), "-m", *module, *words), settings={"version": installed(python).get(package, "")}
        )

    return launch


def peers_python() -> Path:
    """The interpreter that has the routers of `PACKAGES`; makes `.venv-peers` where there is none. Raises `Missing`."""
    return python_with(PACKAGES, variable=PYTHON_VARIABLE, folder=".venv-peers")


def python_with(packages: Sequence[str], *, variable: str, folder: str) -> Path:
    """The interpreter that an environment variable names, or that of a folder in the work tree, which is made here.

    Raises `Missing`.
    """
    if named := os.environ.get(variable):
        python = Path(named)
        if not python.exists():
            raise Missing(f"{variable} names {named}, which does not exist")
        return python
    place = ROOT / folder
    python = place / "bin" / "python"
    wanted = {package.split("==")[0].split("[")[0]: package.split("==")[1] for package in packages}
    if not python.exists() or not wanted.items() <= installed(python).items():
        _install(place, python, packages)
    return python


def installed(python: Path) -> dict[str, str]:
    """Name and version of each distribution that an interpreter sees."""
    code = (
        "import importlib.metadata as m, json;"
        "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}))"
    )
    said = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    found: dict[str, str] = json.loads(said.stdout) if said.returncode == 0 else {}
    return found


def _install(folder: Path, python: Path, packages: Sequence[str]) -> None:
    for command in (
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages],
    ):
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        if said.returncode != 0:
            last = (said.stderr.strip() or said.stdout.strip()).splitlines()[-1:]
            raise Missing(f"could not install {' '.join(packages)}: {' '.join(last)}")


def _plain(place: Place) -> Launch:
    command = (sys.executable, "-m", "bench.plain_proxy", "--port", str(place.port), "--backend", place.backend)
    version = installed(Path(sys.executable)).get("aiohttp", "")
    return Launch(command=command, settings={"version": f"aiohttp {version}", "event loop": "uvloop"})


# Targets compare Twolane with sglang-router, so these are measured right after each other.
PEERS: tuple[Peer, ...] = (
    Peer(name=TWOLANE, launch=_twolane),
    Peer(name=TWOLANE_RULES, launch=partial(_twolane, model="off")),
    Peer(name=SGLANG_ROUTER, launch=_rust_router("sglang-router", "sglang_router.launch_router")),
    Peer(name="smg", launch=_rust_router("smg", "smg", "launch")),
    Peer(name="nginx", launch=_nginx),
    Peer(name="plain-aiohttp", launch=_plain),
)
