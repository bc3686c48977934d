"""What real llama.cpp reports of its prompts makes the router's figures right for its model.

The model of these tests has a tiny vocabulary: words that it does not know are cut letter by letter. So the estimate,
which is fitted to common vocabularies, is off by half and more.
"""

from __future__ import annotations

import statistics

import aiohttp
import pytest

from bench.servers.engines import LlamaCppServer
from bench.servers.router import RouterProcess
from tests.e2e.calls import CHAT, chat, post
from tests.e2e.conftest import StartRouter, lanes

pytestmark = pytest.mark.llamacpp

SUBJECTS = ("astronomy", "gardening", "typography", "navigation", "metallurgy", "beekeeping", "cartography")


def question(number: int) -> str:
    subject = SUBJECTS[number % len(SUBJECTS)]
    return f"Describe the history of {subject} in the {number}th century. " * (1 + number * number % 17)


def figures(router: RouterProcess, text: str) -> dict[str, int]:
    """The features of this call, as `explain` shows them."""
    asked = {"path": CHAT, "body": chat(text)}
    found: dict[str, int] = router.ask_admin("POST", "/explain", asked)["features"]
    return found


async def test_figures_of_a_model_become_right_from_what_the_engine_reports(
    desk: LlamaCppServer, rack: LlamaCppServer, start_router: StartRouter, http: aiohttp.ClientSession
) -> None:
    router = start_router(lanes(desk, rack))
    before, after = [], []
    for number in range(40):
        text = question(number)
        seen = figures(router, text)
        reply = await post(http, router.url, chat(text, max_tokens=1, stream=number % 2 == 0))
        told = await post(http, router.url, chat(text, max_tokens=1))
        assert (reply.status, told.status) == (200, 200)
        tokens = told.json()["usage"]["prompt_tokens"]
        if number >= 10:
            before.append(abs(seen["estimated_tokens"] - tokens) / tokens)
            after.append(abs(seen["prompt_tokens"] - tokens) / tokens)
        elif number < 2:
            assert seen["prompt_tokens"] == seen["estimated_tokens"]
    assert statistics.median(before) > 0.3
    assert statistics.median(after) < 0.08
    assert max(after) < 0.25
