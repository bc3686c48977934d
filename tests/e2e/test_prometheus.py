"""A real Prometheus reads a real router with traffic: every query of the dashboard and every alert rule has data."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import ClientSession

from bench.servers.process import ServerProcess, free_port
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend, eventually

CONFIG = Path(__file__).parents[2] / "config"
RULES = CONFIG / "prometheus" / "alerts.yml"
DASHBOARD = CONFIG / "grafana" / "twolane.json"
VARIABLES = {"$__rate_interval": "20s", "$__range": "1m", "$class": ".*", "$backend": ".*"}
TRACE = "0af7651916cd43dd8448eb211c80319c"
FIGURES = b'vllm:num_requests_running{model_name="m"} 1.0\nvllm:num_requests_waiting{model_name="m"} 0.0\n'
KEY = "Authorization: Bearer k-editor"


def program(name: str) -> str:
    """Of Debian's package `prometheus`; not on every machine, but where CI runs."""
    found = shutil.which(name)
    if found is None:
        if os.environ.get("CI"):
            pytest.fail(f"{name} is missing (apt-get install prometheus)")
        pytest.skip(f"{name} is missing (apt-get install prometheus)")
    return found


def test_the_alert_rules_fire_when_they_should_and_only_then() -> None:
    promtool = program("promtool")
    for command in (["check", "config", "prometheus.yml"], ["test", "rules", "alerts.test.yml"]):
        done = subprocess.run([promtool, *command], cwd=RULES.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def queries() -> list[str]:
    """Of all panels of the dashboard, with its variables filled in."""
    panels = orjson.loads(DASHBOARD.read_bytes())["panels"]
    found = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    for name, value in VARIABLES.items():
        found = [query.replace(name, value) for query in found]
    assert not [query for query in found if "$" in query]
    return found


def test_the_dashboard_has_the_panels_and_no_two_of_them_overlap() -> None:
    panels = orjson.loads(DASHBOARD.read_bytes())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert place["x"] + place["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells


async def vllm(request: Received, peer: Peer) -> None:
    """Tokens with gaps, one of them a stall, where a stream was asked for; an error where one token was, after which a
    new connection has to be made."""
    body = orjson.loads(request.body)
    usage = {"prompt_tokens": 5, "completion_tokens": 12, "prompt_tokens_details": {"cached_tokens": 3}}
    if body.get("stream"):
        await peer.stream_head()
        for number in range(12):
            await asyncio.sleep(0.15 if number == 6 else 0.01)
            await peer.token("word ")
        await peer.event({"choices": [], "usage": usage})
        await peer.chunk(b"data: [DONE]\n\n")
        await peer.last_chunk()
    elif body.get("max_tokens") == 1:
        await peer.json({"error": {"message": "no"}}, "400 Bad Request", "Connection: close")
    else:
        await peer.json({"choices": [{"message": {"content": "hi"}}], "usage": usage})


async def figures(request: Received, peer: Peer) -> None:
    await peer.head("200 OK", "Content-Type: text/plain", f"Content-Length: {len(FIGURES)}")
    await peer.send(FIGURES)


@contextmanager
def prometheus(admin_port: int, folder: Path) -> Iterator[str]:
    """Reads the router four times a second; gives the address of its API."""
    port = free_port()
    config = {
        "global": {"scrape_interval": "250ms", "scrape_timeout": "250ms", "evaluation_interval": "500ms"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "twolane", "static_configs": [{"targets": [f"127.0.0.1:{admin_port}"]}]}],
    }
    path = folder / "prometheus.yml"
    path.write_bytes(orjson.dumps(config))  # JSON is YAML
    command = [
        program("prometheus"),
        f"--config.file={path}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--enable-feature=exemplar-storage",
    ]
    with ServerProcess(command, log=folder / "log") as process:
        yield f"http://127.0.0.1:{port}"
        process.kill()


async def asked(session: ClientSession, url: str, **params: str) -> Any:
    async with session.get(url, params=params) as answer:
        document = await answer.json()
        assert document["status"] == "success", document
        return document["data"]


async def some_traffic(router: Running) -> None:
    chat = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    trace = f"traceparent: 00-{TRACE}-b7ad6b7169203331-01"
    await asyncio.gather(
        router.post("/v1/chat/completions", {**chat, "stream": True}, KEY, trace, "x-twolane-class: ttft"),
        router.post("/v1/chat/completions", {**chat, "stream": True}, KEY, "x-twolane-class: mixed"),
        router.post("/v1/chat/completions", chat, KEY, "x-twolane-class: throughput"),
        router.post("/v1/chat/completions", {**chat, "max_tokens": 1}, KEY),
    )


def has_data(result: list[dict[str, Any]]) -> bool:
    return any(not isnan(float(sample["value"][1])) for sample in result)


async def test_every_query_and_every_rule_has_data(tmp_path: Path) -> None:
    program("prometheus")
    async with (
        ScriptedBackend(vllm, probes={"/metrics": figures}) as backend,
        router_for(
            (backend, {"engine": "vllm", "max_inflight": 8}),
            keys=[{"name": "editor", "key": "k-editor"}],
            classes={"mixed": {"slo": {"complete": "1ms"}}},
            health={"interval": "200ms"},
        ) as router,
        ClientSession() as session,
    ):
        with prometheus(router.admin_port, tmp_path) as api:
            await eventually(lambda: router.metric("twolane_open_calls") >= 0)
            missing = list(dict.fromkeys(queries()))
            for _ in range(60):
                await some_traffic(router)
                await asyncio.sleep(0.5)
                try:
                    data = {query: await asked(session, f"{api}/api/v1/query", query=query) for query in missing}
                except OSError:
                    continue  # it is not up yet
                missing = [query for query in missing if not has_data(data[query]["result"])]
                if not missing:
                    break
            assert not missing
            await rules_have_data(session, api)
            found = await asked(
                session,
                f"{api}/api/v1/query_exemplars",
                query="twolane_ttft_seconds_bucket",
                start="0",
                end="9999999999",
            )
            traces = {each["labels"]["trace_id"] for series in found for each in series["exemplars"]}
            assert traces == {TRACE}


async def rules_have_data(session: ClientSession, api: str) -> None:
    """All rules were evaluated without an error, and every series that one names is there."""
    groups = (await asked(session, f"{api}/api/v1/rules"))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["health"] for rule in rules} == {"ok"}, [rule.get("lastError") for rule in rules]
    names = {name for rule in rules for name in re.findall(r"\btwolane[\w:]+", rule["query"])}
    assert len(names) >= 10
    for name in sorted(names):
        assert (await asked(session, f"{api}/api/v1/query", query=name))["result"], name
