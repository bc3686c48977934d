"""A01: a stream reaches the client in one lump, since somebody on the way collects it."""

from __future__ import annotations

import pytest

from tests.cases.apis import CHAT, Api, each_api
from tests.cases.staged import staged

NUMBERED = [CHAT.token(f"{number:02}") for number in range(20)]


async def test_twenty_small_events_each_arrive_before_the_next_is_written() -> None:
    async with staged(CHAT, *NUMBERED, gap_s=0.0) as (_, _, answer):
        assert answer.header("x-accel-buffering") == "no"
        assert answer.header("cache-control") == "no-cache"


@each_api
async def test_the_pieces_of_every_api_arrive_one_by_one(api: Api) -> None:
    async with staged(api, api.opening, api.token("a"), api.token("b"), api.ending, gap_s=0.0) as (_, _, answer):
        assert answer.header("content-type") == api.content_type
        assert answer.header("x-accel-buffering") == "no"
        assert answer.header("cache-control") == "no-cache"


async def test_heartbeats_of_a_few_bytes_leave_at_once() -> None:
    async with staged(CHAT, b":\n\n", b":", b"\n", b"\n", CHAT.token("a"), gap_s=0.0):
        pass


@pytest.mark.parametrize("content_type", ["application/json", "audio/mpeg", "text/plain"])
async def test_a_chunked_answer_that_is_no_event_stream_flows_as_well(content_type: str) -> None:
    async with staged(CHAT, b'{"id":', b'"c1"', b"}", content_type=content_type, gap_s=0.0) as (_, router, answer):
        assert answer.header("content-type") == content_type
        assert answer.header("x-accel-buffering") == "no"
        assert router.metric("twolane_ttft_seconds_count") == 0


@pytest.mark.parametrize(
    ("said", "passed"),
    [
        ("no-transform", "no-transform, no-cache"),
        ("no-cache, no-transform", "no-cache, no-transform"),
        ("no-store", "no-store"),
    ],
)
async def test_what_the_backend_says_of_caching_is_kept(said: str, passed: str) -> None:
    fields = (f"Cache-Control: {said}", "X-Accel-Buffering: no")
    async with staged(CHAT, *NUMBERED[:2], gap_s=0.0, fields=fields) as (_, _, answer):
        assert answer.header("cache-control") == passed
        assert answer.header("x-accel-buffering") == "no"
