"""The decision log of a running router: what is in it, and what never is."""

from __future__ import annotations

import asyncio
import re
import stat
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest
import yaml

from router.observe.decisions import line_schema
from router.settings.load import load
from tests.cases.apis import CHAT, Api, each_api
from tests.router.running import router_for
from tests.scripted import Peer, Received, ScriptedBackend, echo, eventually

SECRET = "xyzzy"
"""In each planted value, so that one look finds any of them, in any case."""


def lines(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


async def written(path: Path, count: int) -> list[dict[str, Any]]:
    await eventually(lambda: len(lines(path)) >= count)
    found = lines(path)
    assert len(found) == count
    return found


async def streamed(request: Received, peer: Peer) -> None:
    await peer.stream_head()
    for piece in (CHAT.opening, CHAT.token("one"), CHAT.token("two"), CHAT.ending):
        await peer.chunk(piece)
    await peer.last_chunk()


async def test_a_line_says_what_was_decided_and_what_came_of_it(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    async with ScriptedBackend(streamed) as backend, router_for(backend, decisions={"file": str(file)}) as router:
        fields = ("x-twolane-class: ttft", "x-request-id: call-7")
        assert (await router.post(CHAT.path, CHAT.body(stream=True, max_tokens=9), *fields)).status == 200
        (line,) = await written(file, 1)
    assert (line["format"], line["recalled"]) == (2, False)
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line["time"])
    assert (line["id"], line["surface"], line["stream"], line["max_tokens"]) == ("call-7", "openai_chat", True, 9)
    assert (line["class"], line["confidence"], line["source"]) == ("ttft", 1.0, "header")
    assert line["reasons"] == ["class_header"]
    assert (line["backend"], line["outcome"], line["status"], line["retries"]) == ("b0", "completed", 200, 0)
    assert line["placement"]
    assert 0 <= line["ttft_s"] <= line["complete_s"]
    assert (line["prompt_tokens"], line["output_tokens"]) == (5, 1)
    assert (line["left"], line["read_to_end"], line["stalls"], line["slo_met"]) == ("", True, 0, True)
    assert line["shadow"] is None
    assert line["features"]
    assert all(isinstance(value, int | float) for value in line["features"].values())
    assert all(re.fullmatch(r"[0-9a-f]{16}", line[name]) for name in ("client", "model", "session"))
    assert line["asked"]["turns"] == 1
    assert line["server"] == {"engine": "openai", "slots": None, "cap": None, "context_tokens": None}


async def test_lines_are_as_the_published_schema_says_and_it_names_each_field(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    wanted = {"file": str(file), "text_hashes": True}
    schema = line_schema()
    async with ScriptedBackend(streamed) as backend, router_for(backend, decisions=wanted) as router:
        await router.post(CHAT.path, CHAT.body(stream=True, max_tokens=9), "x-twolane-class: ttft")
        await router.post(CHAT.path, CHAT.body(stream=False))
        for line in await written(file, 2):
            jsonschema.validate(line, schema)
            assert line.keys() <= schema["properties"].keys()
    described = (Path(__file__).parents[2] / "docs" / "decision-log.md").read_text(encoding="utf-8")
    assert [name for name in schema["properties"] if f"`{name}`" not in described] == []


def row(number: int) -> dict[str, Any]:
    text = f"Label this record as A or B.\n\nRecord {number}: it was delivered on day {number} of the month."
    return CHAT.body(stream=False, messages=[{"role": "user", "content": text}])


async def test_in_a_flood_of_rows_most_lines_say_that_their_verdict_is_that_of_the_ones_before(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    async with ScriptedBackend(echo) as backend, router_for(backend, decisions={"file": str(file)}) as router:
        async with await router.client() as client:
            for number in range(40):
                await client.post(CHAT.path, row(number))
                assert (await client.answer()).status == 200
        found = await written(file, 40)
    for line in found:
        jsonschema.validate(line, line_schema())
    judged = [line for line in found if not line["recalled"]]
    recalled = [line for line in found if line["recalled"]]
    assert len(recalled) > len(judged) > 4
    assert all(line["features"] and line["why"] for line in judged)
    assert all(line["features"] is None and not line["why"] for line in recalled)
    assert {line["source"] for line in found} == {"model"}
    assert all(line["expected"] is not None for line in found)
    assert all(0 <= line["arrival"]["since_program_answer_s"] < 60 for line in recalled)
    assert all(line["arrival"]["start_share"] > 0.5 for line in recalled)


async def test_a_call_that_says_its_class_is_never_recalled(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    async with ScriptedBackend(echo) as backend, router_for(backend, decisions={"file": str(file)}) as router:
        async with await router.client() as client:
            for number in range(12):
                await client.post(CHAT.path, row(number), "x-twolane-class: throughput")
                await client.answer()
        found = await written(file, 12)
    assert all(line["features"] and not line["recalled"] for line in found)


async def test_only_judged_calls_have_a_line(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    async with ScriptedBackend(echo) as backend:
        options = {"engine": "vllm"}
        async with router_for((backend, options), decisions={"file": str(file)}, passthrough="b0") as router:
            await router.post("/tokenize", {"model": "m", "prompt": "x"})
            await router.post("/v1/odd", {})
            await router.post(CHAT.path, b"not json")
            await router.get("/v1/models")
            await router.post(CHAT.path, CHAT.body(stream=False))
    (line,) = lines(file)
    assert line["surface"] == "openai_chat"


async def test_a_client_that_leaves_is_told_apart_by_when_it_left(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    begin = asyncio.Event()

    async def script(request: Received, peer: Peer) -> None:
        if orjson.loads(request.body).get("user") == "later":
            await peer.stream_head()
            await peer.token("one")
        begin.set()
        await peer.until_closed()

    async with ScriptedBackend(script) as backend, router_for(backend, decisions={"file": str(file)}) as router:
        for number, (user, stream) in enumerate((("at once", True), ("later", True), ("at once", False)), start=1):
            begin.clear()
            async with await router.client() as client:
                await client.post(CHAT.path, CHAT.body(stream=stream, user=user), "x-twolane-class: interactive")
                await begin.wait()
                if user == "later":
                    await client.piece(await client.answer(head_only=True))
            await written(file, number)
        assert router.metric("twolane_feedback_total", did="left_before_first_token", source="header") == 1
        assert router.metric("twolane_feedback_total", did="left_during_answer", **{"class": "ttft"}) == 1
    assert [line["left"] for line in lines(file)] == ["before_first_token", "during_answer", "before_answer"]
    assert [line["outcome"] for line in lines(file)] == ["client_gone"] * 3
    assert not any(line["read_to_end"] for line in lines(file))


async def test_a_client_that_does_not_read_is_told_apart_from_one_that_does(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    token = CHAT.token("x" * 60_000)

    async def script(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        for _ in range(400):  # more than all buffers on the way hold
            await peer.chunk(token)
        await peer.last_chunk()

    async with ScriptedBackend(script) as backend, router_for(backend, decisions={"file": str(file)}) as router:
        for pause_s in (0.0, 1.0):
            async with await router.client() as client:
                await client.post(CHAT.path, CHAT.body(stream=True), "x-twolane-class: ttft")
                answer = await client.answer(head_only=True)
                await asyncio.sleep(pause_s)
                await client.rest(answer)
        await written(file, 2)
        assert router.metric("twolane_feedback_total", did="read_slowly") >= 1
    assert lines(file)[1]["stalls"] > 0
    assert all(line["read_to_end"] for line in lines(file))


async def test_promises_are_told_as_kept_or_missed(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    classes = {"ttft": {"slo": {"ttft": 30.0, "tpot": None}}, "mixed": {"slo": {"complete": 0.000001}}}
    async with ScriptedBackend(streamed) as backend:
        async with router_for(backend, decisions={"file": str(file)}, classes=classes) as router:
            for name in ("ttft", "mixed", "throughput"):
                await router.post(CHAT.path, CHAT.body(stream=True), f"x-twolane-class: {name}")
            await eventually(lambda: len(lines(file)) == 3)
            assert router.metric("twolane_objectives_total", result="kept", **{"class": "ttft"}) == 1
            assert router.metric("twolane_objectives_total", result="missed", **{"class": "mixed"}) == 1
            assert router.metric("twolane_objectives_total") == 2
    assert [line["slo_met"] for line in lines(file)] == [True, False, None]


async def test_a_client_stays_the_same_one_after_a_restart_and_cannot_be_guessed(tmp_path: Path) -> None:
    file, salt = tmp_path / "d.jsonl", tmp_path / "d.jsonl.salt"
    async with ScriptedBackend(echo) as backend:
        for _ in range(2):
            async with router_for(backend, decisions={"file": str(file)}) as router:
                for program in ("a/1", "b/1"):
                    await router.post(CHAT.path, CHAT.body(stream=False), f"User-Agent: {program}")
        first, second, third, fourth = (line["client"] for line in lines(file))
        assert (first, second) == (third, fourth)
        assert first != second
        assert stat.S_IMODE(salt.stat().st_mode) == 0o600
        salt.unlink()
        async with router_for(backend, decisions={"file": str(file)}) as router:
            await router.post(CHAT.path, CHAT.body(stream=False), "User-Agent: a/1")
    assert lines(file)[-1]["client"] not in (first, second)


def planted(api: Api) -> dict[str, Any]:
    """A call that says it in every place where a client can put words."""
    tool = {"type": "function", "function": {"name": f"t_{SECRET}", "description": SECRET, "parameters": {SECRET: 1}}}
    body = api.body(
        stream=True,
        user=SECRET,
        metadata={SECRET: SECRET},
        stop=[SECRET],
        tools=[tool],
        tool_choice={"type": "function", "function": {"name": SECRET}},
        system=f"You are {SECRET}",
        instructions=SECRET,
        response_format={"type": SECRET, "json_schema": {"name": SECRET}},
        prompt_cache_key=SECRET,
        previous_response_id=SECRET,
        service_tier=SECRET,
        suffix=SECRET,
        **{SECRET: SECRET},
    )
    body["model"] = SECRET
    for name in ("prompt", "input"):
        if name in body:
            body[name] = f"{SECRET} or not"
    if "messages" in body:
        body["messages"] = [
            {"role": "system", "content": f"be {SECRET}"},
            {"role": "user", "content": [{"type": "text", "text": SECRET}], "name": SECRET},
            {"role": "assistant", "content": "", "tool_calls": [{"id": SECRET, **tool}]},
            {"role": "tool", "tool_call_id": SECRET, "content": SECRET},
            {"role": SECRET, "content": f"What is {SECRET}?\n{SECRET}: {SECRET}"},
        ]
    return body


CARRIERS = (
    *(f"{name}: {SECRET}" for name in (
        "X-Session-Id", "X-Twolane-Pipeline", "X-Twolane-Class", "Priority", "X-Llm-D-Inference-Objective", "Cookie",
        "X-Team", "X-Api-Key", "User-Agent", "X-Stainless-Lang", "Traceparent", "X-Forwarded-For", "Referer", SECRET,
    )),
    f"Authorization: Bearer {SECRET}",
)  # fmt: skip


@each_api
@pytest.mark.parametrize("text_hashes", [False, True])
async def test_no_word_of_a_call_or_its_answer_is_in_it_at_any_setting(
    api: Api, text_hashes: bool, tmp_path: Path
) -> None:
    file = tmp_path / "d.jsonl"

    async def script(request: Received, peer: Peer) -> None:
        if request.one("x-fail"):
            await peer.json({"error": {"message": SECRET, "type": SECRET}}, f"500 {SECRET}", f"X-Odd: {SECRET}")
            return
        await peer.stream_head(f"X-Odd: {SECRET}", content_type=api.content_type)
        for piece in (api.opening, api.token(SECRET), api.ending):
            await peer.chunk(piece)
        await peer.last_chunk()

    rules = [
        {"if": {"header": {"x-team": f"{SECRET}*"}, "stream": True}, "then": "mixed"},
        {"if": {"model": SECRET}, "then": "mixed"},
    ]
    async with api.backend(script) as backend:
        settings: dict[str, Any] = {
            "models": {SECRET: {"b0": "m"}},
            "decisions": {"file": str(file), "text_hashes": text_hashes},
            "classify": {"rules": rules, "shadow": "builtin"},
            "keys": [{"name": "editor", "key": SECRET, "classes": ["ttft", "mixed"]}],
            "log": {"calls": True},
        }
        async with router_for((backend, api.settings), **settings) as router:
            for more in ({}, {"messages": SECRET, "prompt": [], "input": 5}):
                for fields in (CARRIERS, [field for field in CARRIERS if "Pipeline" not in field]):
                    await router.post(f"{api.path}?{SECRET}", {**planted(api), **more}, *fields)
                    await router.post(api.path, {**planted(api), **more, "stream": False}, *fields, "X-Fail: 1")
    found = lines(file)
    assert {line["outcome"] for line in found} >= {"completed", "backend_error"}
    assert {line["source"] for line in found} >= {"header", "rule"}
    everything = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert SECRET.encode() not in everything.lower()
    assert b"127.0.0.1" not in everything
    assert b"editor" not in everything, "the name of a key is hashed as well"
    assert ("text" in found[0]) is text_hashes


async def test_hashes_of_text_come_only_where_they_are_asked_for_and_are_keyed(tmp_path: Path) -> None:
    async with ScriptedBackend(echo) as backend:
        hashes = []
        for number in range(2):
            file = tmp_path / f"{number}.jsonl"
            async with router_for(backend, decisions={"file": str(file), "text_hashes": True}) as router:
                for system in ("be good", "be good", "be bad"):
                    messages = [{"role": "system", "content": system}, {"role": "user", "content": "hi there"}]
                    await router.post(CHAT.path, CHAT.body(stream=False, messages=messages))
            first, second, third = (line["text"]["system"] for line in lines(file))
            assert first == second != third
            hashes.append(first)
    assert hashes[0] != hashes[1], "another salt, other hashes"


async def test_a_log_that_cannot_be_written_hurts_no_call_and_is_counted(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    async with ScriptedBackend(echo) as backend:
        async with router_for(backend, decisions={"file": str(folder / "d.jsonl")}) as router:
            (folder / "d.jsonl.salt").unlink()
            folder.rmdir()
            for _ in range(3):
                assert (await router.post(CHAT.path, CHAT.body(stream=False))).status == 200
            await eventually(lambda: router.metric("twolane_decisions_dropped_total") == 3)


async def test_a_call_with_a_number_that_no_json_holds_is_in_the_log(tmp_path: Path) -> None:
    """Such a number is read where half a character makes the body one that is read leniently."""
    file = tmp_path / "d.jsonl"
    body = b'{"model": "m", "max_tokens": 99999999999999999999, "messages": [{"role": "user", "content": "\\ud83d"}]}'
    async with ScriptedBackend(echo) as backend, router_for(backend, decisions={"file": str(file)}) as router:
        assert (await router.post(CHAT.path, body)).status == 200
        (line,) = await written(file, 1)
        assert line["max_tokens"] == 2**53
        assert router.metric("twolane_decisions_dropped_total") == 0


async def test_what_ends_at_shutdown_is_in_the_log(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    async with ScriptedBackend(echo) as backend:
        async with router_for(backend, decisions={"file": str(file)}) as router:
            for _ in range(20):
                await router.post(CHAT.path, CHAT.body(stream=False))
    assert len(lines(file)) == 20


async def test_another_log_from_one_reload_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "twolane.yaml"
    async with ScriptedBackend(echo) as backend:

        def wanted(decisions: dict[str, Any]) -> dict[str, Any]:
            entry = {"name": "b0", "url": backend.url, "engine": "openai", "lane": "latency"}
            return {
                "listen": "127.0.0.1:0",
                "admin": "127.0.0.1:0",
                "backends": [entry],
                "decisions": decisions,
            }

        path.write_text(yaml.safe_dump(wanted({})), encoding="utf-8")
        async with router_for(backend, path=path, digest=load(path).digest) as router:
            for decisions in ({"file": "a.jsonl"}, {"file": "b.jsonl", "max_size": "1MiB"}, {"file": None}):
                path.write_text(yaml.safe_dump(wanted(decisions)), encoding="utf-8")
                assert (await router.app.reload())["problems"] == []
                await router.post(CHAT.path, CHAT.body(stream=False))
            assert len(await written(tmp_path / "a.jsonl", 1)) == 1
            assert len(await written(tmp_path / "b.jsonl", 1)) == 1


async def test_explain_writes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    async with ScriptedBackend(echo) as backend, router_for(backend, decisions={"file": str(file)}) as router:
        asked = orjson.dumps({"path": CHAT.path, "body": CHAT.body(stream=True)})
        assert (await router.admin("POST", "/explain", asked)).status == 200
    assert lines(file) == []
