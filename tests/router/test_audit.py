"""Audit entries: who changed what, how keys are used; few, whatever happens, and no secret in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import structlog
import structlog.testing
import yaml

from router.observe import logs
from router.observe.audit import Audit
from tests.router.observe.test_goodput import ended
from tests.router.running import router_for
from tests.scripted import ScriptedBackend

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
KEYS = [{"name": "editor", "key": "k-secret"}]


def audited(events: list[Any]) -> list[dict[str, Any]]:
    return [event for event in events if event.get("logger") == "twolane.audit"]


def test_a_key_is_told_at_its_first_call_and_then_once_an_hour() -> None:
    with structlog.testing.capture_logs() as events:
        audit = Audit(shown=True)
        for minute in range(121):
            audit.call_ended(ended(key="editor", prompt_tokens=10, output_tokens=5), minute * 60.0)
        audit.close(121 * 60.0)
    assert [event["calls"] for event in audited(events)] == [1, 60, 60]
    assert audited(events)[1]["key"] == "editor"
    assert (audited(events)[1]["tokens_in"], audited(events)[1]["tokens_out"]) == (600, 300)


def test_a_flood_of_wrong_keys_makes_an_entry_a_minute() -> None:
    with structlog.testing.capture_logs() as events:
        audit = Audit(shown=True)
        for number in range(3000):
            audit.call_ended(ended(outcome="denied", backend=""), number * 0.1)
        audit.close(301.0)
    assert [event["calls"] for event in audited(events)] == [1, 600, 600, 600, 600, 599]


def test_however_many_keys_there_are_entries_are_few() -> None:
    with structlog.testing.capture_logs() as events:
        audit = Audit(shown=True)
        for number in range(1000):
            audit.call_ended(ended(key=f"k{number}"), 1.0)
    assert len(audited(events)) == 65


def test_it_can_be_switched_off() -> None:
    with structlog.testing.capture_logs() as events:
        audit = Audit(shown=False)
        audit.call_ended(ended(key="editor"), 1.0)
        audit.tell("settings_reload")
    assert audited(events) == []


def test_entries_are_written_whatever_the_level(capfd: pytest.CaptureFixture[str], logs_again: None) -> None:
    logs.configure("error", "json")
    Audit(shown=True).tell("settings_reload", by="SIGHUP")
    written = capfd.readouterr().err
    assert '"logger":"twolane.audit"' in written
    assert '"by":"SIGHUP"' in written


async def test_reloads_drains_and_keys_of_a_router_are_entered(tmp_path: Path) -> None:
    with structlog.testing.capture_logs() as events:
        async with ScriptedBackend() as backend:
            path = tmp_path / "t.yaml"
            async with router_for(backend, keys=KEYS, path=path) as router:
                path.write_text("backends: [")
                await router.admin("POST", "/reload")
                await router.post("/v1/chat/completions", CHAT, "Authorization: Bearer k-secret")
                await router.post("/v1/chat/completions", CHAT, "Authorization: Bearer k-wrong")
                router.app.board.drain("b0", True)
                router.app.board.drain("b0", False)
                await router.app.drain()
    told = audited(events)
    assert [event["event"] for event in told] == [
        "settings_reload",
        "key_used",
        "key_denied",
        "backend_drained",
        "backend_put_back",
        "router_drained",
    ]
    assert (told[0]["by"], told[0]["reloaded"]) == ("admin port", False)
    assert (told[1]["key"], told[1]["calls"]) == ("editor", 1)
    assert "k-secret" not in str(told)
    assert "k-wrong" not in str(told)


async def test_a_call_leaves_one_flat_line_of_json_without_its_words(
    capfd: pytest.CaptureFixture[str], logs_again: None
) -> None:
    logs.configure("info", "json")
    async with ScriptedBackend() as backend, router_for(backend, log={"calls": True}) as router:
        body = {"model": "m", "messages": [{"role": "user", "content": "marzipan"}]}
        await router.post("/v1/chat/completions", body, "x-request-id: r-7")
    lines = [yaml.safe_load(line) for line in capfd.readouterr().err.splitlines() if '"event":"call"' in line]
    assert len(lines) == 1
    (line,) = lines
    assert line["request_id"] == "r-7"
    assert line["missed"] is None, "nothing was promised to a call that is not streamed"
    assert line["lane"] == "latency"
    assert all(value is None or isinstance(value, str | int | float | bool) for value in line.values())
    assert "marzipan" not in str(line)
