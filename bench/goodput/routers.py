"""Those who are compared: how each is configured for the two servers of the fleet and started.

Each has one worker and its own defaults, no log line per call and no buffering; only what it must be told to run is
told. Who understands labels is also run with true ones.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench.goodput.send import Label
from bench.mixes.plan import MODEL, PROMISES, Call
from bench.peers import Launch, Missing, commit, installed, nginx_path, peers_python, python_with
from bench.servers.process import ROOT
from classifiers.api import CallClass

LITELLM = ("litellm[proxy]==1.108.7",)
VLLM_ROUTER = ("vllm-router==0.1.17",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    desk: str
    """URL of the server with few slots."""
    rack: str
    port: int
    side_port: int
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    name: str
    launch: Callable[[Place], Launch]
    """Raises `Missing`."""
    label: Label
    env: Mapping[str, str]


def unlabelled(call: Call) -> Mapping[str, str]:
    return {}


def by_class(call: Call) -> Mapping[str, str]:
    return {"x-twolane-class": call.label.value}


_SMG_CLASS = {CallClass.TTFT: "interactive", CallClass.MIXED: "default", CallClass.THROUGHPUT: "bulk"}


def by_smg_priority(call: Call) -> Mapping[str, str]:
    return {"X-SMG-Priority": _SMG_CLASS[call.label]}


# --- Twolane


def promises() -> dict[str, Any]:
    """What the workloads promise, as the settings say it."""
    named = {"ttft": "ttft_s", "tpot": "tpot_s", "complete": "complete_s"}
    found: dict[str, Any] = {}
    for label, promise in PROMISES.items():
        values = {key: getattr(promise, attribute) for key, attribute in named.items()}
        found[label.value] = {"slo": {key: None if s is None else f"{1000 * s:g}ms" for key, s in values.items()}}
    return found


def twolane_settings(place: Place, **more: Any) -> dict[str, Any]:
    return {
        "listen": f"127.0.0.1:{place.port}",
        "admin": f"127.0.0.1:{place.side_port}",
        "backends": [
            {"name": "desk", "url": place.desk, "lane": "latency"},
            {"name": "rack", "url": place.rack, "lane": "throughput", "max_inflight": 64},
        ],
        "classes": promises(),
        **more,
    }


def _twolane(adapt: Callable[[dict[str, Any]], None]) -> Callable[[Place], Launch]:
    def launch(place: Place) -> Launch:
        settings = twolane_settings(place)
        adapt(settings)
        text = yaml.safe_dump(settings, sort_keys=False)
        path = place.folder / "twolane.yaml"
        path.write_text(text)
        return Launch(
            command=(sys.executable, "-m", "router", "serve", "-c", str(path)),
            settings={"version": commit(), "twolane.yaml": text},
        )

    return launch


def as_it_comes(settings: dict[str, Any]) -> None:
    """Nothing changed."""


def _static(settings: dict[str, Any]) -> None:
    """Who waits for the first token has the desk for himself, all others the rack."""
    settings["policy"] = {"use": "static_lanes"}
    settings["classes"]["ttft"] |= {"lanes": ["latency"]}
    settings["classes"]["mixed"] |= {"lanes": ["throughput"]}
    settings["classes"]["throughput"] |= {"lanes": ["throughput"]}


def _policy(name: str) -> Callable[[dict[str, Any]], None]:
    def adapt(settings: dict[str, Any]) -> None:
        settings["policy"] = {"use": name}

    return adapt


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """Twolane with other settings, and what it is told of calls."""

    name: str
    adapt: Callable[[dict[str, Any]], None] = as_it_comes
    label: Label = unlabelled


OURS = (
    Own(name="twolane"),
    Own(name="twolane +labels", label=by_class),
    Own(name="static_lanes +labels", adapt=_static, label=by_class),
    Own(name="least_loaded", adapt=_policy("least_loaded")),
    Own(name="power_of_two", adapt=_policy("power_of_two")),
    Own(name="round_robin", adapt=_policy("round_robin")),
    Own(name="prefix_affinity", adapt=_policy("prefix_affinity")),
)


# --- others


def _nginx(place: Place) -> Launch:
    folder = place.folder
    scratch = "".join(
        f"  {kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    servers = "".join(f"    server {url.removeprefix('http://')};\n" for url in (place.desk, place.rack))
    config = (
        f"daemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/nginx.error.log;\nworker_processes 1;\n"
        "events { worker_connections 4096; }\n"
        "http {\n  access_log off;\n"
        f"{scratch}"
        "  client_body_buffer_size 256k;\n  client_max_body_size 100m;\n"
        f"  upstream fleet {{\n    least_conn;\n{servers}    keepalive 64;\n  }}\n"
        f"  server {{\n    listen 127.0.0.1:{place.port};\n    location / {{\n"
        '      proxy_pass http://fleet; proxy_http_version 1.1; proxy_set_header Connection "";\n'
        "      proxy_buffering off; proxy_read_timeout 600s;\n    }\n  }\n}\n"
    )
    path = folder / "nginx.conf"
    path.write_text(config)
    command = (nginx_path(), "-e", str(folder / "nginx.error.log"), "-c", str(path))
    return Launch(command=command, settings={"nginx.conf": config})


def _haproxy(place: Place) -> Launch:
    binary = shutil.which("haproxy", path=os.environ.get("PATH", "") + os.pathsep + "/usr/sbin")
    if binary is None:
        raise Missing("no haproxy on the PATH; on Debian: apt-get install haproxy")
    servers = "".join(
        f"  server {name} {url.removeprefix('http://')} check\n"
        for name, url in (("desk", place.desk), ("rack", place.rack))
    )
    config = (
        "global\n  maxconn 4000\n  nbthread 1\n"
        "defaults\n  mode http\n  option http-no-delay\n"
        "  timeout connect 5s\n  timeout client 600s\n  timeout server 600s\n"
        f"frontend f\n  bind 127.0.0.1:{place.port}\n  default_backend fleet\n"
        f"backend fleet\n  balance leastconn\n  option httpchk GET /health\n{servers}"
    )
    path = place.folder / "haproxy.cfg"
    path.write_text(config)
    return Launch(command=(binary, "-db", "-f", str(path)), settings={"haproxy.cfg": config})


def _nothing_more(_: Place) -> tuple[str, ...]:
    return ()


def _rust(
    package: str,
    *module: str,
    policy: str,
    python: Callable[[], Path] = peers_python,
    more: Callable[[Place], tuple[str, ...]] = _nothing_more,
) -> Callable[[Place], Launch]:
    """sglang-router and those that came from it: the same flags, their own defaults but for what is named here."""

    def launch(place: Place) -> Launch:
        found = python()
        words = (
            "--worker-urls", place.desk, place.rack,
            "--host", "127.0.0.1", "--port", str(place.port), "--policy", policy,
            "--prometheus-host", "127.0.0.1", "--prometheus-port", str(place.side_port),
        )  # fmt: skip
        return Launch(
            command=(str(found), "-m", *module, *words, *more(place)),
            settings={"version": installed(found).get(package, "")},
        )

    return launch


def _vllm_router_python() -> Path:
    return python_with(VLLM_ROUTER, variable="TWOLANE_VLLM_ROUTER_PYTHON", folder=".venv-vllm-router")


def _litellm(place: Place) -> Launch:
    python = python_with(LITELLM, variable="TWOLANE_LITELLM_PYTHON", folder=".venv-litellm")
    config = {
        "model_list": [
            {
                "model_name": MODEL,
                "litellm_params": {"model": f"openai/{MODEL}", "api_base": f"{url}/v1", "api_key": "none"},
            }
            for url in (place.desk, place.rack)
        ],
        "router_settings": {"routing_strategy": "least-busy", "num_retries": 0},
    }
    path = place.folder / "litellm.yaml"
    path.write_text(json.dumps(config))
    command = (
        str(python.with_name("litellm")), "--config", str(path), "--host", "127.0.0.1", "--port", str(place.port),
    )  # fmt: skip
    return Launch(
        command=command, settings={"version": installed(python).get("litellm", ""), "litellm.yaml": json.dumps(config)}
    )


_LITELLM_ENV = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    "DO_NOT_TRACK": "1",
}


_SMG_CLASSES = {
    name: {
        "reserved_floor": floor,
        "reserved_per_slot": 0.0,
        "queue_size": 1_000,
        "queue_timeout_secs": 120,
        "starvation_threshold_secs": 30,
        "can_preempt": False,
    }
    for name, floor in (("system", 0), ("interactive", 4), ("default", 2), ("bulk", 0))
}


def _priorities(at_once: int) -> Callable[[Place], tuple[str, ...]]:
    """smg's own line with classes, in front of so many calls at once; who waits there is told apart by header.

    Its own reservations need room for 42 calls, so they are scaled down to what the fleet is.
    """

    def words(place: Place) -> tuple[str, ...]:
        path = place.folder / "smg-classes.yaml"
        path.write_text(yaml.safe_dump({"classes": _SMG_CLASSES}))
        return (
            "--priority-scheduler-enabled", "--priority-scheduler-default-max-class", "interactive",
            "--priority-scheduler-config", str(path), "--max-concurrent-requests", str(at_once),
        )  # fmt: skip

    return words


def _router(
    name: str, launch: Callable[[Place], Launch], label: Label = unlabelled, env: Mapping[str, str] | None = None
) -> Router:
    return Router(name=name, launch=launch, label=label, env={"PYTHONPATH": str(ROOT)} if env is None else env)


def twolane_router(name: str, adapt: Callable[[dict[str, Any]], None], label: Label = unlabelled) -> Router:
    """Twolane with other settings than those that are compared."""
    return _router(name, _twolane(adapt), label)


_SGLANG = ("sglang-router", "sglang_router.launch_router")
_SMG = ("smg", "smg", "launch")
_VLLM = ("vllm-router", "vllm_router.launch_router")

# As many at once as the fleet has room for, and as few as keep its slots free for those who wait (a guess, not tuned).
ROUTERS: tuple[Router, ...] = (
    *(_router(own.name, _twolane(own.adapt), own.label) for own in OURS),
    _router("nginx least_conn", _nginx),
    _router("haproxy leastconn", _haproxy),
    _router("sglang-router cache_aware", _rust(*_SGLANG, policy="cache_aware"), env={}),
    _router("sglang-router power_of_two", _rust(*_SGLANG, policy="power_of_two"), env={}),
    _router("smg cache_aware", _rust(*_SMG, policy="cache_aware"), env={}),
    _router("smg least_load", _rust(*_SMG, policy="least_load"), env={}),
    _router("smg power_of_two", _rust(*_SMG, policy="power_of_two"), env={}),
    _router(
        "smg least_load +priorities", _rust(*_SMG, policy="least_load", more=_priorities(68)), by_smg_priority, env={}
    ),
    _router(
        "smg least_load +priorities 20 at once",
        _rust(*_SMG, policy="least_load", more=_priorities(20)),
        by_smg_priority,
        env={},
    ),
    _router(
        "smg power_of_two +priorities",
        _rust(*_SMG, policy="power_of_two", more=_priorities(68)),
        by_smg_priority,
        env={},
    ),
    _router("vllm-router cache_aware", _rust(*_VLLM, policy="cache_aware", python=_vllm_router_python), env={}),
    _router("vllm-router power_of_two", _rust(*_VLLM, policy="power_of_two", python=_vllm_router_python), env={}),
    _router("litellm least-busy", _litellm, env=_LITELLM_ENV),
)
