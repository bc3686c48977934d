"""A real Chromium, headless, for tests of the page. In CI it has to be there."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

_FLAGS = [
    "--no-sandbox",  # CI runs as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
_PATIENT_MS = 30_000
expect.set_options(timeout=_PATIENT_MS)


def _executable() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is missing; .ci/run installs it")
        pytest.skip("Chromium is not installed")
    return found


@dataclass
class Tab:
    """One page, and everything that the browser complained of."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    async def texts(self, selector: str) -> list[str]:
        return [text.replace("\u00a0", " ") for text in await self.page.locator(selector).all_inner_texts()]

    async def text(self, selector: str) -> str:
        return " ".join((await self.page.locator(selector).first.inner_text()).replace("\u00a0", " ").split())


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    path = _executable()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=_FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def tab(browser: Browser, url: str, **options: Any) -> AsyncIterator[Tab]:
    """A tab of its own, with no storage; `options` are those of a context. No complaint may be left at the end."""
    context: BrowserContext = await browser.new_context(**options)
    context.set_default_timeout(_PATIENT_MS)
    page = await context.new_page()
    found = Tab(page)
    page.on(
        "console",
        lambda message: found.complaints.append(message.text) if message.type in ("error", "warning") else None,
    )
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    try:
        await page.goto(url)
        yield found
        assert found.complaints == []
    finally:
        await context.close()
