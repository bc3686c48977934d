"""What kind of program sent a call, by its headers: the family, never the product.

Programs name themselves in `user-agent` and, by a custom of hosted APIs, in `x-title` or `http-referer`. Families are
told by parts of names that a kind of program has in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

_BROWSERS: Final = ("mozilla", "webkit", "gecko")
_APPS: Final = (
    "okhttp",
    "dart",
    "cfnetwork",
    "darwin",
    "electron",
    "nvim",
    "vscode",
    "jetbrains",
    "intellij",
)
"""Applications of a phone or a desk, editors among them."""
_JAVASCRIPT: Final = ("/js", "node", "axios", "undici", "deno", "bun")
_SCRIPTS: Final = ("requests", "aiohttp", "curl/", "wget", "urllib", "httpie", "powershell")
"""Plain HTTP libraries, which scripts use."""
_FOR_PEOPLE: Final = ("chat", "ui", "vim", "code", "bot", "desk", "edit", "tab", "copilot", "assist")
_JOBS: Final = ("job", "batch", "eval", "cron", "etl", "bench", "index")
_FLOWS: Final = ("agent", "graph", "pipeline", "zap", "crew")
_BROWSER_FIELDS: Final = frozenset({"origin", "sec-fetch-mode", "accept-language"})


class Client(NamedTuple):
    """The families that a program belongs to; none where it says nothing of itself."""

    browser: bool = False
    app: bool = False
    javascript: bool = False
    script: bool = False
    asynchronous: bool = False
    """A program that keeps several calls open at once."""
    for_people: bool = False
    job: bool = False
    flow: bool = False
    """A builder of pipelines or agents."""


def client_of(headers: Mapping[str, str]) -> Client:
    """`headers` have lower-case names."""
    client = _named(
        headers.get("user-agent", "")[:200],
        headers.get("x-title", "")[:100],
        headers.get("http-referer", "")[:100],
        headers.get("x-stainless-async", "")[:40],
    )
    if not client.browser and not _BROWSER_FIELDS.isdisjoint(headers):
        return client._replace(browser=True)
    return client


def is_traced(headers: Mapping[str, str]) -> bool:
    """Whether the call is part of a trace."""
    return "traceparent" in headers or "b3" in headers


@lru_cache(maxsize=512)
def _named(agent: str, title: str, referer: str, asynchronous: str) -> Client:
    """A fleet has few clients, which say the same of themselves in every call."""
    agent = agent.lower()
    title = f"{title} {referer}".lower()

    def any_of(parts: tuple[str, ...], text: str) -> bool:
        return any(part in text for part in parts)

    return Client(
        browser=any_of(_BROWSERS, agent),
        app=any_of(_APPS, agent),
        javascript=any_of(_JAVASCRIPT, agent),
        script=any_of(_SCRIPTS, agent),
        asynchronous="async" in agent or "async:" in asynchronous.lower(),
        for_people=any_of(_FOR_PEOPLE, title),
        job=any_of(_JOBS, title) or any_of(_JOBS, agent),
        flow=any_of(_FLOWS, title),
    )
