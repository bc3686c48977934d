"""What can be read from a server of unknown make."""

from __future__ import annotations

import pytest

from router.engines import ENGINES
from router.engines.api import Identity
from tests.router.engines.fixtures import OTHER, told

openai = ENGINES["openai"]


def test_names_and_the_largest_context_are_read() -> None:
    assert openai.recognise(OTHER) == Identity(engine="openai", context_tokens=16384, models=("m1", "m2"))


@pytest.mark.parametrize("key", ["max_model_len", "context_length", "context_window"])
def test_the_context_size_is_found_under_the_names_that_servers_use(key: str) -> None:
    identity = openai.recognise({"/v1/models": told({"data": [{"id": "m", key: 4096}]})})
    assert identity is not None
    assert identity.context_tokens == 4096


def test_an_empty_list_means_that_any_name_may_be_tried() -> None:
    assert openai.recognise({"/v1/models": told({"object": "list", "data": []})}) == Identity(engine="openai")


def test_it_has_no_load_to_tell() -> None:
    assert openai.load_paths == ()
    assert openai.load(OTHER, None) is None
