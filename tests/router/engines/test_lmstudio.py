"""What is read from LM Studio, over the versions of its own API."""

from __future__ import annotations

from router.engines import ENGINES
from router.engines.api import Identity
from tests.router.engines.fixtures import LMSTUDIO, LMSTUDIO_MODELS, LMSTUDIO_SHRUG, LMSTUDIO_V0, LMSTUDIO_V1, told

lmstudio = ENGINES["lmstudio"]


def test_slots_and_context_of_the_loaded_language_models_are_read() -> None:
    assert lmstudio.recognise(LMSTUDIO) == Identity(
        engine="lmstudio", slots=4, context_tokens=8192, models=("qwen/qwen3-4b",)
    )


def test_older_versions_tell_context_but_no_slots() -> None:
    answers = {"/v1/models": told(LMSTUDIO_MODELS), "/api/v0/models": told(LMSTUDIO_V0)}
    assert lmstudio.recognise(answers) == Identity(engine="lmstudio", context_tokens=8192, models=("qwen/qwen3-4b",))


def test_names_come_from_the_native_lists_where_the_common_one_is_missing() -> None:
    shrug = {"/v1/models": told(LMSTUDIO_SHRUG)}
    by_v1 = lmstudio.recognise({**shrug, "/api/v1/models": told(LMSTUDIO_V1)})
    by_v0 = lmstudio.recognise({**shrug, "/api/v0/models": told(LMSTUDIO_V0)})
    assert by_v1 is not None
    assert by_v1.models == ("qwen/qwen3-4b", "nomic")
    assert by_v0 is not None
    assert by_v0.models == ("qwen/qwen3-4b", "on-disk")


def test_the_owner_in_the_common_list_is_enough() -> None:
    assert lmstudio.recognise({"/v1/models": told(LMSTUDIO_MODELS)}) == Identity(
        engine="lmstudio", models=("qwen/qwen3-4b",)
    )
