"""A17: another name for the model makes another size of the body; strict backends refuse a length that is off."""

from __future__ import annotations

import asyncio
import contextlib
import json

import orjson
import pytest

from tests.cases.apis import CHAT, Api, each_api
from tests.router.running import router_for
from tests.scripted import Peer, Received, Script

SERVED = "Qwen/Qwen3-8B-Instruct-AWQ"
TEXT = "żółć 😀"
NAMES = ["fast", "a-public-name-that-is-much-longer-than-that-of-the-backend", "sam-length-as-the-backend-", "ż"]


def strict(then: Script) -> Script:
    """Refuses what has no length, two, or bytes behind its end."""

    async def script(request: Received, peer: Peer) -> None:
        lengths = request.all("content-length")
        extra = b""
        with contextlib.suppress(TimeoutError):
            extra = await asyncio.wait_for(peer.reader.read(1), 0.03)
        if lengths != [str(len(request.body))] or request.all("transfer-encoding") or extra:
            await peer.json({"error": "malformed"}, "400 Bad Request")
        else:
            await then(request, peer)

    return script


async def answers(request: Received, peer: Peer) -> None:
    document = orjson.loads(request.body)
    if document["model"] == SERVED:
        await peer.json(CHAT.whole)
    else:
        await peer.json({"error": f"unknown model {document['model']}"}, "404 Not Found")


async def test_the_call_of_the_report_twice_on_one_connection() -> None:
    async with CHAT.backend(strict(answers), models=(SERVED,)) as backend:
        async with router_for(backend, models={"fast": {"b0": SERVED}}) as router, await router.client() as client:
            for _ in range(2):
                body = json.dumps(
                    {"model": "fast", "messages": [{"role": "user", "content": TEXT}]}, ensure_ascii=False
                ).encode()
                await client.post(CHAT.path, body)
                assert (await client.answer()).status == 200
                assert backend.received[-1].body == body.replace(b'"fast"', b'"%b"' % SERVED.encode())


@pytest.mark.parametrize("name", NAMES)
@each_api
async def test_every_length_of_name_in_every_api(api: Api, name: str) -> None:
    async with api.backend(strict(answers)) as backend:
        served = (backend, {**api.settings, "models": [SERVED]})
        async with router_for(served, models={name: {"b0": SERVED}}) as router:
            answer = await router.post(api.path, {**api.body(stream=False), "user": TEXT, "model": name})
            assert answer.status == 200
            assert orjson.loads(backend.received[0].body) == {**api.body(stream=False), "user": TEXT, "model": SERVED}


async def test_every_spelling_of_the_field_that_a_json_writer_may_choose() -> None:
    bodies = [
        b'{"model":"fast","messages":[{"role":"user","content":"hi"}]}',
        b'{ "messages" : [{"role":"user","content":"\\"model\\":\\"fast\\""}] ,\r\n\t"model"\n:\t"fast" }',
        b'{"metadata":{"model":"fast"},"messages":[{"role":"user","content":"hi","model":"fast"}],"model":"fast"}',
        b'{"model":"\\u0066ast","messages":[{"role":"user","content":"hi"}]}',
        b'{"model":"fast","messages":[{"role":"user","content":"hi"}],"model":"fast"}',
        b'{"mod\\u0065l":"fast","messages":[{"role":"user","content":"hi"}]}',
    ]
    async with CHAT.backend(strict(answers), models=(SERVED,)) as backend:
        async with router_for(backend, models={"fast": {"b0": SERVED}}) as router:
            for body in bodies:
                assert (body, (await router.post(CHAT.path, body)).status) == (body, 200)


async def test_a_priority_that_is_added_counts_as_well() -> None:
    async with CHAT.backend(strict(answers), models=(SERVED,)) as backend:
        settings = {"engine": "vllm", "forward_priority": True}
        async with router_for((backend, settings), models={"fast": {"b0": SERVED}}) as router:
            assert (await router.post(CHAT.path, {**CHAT.body(stream=False), "model": "fast"})).status == 200
            assert "priority" in orjson.loads(backend.received[0].body)


async def test_a_form_with_a_recording() -> None:
    async def form(request: Received, peer: Peer) -> None:
        assert request.body == sent.replace(b"fast", SERVED.encode())
        await peer.json({"text": "hi"})

    sent = (
        b'--XX\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
        + bytes(range(256)) * 20
        + b"\r\n"
        b'--XX\r\nContent-Disposition: form-data; name="model"\r\n\r\nfast\r\n--XX--\r\n'
    )
    async with CHAT.backend(strict(form), models=(SERVED,)) as backend:
        async with router_for(backend, models={"fast": {"b0": SERVED}}) as router, await router.client() as client:
            for _ in range(2):
                await client.request(
                    "POST", "/v1/audio/transcriptions", sent, "Content-Type: multipart/form-data; boundary=XX"
                )
                assert (await client.answer()).status == 200


async def test_one_name_per_backend_also_where_the_first_is_gone() -> None:
    async with CHAT.backend(models=("small",)) as gone, CHAT.backend(strict(answers), models=(SERVED,)) as alive:
        async with router_for(gone, alive, models={"fast": {"b0": "small", "b1": SERVED}}) as router:
            await gone.stop()
            answer = await router.post(CHAT.path, {**CHAT.body(stream=False), "model": "fast"})
            assert answer.status == 200
            assert answer.header("x-twolane-backend") == "b1"
