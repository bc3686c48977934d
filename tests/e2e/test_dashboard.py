"""The page in a real browser: what it shows, that it is alive, by keyboard alone, at any size, in light and dark."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from router.dashboard.assets import assets
from tests.browser import Tab, chromium, tab
from tests.router.running import Running, router_for
from tests.scripted import Peer, Received, ScriptedBackend

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
KEY = "admin-s3cret"
PHONE = {"viewport": {"width": 360, "height": 740}, "is_mobile": True, "has_touch": True}


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as found:
        yield found


async def streams(request: Received, peer: Peer) -> None:
    """Three tokens at once."""
    await peer.stream_head()
    for word in ("a", "b", "c"):
        await peer.token(word)
    await peer.chunk(b"data: [DONE]\n\n")
    await peer.last_chunk()


def address(router: Running, view: str = "") -> str:
    return f"http://127.0.0.1:{router.admin_port}/{view}"


async def chat(router: Running, call_class: str, **more: Any) -> None:
    answer = await router.post("/v1/chat/completions", {**CHAT, **more}, f"x-twolane-class: {call_class}")
    assert answer.status == 200


async def live(found: Tab) -> None:
    await expect(found.page.locator("#status")).to_have_text("live")


async def test_it_shows_lanes_promises_line_and_a_call_as_soon_as_it_ended(browser: Browser) -> None:
    rack = {"lane": "throughput", "max_inflight": 8}
    async with ScriptedBackend(streams) as first, ScriptedBackend(streams) as second:
        async with router_for((first, {"max_inflight": 2}), (second, rack)) as router:
            async with tab(browser, address(router)) as found:
                page = found.page
                await live(found)
                assert await page.title() == "Twolane"
                assert await found.texts("#lanes .name") == ["b0", "b1"]
                assert await found.texts("#lanes .health") == ["up", "up"]
                assert await page.locator("[data-backend=b1] .slot").count() == 8
                assert await found.text("#verdict") == "No calls in the last 5 minutes. Last 5 minutes."
                assert "appears here" in await found.text("#tail tbody")

                await chat(router, "ttft", stream=True)
                row = page.locator("#tail tbody tr[data-number='1']")
                await expect(row).to_contain_text("b0")
                await expect(row).to_contain_text("kept")
                await expect(page.locator("#verdict")).to_contain_text("Callers get what they wait for")
                await expect(page.locator(".promise[data-class=ttft] .pct")).to_contain_text("100")
                assert (
                    await page.locator(".promise[data-class=ttft] [role=meter]").get_attribute("aria-valuenow")
                    == "100.0"
                )

                await row.locator("button").click()
                detail = await found.text("#tail tr.more")
                assert "Class ttft, by header" in detail
                assert "Request id" in detail
                await chat(router, "throughput")
                await expect(page.locator("#tail tbody tr[data-number='2']")).to_contain_text("throughput")
                assert await page.locator("#tail tr.more").count() == 1, "what was opened stays open"


async def test_charts_are_drawn_and_their_figures_stand_beside_them_in_words(browser: Browser) -> None:
    async with ScriptedBackend(streams) as backend, router_for(backend) as router:
        for _ in range(3):
            await chat(router, "ttft", stream=True)
        async with tab(browser, address(router)) as found:
            await live(found)
            if "uplot.js" in assets():
                await expect(found.page.locator(".plot canvas")).to_have_count(5)
            else:
                await expect(found.page.locator("#no-charts")).to_be_visible()
            assert "ttft p50" in await found.text("#ttft-chart .sum")
            assert "of 3 calls" in await found.text("#ttft-chart .sum")
            assert "in time" in await found.text("#goodput-chart .sum")
            await found.page.locator("#unit").select_option("tokens")
            await found.page.locator("#range").select_option("24")
            await expect(found.page.locator("#history-note")).to_contain_text("dashboard: {history: FILE}")


async def test_without_the_library_the_page_works_and_says_what_is_missing(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("uplot.js", "uplot.css"):
        monkeypatch.delitem(assets(), name, raising=False)
    async with ScriptedBackend(streams) as backend, router_for(backend) as router:
        async with tab(browser, address(router)) as found:
            await live(found)
            await expect(found.page.locator("#no-charts")).to_be_visible()
            assert await found.texts("#lanes .name") == ["b0"]


async def test_a_backend_is_drained_after_a_question_and_put_back_by_keyboard_alone(browser: Browser) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:

        def drained() -> bool:
            return router.app.fleet.backends()[0].health.drained

        async with tab(browser, address(router)) as found:
            page = found.page
            await live(found)
            button = page.locator("[data-backend=b0] button")
            await expect(button).to_have_accessible_name("Drain b0")
            for _ in range(20):
                await page.keyboard.press("Tab")
                if await button.evaluate("node => node === document.activeElement"):
                    break
            await page.keyboard.press("Enter")
            await expect(page.locator("#confirm")).to_be_visible()
            await page.keyboard.press("Enter")  # the safe answer has the focus
            await expect(page.locator("#confirm")).to_be_hidden()
            assert not drained()
            await expect(button).to_be_focused()

            await page.keyboard.press("Enter")
            await page.keyboard.press("Tab")
            await page.keyboard.press("Enter")
            await expect(page.locator("[data-backend=b0] .health")).to_have_text("drained")
            assert drained()
            await expect(button).to_have_accessible_name("Put back b0")
            await expect(page.locator("#verdict")).to_contain_text("b0 (drained)")
            await expect(button).to_be_focused()
            await page.keyboard.press("Enter")
            await expect(page.locator("[data-backend=b0] .health")).to_have_text("up")
            assert not drained()


async def test_with_a_key_the_page_asks_for_it_and_keeps_it_in_the_tab(browser: Browser) -> None:
    async with ScriptedBackend() as backend, router_for(backend, admin_key=KEY) as router:
        found: Tab
        async with tab(browser, address(router)) as found:
            page = found.page
            await expect(page.locator("#login")).to_be_visible()
            assert await page.locator("#lanes .name").count() == 0
            await page.locator("#login-key").fill("wrong")
            await page.keyboard.press("Enter")
            await expect(page.locator("#login-problem")).to_have_text("That was not the key.")
            await page.locator("#login-key").fill(KEY)
            await page.keyboard.press("Enter")
            await live(found)
            assert await found.texts("#lanes .name") == ["b0"]
            await page.reload()
            await live(found)
            assert KEY not in await page.evaluate("JSON.stringify(localStorage) + document.cookie")
            # The browser tells of each 401 itself.
            assert all("401" in complaint for complaint in found.complaints)
            found.complaints.clear()


async def test_the_page_comes_back_by_itself_when_the_router_was_away(browser: Browser) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        async with tab(browser, address(router)) as found:
            await live(found)
            router.app.board.end_streams()
            await expect(found.page.locator("#status")).not_to_have_text("live")
            await live(found)


async def test_explain_says_where_a_call_would_go(browser: Browser) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        async with tab(browser, address(router, "#explain")) as found:
            page = found.page
            await expect(page.locator("#explain-form")).to_be_visible()
            await expect(page.locator("#overview")).to_be_hidden()
            await live(found)
            await page.get_by_label("Headers").fill("x-twolane-class: batch")
            await page.get_by_role("button", name="Explain").click()
            await expect(page.locator("#explained .answer")).to_contain_text("throughput goes to b0 now")
            await page.get_by_label("Body").fill("{not json")
            await page.get_by_role("button", name="Explain").click()
            await expect(page.locator("#explained .bad")).to_contain_text("not JSON")
            assert backend.received == []


async def test_settings_are_tried_on_the_last_hour_and_the_change_to_make_is_printed(
    browser: Browser, tmp_path: Path
) -> None:
    async with ScriptedBackend() as backend:
        async with router_for((backend, {"max_inflight": 2}), decisions={"file": tmp_path / "d.jsonl"}) as router:
            for _ in range(5):
                await chat(router, "mixed")
            async with tab(browser, address(router, "#what-if")) as found:
                page = found.page
                area = page.get_by_label("Settings (YAML)")
                await expect(area).to_have_value(re.compile("use: workload_aware"))
                await area.fill("policy: nonsense")
                await page.get_by_role("button", name="Try on the last hour").click()
                await expect(page.locator("#what-if-result")).to_contain_text("edited:1:9: policy.use")
                found.complaints.clear()  # the browser tells of the 400 itself
                await area.fill("policy: round_robin")
                await page.get_by_role("button", name="Try on the last hour").click()
                await expect(page.locator("#what-if-diff")).to_contain_text("+policy: round_robin", timeout=200_000)
                await expect(page.locator("#what-if-result")).to_contain_text("5 calls of the last hour")
        assert router.app.settings.policy.use == "workload_aware"


async def test_without_a_decision_log_what_if_says_how_to_switch_it_on(browser: Browser) -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        async with tab(browser, address(router, "#what-if")) as found:
            await expect(found.page.locator("#what-if-part")).to_contain_text("file: decisions.jsonl")


async def test_what_a_client_sends_is_shown_as_text_and_never_run(browser: Browser) -> None:
    evil = "<img src=x onerror=document.title='owned'>"
    async with ScriptedBackend(models=(evil,)) as backend, router_for(backend) as router:
        await chat(router, "ttft", model=evil)
        async with tab(browser, address(router)) as found:
            await live(found)
            await expect(found.page.locator("#tail tbody")).to_contain_text(evil)
            assert await found.page.title() == "Twolane"
            assert await found.page.locator("#tail img").count() == 0


@pytest.mark.parametrize("options", [PHONE, {"viewport": {"width": 1400, "height": 900}}], ids=["phone", "desk"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_fits_and_can_be_read_in_light_and_dark(
    browser: Browser, options: dict[str, Any], scheme: str
) -> None:
    async with ScriptedBackend(streams) as backend, router_for((backend, {"max_inflight": 40})) as router:
        await chat(router, "ttft", stream=True)
        for name in ("nightly-enrichment-of-rows", "b" * 40):
            deadline = ("x-twolane-deadline-ms: 600000", f"x-twolane-pipeline: {name}")
            for hop in ("internal", "final"):
                await router.post("/v1/chat/completions", CHAT, f"x-twolane-hop: {hop}", *deadline)
        async with tab(browser, address(router), color_scheme=scheme, **options) as found:
            page = found.page
            await live(found)
            await expect(page.locator("#pipelines tbody tr")).to_have_count(2)
            # A phone would make its view as wide as the page, so that is compared with what it was asked for.
            width = await page.evaluate("Math.max(innerWidth, document.documentElement.scrollWidth)")
            assert width <= options["viewport"]["width"]
            background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (sum(map(int, background[4:-1].split(","))) < 200) == (scheme == "dark")
            worst = await page.evaluate(CONTRAST)
            assert worst[0] >= 4.5, worst


CONTRAST = """() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const under = (node) => { for (; node; node = node.parentElement) {
    const found = parse(getComputedStyle(node).backgroundColor); if (found[3] !== 0) return found; }
    return [255, 255, 255]; };
  let worst = [21, ''];
  for (const node of document.querySelectorAll('body *')) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || !node.checkVisibility() || node.closest('option, .skip')) continue;
    const [one, other] = [light(parse(getComputedStyle(node).color)), light(under(node))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < worst[0]) worst = [ratio, node.outerHTML.slice(0, 120)];
  }
  return worst;
}"""
"""The least contrast of any text on the page (WCAG 2.2, 1.4.3), and where."""
