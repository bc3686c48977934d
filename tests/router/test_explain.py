"""What `explain` says of the learned model: which features moved the verdict, and by how much, in words."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.router.running import Running, router_for
from tests.scripted import ScriptedBackend

CHAT = "/v1/chat/completions"
SECRET = "xq7-marzipan"
TALK: dict[str, Any] = {
    "stream": True,
    "temperature": 0.7,
    "messages": [
        {"role": "user", "content": f"Hi! Can you help me plan a birthday for my sister? {SECRET}"},
        {"role": "assistant", "content": "Of course. How many guests do you expect?"},
        {"role": "user", "content": "About ten, and most of them do not eat meat."},
    ],
}


async def explained(router: Running, **body: Any) -> dict[str, Any]:
    answer = await router.admin("POST", "/explain", orjson.dumps({"path": CHAT, "body": body}))
    assert answer.status == 200, answer.body
    told: Any = answer.json()
    return dict(told)


def voice(told: dict[str, Any], source: str) -> dict[str, Any]:
    (found,) = [each for each in told["voices"] if each["source"] == source]
    return dict(found)


async def test_the_model_says_how_probable_and_what_moved_it() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        told = await explained(router, **TALK)

    shares, *effects = voice(told, "model")["notes"]
    assert (told["source"], told["class"]) == ("model", "ttft")
    assert sum(float(share.split()[1]) for share in shares.split(", ")) == pytest.approx(1.0, abs=0.011)
    assert 3 <= len(effects) <= 6
    assert all(effect.endswith(" for ttft") for effect in effects)
    assert any(effect.startswith("it streams: +") for effect in effects)


async def test_the_numbers_of_a_call_are_told_by_name_and_none_of_its_text() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        told = await explained(router, **TALK)

    assert told["features"]["numbers"]["stream"] == 1
    assert "tools" not in told["features"]["numbers"], "what is zero is left out"
    assert SECRET not in orjson.dumps(told).decode()


async def test_an_unsure_model_says_what_it_was_too_unsure_for() -> None:
    async with ScriptedBackend() as backend, router_for(backend, classify={"min_confidence": 1.0}) as router:
        told = await explained(router, messages=[{"role": "user", "content": "hm"}])

    assert told["reasons"][0] == "unsure"
    assert "min_confidence 1; mixed is the cautious class for no_stream" in voice(told, "model")["notes"][1]


async def test_without_a_model_the_table_of_shapes_is_asked() -> None:
    async with ScriptedBackend() as backend, router_for(backend, classify={"model": "off"}) as router:
        told = await explained(router, stream=True, messages=[{"role": "user", "content": "hm"}])

    assert [each["source"] for each in told["voices"]] == ["header", "rule", "builtin", "default"]
    assert (told["source"], told["reasons"]) == ("builtin", ["stream"])


async def test_what_a_caller_chose_on_purpose_is_no_question_for_the_model() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        told = await explained(router, service_tier="flex", **TALK)

    assert (told["source"], told["class"]) == ("builtin", "throughput")
    assert voice(told, "model")["class"] == "ttft"


async def test_what_a_call_would_see_on_each_backend_is_foretold() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        told = await explained(router, **TALK)
        rows: Any = orjson.loads((await router.admin("GET", "/backends")).body)["backends"]

    (considered,) = told["considered"]
    seen = considered["predicted"]
    assert 0.0 == seen["wait_s"] < seen["ttft_s"] < seen["complete_s"]
    assert seen["ttft_s"] < seen["ttft_p90_s"]
    assert seen["complete_s"] < seen["complete_p90_s"]
    assert 0.0 <= seen["keeps_promise_0_1"] <= 1.0
    assert rows[0]["pace"]["answers"] == 0
    assert rows[0]["pace"]["prefill_tokens_per_s"] > 0


DEEP_TOOLS = b'{"messages": [{"role": "user", "content": "a"}], "tools": ' + b"[" * 300 + b"]" * 300 + b"}"


@pytest.mark.parametrize(
    "body",
    [
        DEEP_TOOLS,
        orjson.dumps(r'{"messages": [{"role": "user", "content": "a"}], "prompt_cache_key": "\ud83d"}'),
        orjson.dumps(r'{"messages": [{"role": "user", "content": "\ud83d"}], "metadata": {"session_id": "\ud83d"}}'),
        orjson.dumps('{"messages": [{"role": "user", "content": "a"}], "priority": 99999999999999999999, "x": NaN}'),
    ],
    ids=["deep tools", "half a key", "half a session", "a large number"],
)
async def test_a_body_that_is_judged_can_be_explained(body: bytes) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        answer = await router.admin("POST", "/explain", b'{"path": "%s", "body": %s}' % (CHAT.encode(), body))

    assert answer.status == 200, answer.body
    told: Any = answer.json()
    assert told["features"]["turns"] == 1


async def test_a_body_that_is_nested_too_deep_is_refused_in_words() -> None:
    """By how many levels depends on Python."""
    body = DEEP_TOOLS.replace(b"[" * 300, b"[" * 1015).replace(b"]" * 300, b"]" * 1015)
    async with ScriptedBackend() as backend, router_for(backend) as router:
        answer = await router.admin("POST", "/explain", b'{"path": "%s", "body": %s}' % (CHAT.encode(), body))

    assert answer.status in (200, 400), answer.body
