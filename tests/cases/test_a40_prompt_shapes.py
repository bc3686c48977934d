"""A40: a prompt is text, token ids, or many of either. All are forwarded untouched and weighed as what they are."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.cases.apis import COMPLETIONS, LLAMACPP, Api
from tests.router.running import Running, router_for

SHAPES: list[tuple[object, int | None, int]] = [
    ("x", None, 1),
    (["x", "y"], None, 2),
    ([151644, 8948, 198], 3, 1),
    ([[1, 2], [3]], 3, 2),
    ([], 0, 1),
    ([[]], 0, 1),
    ("", 0, 1),
    (None, 0, 1),
    ([1] * 5000, 5000, 1),
    ([[1] * 100] * 50, 5000, 50),
    (["x"] * 500, None, 500),
    ([["a", "b"], "c"], None, 2),
    ([1, "some text between", 2], None, 1),
    ({"prompt_string": "look", "multimodal_data": ["aGVsbG8="]}, None, 1),
    ([{"prompt_string": "look", "multimodal_data": ["aGVsbG8="]}] * 3, None, 3),
]
"""A prompt, its tokens where they are known (beside the few that borders cost), and how many prompts it is."""
BORDERS = 4

each_api = pytest.mark.parametrize("api", [COMPLETIONS, LLAMACPP], ids=str)


async def explained(router: Running, api: Api, body: object) -> dict[str, Any]:
    answer = await router.admin("POST", "/explain", orjson.dumps({"path": api.path, "headers": {}, "body": body}))
    assert answer.status == 200, answer.body
    document: dict[str, Any] = answer.json()  # type: ignore[assignment]
    return document


@each_api
async def test_every_shape_passes_and_is_weighed(api: Api) -> None:
    async with api.backend() as backend, router_for((backend, api.settings)) as router:
        for prompt, tokens, prompts in SHAPES:
            body = api.body(stream=False, prompt=prompt)
            raw = orjson.dumps(body)
            answer = await router.post(api.path, raw)
            assert answer.status == 200, prompt
            assert backend.received[-1].body == raw
            found = (await explained(router, api, body))["features"]
            assert found["prompts"] == prompts, prompt
            if tokens is not None:
                assert tokens <= found["prompt_tokens"] <= tokens + BORDERS, prompt


@each_api
async def test_many_prompts_lean_to_throughput(api: Api) -> None:
    async with api.backend() as backend, router_for((backend, api.settings)) as router:
        for prompt in (["x"] * 20, [[1, 2, 3]] * 20):
            for stream in (False, True):
                assert (await explained(router, api, api.body(stream=stream, prompt=prompt)))["class"] == "throughput"
        assert (await explained(router, api, api.body(stream=True, prompt="x")))["class"] == "ttft"
        assert (await explained(router, api, api.body(stream=True, prompt=[151644, 8948, 198])))["class"] == "ttft"


async def test_a_missing_prompt_is_the_backends_to_judge() -> None:
    async with COMPLETIONS.backend() as backend, router_for(backend) as router:
        raw = b'{"model":"m","prompt_embeds":"AAAA"}'
        assert (await router.post(COMPLETIONS.path, raw)).status == 200
        assert backend.received[0].body == raw


@pytest.mark.parametrize("prompt", [5, 5.5, True])
async def test_what_is_no_prompt_to_anybody_is_refused(prompt: object) -> None:
    async with COMPLETIONS.backend() as backend, router_for(backend) as router:
        answer = await router.post(COMPLETIONS.path, COMPLETIONS.body(stream=False, prompt=prompt))
        assert answer.status == 400
        assert b"prompt" in answer.body
        assert backend.received == []


EMBED: list[tuple[str, dict[str, Any], int]] = [
    ("/v1/embeddings", {"input": "x"}, 1),
    ("/v1/embeddings", {"input": ["x", "y"]}, 2),
    ("/v1/embeddings", {"input": [1, 2, 3]}, 1),
    ("/v1/embeddings", {"input": [[1, 2], [3]]}, 2),
    ("/v1/embeddings", {"input": []}, 1),
    ("/tokenize", {"prompt": ["x", "y"]}, 2),
    ("/tokenize", {"content": "x"}, 1),
    ("/detokenize", {"tokens": [1, 2, 3]}, 1),
]


@pytest.mark.parametrize(("path", "fields", "prompts"), EMBED)
async def test_inputs_of_other_apis_have_the_same_shapes(path: str, fields: dict[str, Any], prompts: int) -> None:
    async with LLAMACPP.backend() as backend, router_for((backend, {"engine": "llamacpp"})) as router:
        raw = orjson.dumps({"model": "m", **fields})
        assert (await router.post(path, raw)).status == 200
        assert backend.received[0].body == raw
        answer: Any = (
            await router.admin("POST", "/explain", orjson.dumps({"path": path, "headers": {}, "body": {**fields}}))
        ).json()
        assert answer["features"]["prompts"] == prompts
