"""A03: line ends and fields as the standard allows them, not as most servers write them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.cases.apis import CHAT, OLLAMA_CHAT, OUTPUT_TOKENS, PROMPT_TOKENS, Api, each_sse_api
from tests.cases.staged import staged
from tests.router.running import Running

STYLES: dict[str, Callable[[bytes], bytes]] = {
    "crlf": lambda event: event.replace(b"\n", b"\r\n"),
    "crlf_no_space": lambda event: event.replace(b"\n", b"\r\n").replace(b"data: ", b"data:"),
    "cr": lambda event: event.replace(b"\n", b"\r"),
    "no_space": lambda event: event.replace(b"data: ", b"data:").replace(b"event: ", b"event:"),
    "ids_and_retry": lambda event: b"id: 7\nretry: 1000\n" + event,
    "comment_inside": lambda event: b": here\n" + event,
    "blank_lines": lambda event: b"\n\n" + event + b"\n",
    "data_in_two_lines": lambda event: event.replace(b"data: {", b"data: {\ndata: "),
}
each_style = pytest.mark.parametrize("style", STYLES.values(), ids=STYLES)


def assert_tokens_booked(router: Running) -> None:
    assert router.metric("twolane_tokens_total", direction="in") == PROMPT_TOKENS
    assert router.metric("twolane_tokens_total", direction="out") == OUTPUT_TOKENS


async def test_the_stream_of_the_report_is_timed_counted_and_unchanged() -> None:
    role = b'data:{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\r\n\r\n'
    content = b'data:{"choices":[{"index":0,"delta":{"content":"hi"}}]}\r\n\r\n'
    usage = b'data:{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}\r\n\r\n'
    async with staged(CHAT, role, content, usage, b"data: [DONE]\r\n\r\n") as (script, router, _):
        script.assert_first_token_in(1, router)
        assert_tokens_booked(router)


@each_sse_api
async def test_every_style_of_every_api(api: Api) -> None:
    async def check(style: Callable[[bytes], bytes]) -> None:
        opening, token, ending = style(api.opening), style(api.token("a")), style(api.ending)
        async with staged(api, opening, token, ending) as (script, router, _):
            script.assert_first_token_in(1, router)
            assert_tokens_booked(router)

    await asyncio.gather(*map(check, STYLES.values()))


@each_style
async def test_one_byte_at_a_time(style: Callable[[bytes], bytes]) -> None:
    async with staged(CHAT, style(CHAT.token("a")), style(CHAT.ending), pieces=7, gap_s=0.0) as (script, router, _):
        script.assert_first_token_in(0, router)
        assert_tokens_booked(router)


async def test_a_byte_order_mark_before_the_first_event() -> None:
    async with staged(CHAT, b"\xef\xbb\xbf" + CHAT.token("a"), CHAT.ending) as (script, router, _):
        script.assert_first_token_in(0, router)
        assert_tokens_booked(router)


async def test_lines_of_ollama_with_crlf_and_blank_ones_between() -> None:
    api = OLLAMA_CHAT
    stages = [stage.replace(b"\n", b"\r\n\r\n") for stage in (api.opening, api.token("a"), api.ending)]
    async with staged(api, *stages, gap_s=0.02) as (script, router, _):
        script.assert_first_token_in(1, router)
        assert_tokens_booked(router)


async def test_the_last_line_of_ollama_needs_no_end() -> None:
    api = OLLAMA_CHAT
    async with staged(api, api.token("a"), api.ending.removesuffix(b"\n")) as (_, router, _):
        assert_tokens_booked(router)
