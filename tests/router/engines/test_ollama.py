"""What is read from an Ollama server, and its rule for names."""

from __future__ import annotations

import pytest

from router.engines import ENGINES
from router.engines.api import Identity
from tests.router.engines.fixtures import OLLAMA, OLLAMA_TAGS, told

ollama = ENGINES["ollama"]


def test_models_on_disk_and_the_context_of_what_is_in_memory_are_read() -> None:
    assert ollama.recognise(OLLAMA) == Identity(
        engine="ollama", version="0.14.2", slots=None, context_tokens=4096, models=("qwen3:latest", "gemma3:1b")
    )


def test_without_models_in_memory_the_context_is_unknown() -> None:
    identity = ollama.recognise({**OLLAMA, "/api/ps": told({"models": []})})
    assert identity is not None
    assert identity.context_tokens is None


def test_none_on_disk_is_no_model_and_silence_is_any_model() -> None:
    empty = ollama.recognise({**OLLAMA, "/api/tags": told({"models": []})})
    silent = ollama.recognise({"/": OLLAMA["/"]})
    assert empty is not None
    assert empty.models == ()
    assert silent == Identity(engine="ollama", models=None)


def test_it_is_recognised_without_its_front_page() -> None:
    assert ollama.recognise({"/api/version": told({"version": "1"}), "/api/tags": told(OLLAMA_TAGS)}) is not None
    assert ollama.recognise({"/api/version": told({"version": "1"})}) is None


def test_of_a_router_all_models_are_read_and_not_only_those_for_clients_of_ollama() -> None:
    listed = {"object": "list", "data": [{"id": name, "owned_by": "twolane"} for name in ("qwen3:latest", "big")]}
    identity = ollama.recognise({**OLLAMA, "/v1/models": told(listed), "/api/tags": told({"models": []})})
    assert identity is not None
    assert identity.models == ("qwen3:latest", "big")


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("qwen3", "qwen3:latest", True),
        ("qwen3:latest", "qwen3:latest", True),
        ("qwen3:latest", "qwen3", True),
        ("qwen3:1b", "qwen3:latest", False),
        ("qwen3", "qwen3:1b", False),
        ("Qwen3", "qwen3:latest", True),
        ("library/qwen3", "qwen3:latest", True),
        ("registry.ollama.ai/library/qwen3:latest", "qwen3", True),
        ("someone/qwen3", "qwen3:latest", False),
        ("hf.co/org/Model-GGUF", "hf.co/org/Model-GGUF:latest", True),
        ("host:5000/qwen3", "host:5000/qwen3:latest", True),
    ],
)
def test_a_name_without_a_tag_means_latest(asked: str, served: str, same: bool) -> None:
    """Field case: `qwen3` and `qwen3:latest` are one model, `qwen3:1b` is another."""
    assert ollama.same_model(asked, served) is same


def test_other_kinds_take_names_to_the_letter() -> None:
    assert not ENGINES["llamacpp"].same_model("qwen3", "qwen3:latest")
    assert not ENGINES["vllm"].same_model("Qwen3", "qwen3")
    assert ENGINES["vllm"].same_model("qwen3", "qwen3")
