"""What kind of program sent a call, by its headers: the family, never the product.

Programs name themselves in `user-agent` and, by a custom of hosted APIs, in `x-title` or `http-referer`. Families are
told by words, or how words begin or end, that the names of a kind of program have in common.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from re import Pattern
from typing import Final, NamedTuple


def _words(*words: str) -> Pattern[str]:
    """Finds one of them in small letters: as a word, or where a star stands, as the end or the beginning of one. A part
    from within would find an `etl` in netlify, and a `bun` in Ubuntu.
    """
    found = []
    for word in words:
        before = "" if word[0] == "*" else "(?<![a-z0-9])"
        behind = "" if word[-1] == "*" else "(?![a-z0-9])"
        found.append(before + re.escape(word.strip("*")) + behind)
    return re.compile("|".join(found))


_BROWSERS: Final = _words("mozilla", "*webkit", "gecko")
_APPS: Final = _words(
    "okhttp*",
    "dart",
    "cfnetwork",
    "darwin",
    "electron",
    "*nvim",
    "neovim",
    "*vscode*",
    "jetbrains*",
    "intellij*",
)
"""Applications of a phone or a desk, editors among them."""
_JAVASCRIPT: Final = _words("js", "node*", "axios", "undici", "deno", "bun")
_SCRIPTS: Final = _words("requests", "aiohttp", "curl/*", "wget", "urllib*", "httpie", "*powershell")
"""Plain HTTP libraries, which scripts use."""
_FOR_PEOPLE: Final = _words(
    "*assist*",
    "*bot",
    "*chat",
    "chat*",
    "*code",
    "code*",
    "*copilot*",
    "*desk",
    "desk*",
    "edit",
    "editor*",
    "tab",
    "tabby",
    "*ui",
    "*vim",
)
_JOBS: Final = _words("job*", "batch*", "eval*", "cron*", "etl", "bench*", "index*", "reindex*")
_FLOWS: Final = _words("agent*", "*agent", "*agents", "*graph", "graph*", "*pipeline", "pipeline*", "zap*", "crew*")
_NO_NAME: Final = "/index."
"""What a server of web pages adds to an address by itself."""
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
    title = f"{title} {referer.partition(_NO_NAME)[0]}".lower()
    return Client(
        browser=_BROWSERS.search(agent) is not None,
        app=_APPS.search(agent) is not None,
        javascript=_JAVASCRIPT.search(agent) is not None,
        script=_SCRIPTS.search(agent) is not None,
        asynchronous="async" in agent or "async:" in asynchronous.lower(),
        for_people=_FOR_PEOPLE.search(title) is not None,
        job=_JOBS.search(title) is not None or _JOBS.search(agent) is not None,
        flow=_FLOWS.search(title) is not None,
    )
