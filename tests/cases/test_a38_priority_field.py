"""A38: vLLM works on lower numbers first and SGLang on higher ones; nobody else is sent any."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.cases.apis import CHAT, COMPLETIONS, MESSAGES, OLLAMA_CHAT, RESPONSES, Api
from tests.router.running import router_for
from tests.scripted import ScriptedBackend

CLASSES = ("interactive", "hop", "batch")
WANTED = {"forward_priority": True}


async def priorities(engine: str, api: Api, **more: Any) -> list[Any]:
    """What a backend of that kind is sent for the three classes; the rest of the body is as it was."""
    async with api.backend() as backend, router_for((backend, {"engine": engine, **WANTED, **more})) as router:
        for name in CLASSES:
            assert (await router.post(api.path, api.body(stream=False), f"X-Twolane-Class: {name}")).status == 200
        bodies = [orjson.loads(request.body) for request in backend.received]
        found = [body.pop("priority", None) for body in bodies]
        assert bodies == [api.body(stream=False)] * 3
        return found


@pytest.mark.parametrize("api", [CHAT, COMPLETIONS, RESPONSES], ids=str)
async def test_the_urgent_one_is_the_lower_number_on_vllm_and_the_higher_one_on_sglang(api: Api) -> None:
    interactive, hop, batch = await priorities("vllm", api)
    assert interactive < hop < batch
    interactive, hop, batch = await priorities("sglang", api)
    assert interactive > hop > batch


@pytest.mark.parametrize(
    ("engine", "api"),
    [("llamacpp", CHAT), ("llamacpp", MESSAGES), ("ollama", OLLAMA_CHAT), ("lmstudio", CHAT), ("openai", CHAT)],
)
async def test_others_are_sent_none(engine: str, api: Api) -> None:
    assert await priorities(engine, api) == [None] * 3


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
async def test_nor_is_anybody_where_it_is_switched_off(engine: str) -> None:
    assert await priorities(engine, CHAT, forward_priority=False) == [None] * 3


async def test_two_kinds_in_one_fleet_each_get_their_own_number() -> None:
    async with ScriptedBackend() as one, ScriptedBackend() as two:
        fleet = (one, {"engine": "vllm", **WANTED}), (two, {"engine": "sglang", **WANTED})
        async with router_for(*fleet, policy="round_robin") as router:
            for name in ("interactive", "batch") * 8:
                await router.post(CHAT.path, CHAT.body(stream=False, user=name), f"X-Twolane-Class: {name}")
            numbers = [
                {body["user"]: body["priority"] for body in map(orjson.loads, (got.body for got in backend.received))}
                for backend in (one, two)
            ]
            assert numbers[0]["interactive"] < numbers[0]["batch"]
            assert numbers[1]["interactive"] > numbers[1]["batch"]


OWN = {
    "number": b'{"model":"m","messages":[{"role":"user","content":"hi"}],"priority":7}',
    "zero": b'{"priority" : 0,"model":"m","messages":[{"role":"user","content":"hi"}]}',
    "null": b'{"model":"m","priority":null,"messages":[{"role":"user","content":"hi"}]}',
    "word": b'{"model":"m","priority":"high","messages":[{"role":"user","content":"hi"}]}',
    "fraction": b'{"model":"m","priority":0.5,"messages":[{"role":"user","content":"hi"}]}',
}


@pytest.mark.parametrize("body", OWN.values(), ids=OWN)
async def test_a_clients_own_is_left_alone(body: bytes) -> None:
    async with ScriptedBackend() as backend, router_for((backend, {"engine": "vllm", **WANTED})) as router:
        assert (await router.post(CHAT.path, body, "X-Twolane-Class: batch")).status == 200
        assert backend.received[0].body == body


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"m","messages":[{"role":"user","content":"the \\"priority\\":1 of it"}]}',
        b'{"model":"m","messages":[{"role":"user","content":"hi"}],"metadata":{"priority":1}}',
        b'\n { "model":"m","messages":[{"role":"user","content":"{"}] }',
        b'{"messages":[{"role":"user","content":"hi"}]}',
    ],
    ids=["in text", "deeper", "white space", "no model"],
)
async def test_what_only_looks_like_one_is_none(body: bytes) -> None:
    async with ScriptedBackend() as backend, router_for((backend, {"engine": "vllm", **WANTED})) as router:
        assert (await router.post(CHAT.path, body, "X-Twolane-Class: batch")).status == 200
        sent = orjson.loads(backend.received[0].body)
        assert isinstance(sent.pop("priority"), int)
        assert sent == orjson.loads(body)
        assert backend.received[0].one("content-length") == str(len(backend.received[0].body))


async def test_with_an_alias_both_are_put_in() -> None:
    aliases = {"fast": {"b0": "m"}}
    async with ScriptedBackend() as backend:
        async with router_for((backend, {"engine": "vllm", **WANTED}), models=aliases) as router:
            await router.post(CHAT.path, {**CHAT.call, "model": "fast"}, "X-Twolane-Class: batch")
            sent = orjson.loads(backend.received[0].body)
            assert sent == {**CHAT.call, "priority": sent["priority"]}


async def test_what_takes_no_turn_has_no_priority() -> None:
    async with ScriptedBackend() as backend, router_for((backend, {"engine": "vllm", **WANTED})) as router:
        body = {"model": "m", "prompt": "x"}
        assert (await router.post("/tokenize", body)).status == 200
        assert orjson.loads(backend.received[0].body) == body


async def test_a_form_is_not_taken_for_an_object() -> None:
    """A recording may contain any byte, braces among them."""
    form = (
        b'--XyZ\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n'
        b'--XyZ\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF{"a":1}\r\n--XyZ--\r\n'
    )
    async with ScriptedBackend() as backend, router_for((backend, {"engine": "vllm", **WANTED})) as router:
        async with await router.client() as client:
            for kind in ("multipart/form-data", "Multipart/Form-Data"):
                for body in (form, form.replace(b"{", b"").replace(b"}", b"")):
                    sent = f"Content-Type: {kind}; boundary=XyZ"
                    await client.request("POST", "/v1/audio/transcriptions", body, sent, "X-Twolane-Class: batch")
                    assert (await client.answer()).status == 200
                    assert backend.received[-1].body == body
