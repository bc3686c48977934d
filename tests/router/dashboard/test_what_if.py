"""Other settings against the last hour: checked, replayed in a process of its own, never applied."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from router.dashboard.what_if import SECTIONS, WhatIf, _copy_calls, prepared
from router.errors import BadRequest, NotFound, Overloaded
from router.settings.load import parse
from router.settings.model import Settings
from router.tasks import Tasks
from tests.router.builders import fleet_of, settings
from tests.router.running import router_for
from tests.scripted import ScriptedBackend

DESK = {"name": "desk", "lane": "latency", "engine": "llamacpp", "api_key": "sk-very-secret"}
NOON_S = datetime(2026, 5, 1, 12, 0, tzinfo=UTC).timestamp()


def what_if(path: Path | None = None, **rest: Any) -> WhatIf:
    made = settings(DESK, decisions={"file": path}, **rest)
    fleet = fleet_of(DESK)
    return WhatIf(lambda: made, fleet.backends, lambda: NOON_S)


def line(minute: int, number: int = 0) -> bytes:
    return b'{"format":1,"time":"2026-05-01T11:%02d:%02d.000+00:00","id":"r"}\n' % (minute, number)


async def test_what_can_be_edited_is_shown_as_it_would_stand_in_the_file(tmp_path: Path) -> None:
    document = await what_if(tmp_path / "d.jsonl").document()
    assert document["why"] == ""
    rest = "backends: [{name: desk, url: http://127.0.0.1:9000}]\n"
    read = parse(document["yaml"] + rest, "shown", {})
    assert read.classes == Settings.model_validate({"backends": [{"name": "a", "url": "http://b"}]}).classes
    assert set(SECTIONS) <= set(read.model_fields_set)
    assert "secret" not in document["yaml"]


async def test_without_a_log_it_says_how_to_have_one() -> None:
    made = what_if()
    assert "decisions: {file: FILE}" in (await made.document())["why"]
    with pytest.raises(NotFound, match="decisions"):
        await made.try_out("policy: round_robin")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("policy: nonsense", "edited:1:9: policy.use: there is no policy nonsense"),
        ("classes:\n  ttft:\n    max_wait: 5\n", "edited:3:15: classes.ttft.max_wait: expected a duration"),
        ("listen: 0.0.0.0:80", "listen: only policy, classes, line, classify can be tried here"),
        ("backends: []", "backends: only"),
        ("policy: os:system", "twolane replay"),
        ("policy: {use: os:system}", "twolane replay"),
        ("classify: {model: /etc/passwd}", "twolane replay"),
        ("policy: '${HOME}'", "HOME is not set"),
        ("[", "edited:1:2: a value is missing"),
        ("a: b: c", "edited:1:5: a colon where no key can be"),
        ("policy: least_loaded\npolicy: os:system", "edited:2:1: policy: written twice"),
        ("policy: &a {<<: *a, use: os:system}", "edited:1:17: an alias inside the very value"),
        ("policy: {<<: {use: os:system}}", "twolane replay"),
        ("policy: {use: !x os:system}", "a tag (!name) changes nothing here"),
        ("- 1", "expected one or more of the sections"),
        ("", "expected one or more of the sections"),
        ("a" * 60_000, "at most"),
        (7, "as text"),
        (None, "as text"),
        ("[" * 20_000, "nested deeper"),
    ],
)
async def test_what_is_wrong_is_told_with_its_line_before_anything_runs(
    tmp_path: Path, text: object, said: str
) -> None:
    with pytest.raises(BadRequest) as caught:
        await what_if(tmp_path / "d.jsonl").try_out(text)
    assert said in str(caught.value)


def test_the_two_files_differ_only_in_what_was_edited_and_hold_no_secret(tmp_path: Path) -> None:
    made = what_if(tmp_path / "d.jsonl", admin_key="admin-secret", models={"chat": {"desk": "a${b}"}})
    trial = prepared("line: {ageing: 7s}\n", made._settings(), made._as_found())
    now, changed = (parse(each, "file", {}) for each in trial[:2])
    assert (now.line.ageing, changed.line.ageing) != (7.0, 7.0)
    assert changed.line.ageing == 7.0
    assert changed.model_copy(update={"line": now.line}) == now
    assert now.models["chat"]["desk"] == "a${b}"
    assert now.backends[0].max_inflight == 2, "what was detected stands in for asking"
    assert not any("secret" in each for each in trial)


async def test_the_difference_is_what_has_to_be_done_to_the_file(tmp_path: Path) -> None:
    made = what_if(tmp_path / "d.jsonl")
    text = (await made.document())["yaml"]
    assert prepared(text, made._settings(), made._as_found()).diff == ""
    edited = text.replace("max_waiting: 10000", "max_waiting: 5")
    changed = prepared(edited, made._settings(), made._as_found()).diff
    assert [each for each in changed.splitlines() if each[0] in "+-"][2:] == [
        "-  max_waiting: 10000",
        "+  max_waiting: 5",
    ]


async def test_streams_go_on_while_a_long_text_is_read(tmp_path: Path) -> None:
    rules = "".join(f"    - {{if: {{model: m{number}}}, then: ttft}}\n" for number in range(1200))
    async with asyncio.TaskGroup() as tasks:
        tried = tasks.create_task(refused(what_if(tmp_path / "d.jsonl"), f"classify:\n  rules:\n{rules}    - wrong\n"))
        turns = 0
        while not tried.done():
            await asyncio.sleep(0.001)
            turns += 1
    assert "classify.rules[1200]" in tried.result()
    assert turns > 10, "the loop went on"


async def refused(made: WhatIf, text: str) -> str:
    with pytest.raises(BadRequest) as caught:
        await made.try_out(text)
    return str(caught.value)


def test_calls_of_the_last_hour_are_copied_from_all_parts_of_the_log_and_bounded(tmp_path: Path) -> None:
    log, target = tmp_path / "d.jsonl", tmp_path / "copy"
    (tmp_path / "d.jsonl.1").write_bytes(line(10) + line(20))
    log.write_bytes(b"half a li\n" + line(30) + line(40))
    assert _copy_calls(log, b"2026-05-01T11:15", target) == 3
    assert target.read_bytes() == line(20) + line(30) + line(40)
    log.write_bytes(b"".join(line(number // 60 % 60, number % 60) for number in range(3500)))
    assert _copy_calls(log, b"2026", target) == 3000
    assert _copy_calls(tmp_path / "none", b"2026", target) == 0


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_a_real_log_is_replayed_and_only_one_at_a_time(tmp_path: Path) -> None:
    log = tmp_path / "d.jsonl"
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with ScriptedBackend() as backend:
        async with router_for((backend, {"max_inflight": 2}), decisions={"file": log}) as router:
            for _ in range(30):
                assert (await router.post("/v1/chat/completions", body, "x-twolane-class: mixed")).status == 200
            tried = router.app.board.what_if
            with pytest.raises(NotFound, match="no calls"):
                await WhatIf(lambda: router.app.settings, router.app.fleet.backends, lambda: 4e9).try_out(
                    "policy: round_robin"
                )
            await asyncio.sleep(0.5)  # the log is written now and then
            running = Tasks().spawn(tried.try_out("policy: round_robin"), name="replay")
            await asyncio.sleep(0.3)
            with pytest.raises(Overloaded, match="runs already"):
                await tried.try_out("policy: round_robin")
            found = await running
            assert found["calls"] == 30
            assert "+policy: round_robin" in found["diff"]
            for name in ("logged", "now", "changed"):
                assert found[name]["classes"]["mixed"]["calls"] == 30
            assert router.app.settings.policy.use == "workload_aware"
            orjson.dumps(found)


@pytest.mark.slow
async def test_a_replay_ends_with_the_router(tmp_path: Path) -> None:
    log = tmp_path / "d.jsonl"
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    async with ScriptedBackend() as backend:
        async with router_for((backend, {"max_inflight": 2}), decisions={"file": log}) as router:
            await router.post("/v1/chat/completions", body)
            await asyncio.sleep(0.5)
            running = Tasks().spawn(router.app.board.what_if.try_out("line: {ageing: 9s}"), name="replay")
            await asyncio.sleep(0.5)
        with pytest.raises(BadRequest, match="the replay failed"):
            await running
