"""The random-weight model: the same bytes each time, and what the other tests rely on in what it says."""

from __future__ import annotations

import hashlib
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from bench import model_maker
from bench.model_maker import ModelFiles
from bench.random_llama.recipe import circle, follows_circle
from bench.servers.engines import LlamaCppServer
from bench.servers.process import open_directly


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_two_makings_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        model_maker.make(tmp_path / name)
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


def test_a_made_model_is_not_made_again(tmp_path: Path) -> None:
    first = model_maker.cached(root=tmp_path)
    stamp = first.gguf.stat().st_mtime_ns
    assert model_maker.cached(root=tmp_path) == first
    assert first.gguf.stat().st_mtime_ns == stamp
    assert [path.name for path in tmp_path.iterdir()] == [first.gguf.parent.name], "nothing half-made is left"


def test_the_circle_goes_through_all_words_once() -> None:
    words = circle()
    assert len(words) == len(set(words)) > 500
    assert follows_circle(" ".join(words + words))
    assert not follows_circle(f"{words[0]} {words[2]}")
    assert not follows_circle(f"{words[0]} {words[0]}")
    assert not follows_circle("")


@pytest.fixture(scope="module")
def server(model: ModelFiles, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaCppServer]:
    log = tmp_path_factory.mktemp("maker") / "server.log"
    with LlamaCppServer(model.gguf, slots=1, ctx=4096, log=log) as server:
        yield server


@pytest.mark.llamacpp
class TestInLlamaCpp:
    def post(self, server: LlamaCppServer, path: str, body: object) -> bytes:
        request = urllib.request.Request(server.url + path, data=json.dumps(body).encode())
        with open_directly(request, timeout_s=20) as response:
            return response.read()

    def test_each_token_is_one_visible_chunk_and_it_does_not_stop_early(self, server: LlamaCppServer) -> None:
        body = {"messages": [{"role": "user", "content": "Tell me"}], "max_tokens": 700, "stream": True, "seed": 1}
        lines = self.post(server, "/v1/chat/completions", body).decode().splitlines()
        events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
        texts = [event["choices"][0]["delta"].get("content") for event in events if event["choices"]]
        words = [text for text in texts if text]
        assert len(words) == 700
        assert all(word.strip() in circle() for word in words)
        assert follows_circle("".join(words)), "sampling at the default temperature follows it too"

    def test_different_prompts_give_different_texts(self, server: LlamaCppServer) -> None:
        texts = set()
        for word in circle()[:20]:
            body = {"messages": [{"role": "user", "content": f"Say {word}"}], "max_tokens": 3, "temperature": 0}
            answer = json.loads(self.post(server, "/v1/chat/completions", body))
            texts.add(answer["choices"][0]["message"]["content"])
        assert len(texts) >= 6

    @pytest.mark.parametrize(
        "text", ["the river is deep", "caf\u00e9 \u4f60\u597d \U0001f600\n\t{}", "x" * 50, " about"]
    )
    def test_it_cuts_text_as_the_tokenizer_file_says(
        self, server: LlamaCppServer, model: ModelFiles, text: str
    ) -> None:
        ours = json.loads(self.post(server, "/tokenize", {"content": text}))["tokens"]
        assert ours == Tokenizer.from_file(str(model.hf / "tokenizer.json")).encode(text).ids
