"""Alternatives of a decision: known while a page is open, and cheap however many calls there are."""

from __future__ import annotations

from dataclasses import replace

import orjson

from router.dashboard.recent import Recent
from router.dashboard.witness import Witness
from tests.router.builders import applicant, fleet_of
from tests.router.dashboard.calls import ended, judged
from tests.router.running import router_for
from tests.scripted import ScriptedBackend, eventually

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_each_backend_that_could_have_had_the_call_has_its_predicted_times() -> None:
    fleet = fleet_of({"name": "desk", "lane": "latency"}, {"name": "rack", "lane": "throughput"})
    views = fleet.views(fleet.candidates("m", "openai_chat"), 0.0)
    found = Witness()(applicant().ask, views, 0.0)
    assert [each.backend for each in found] == ["desk", "rack"]
    assert all(0 < each.first_s < each.whole_s for each in found)
    assert all(0 <= each.keeps_0_1 <= 1 for each in found)
    recent = Recent()
    recent.add(ended(), replace(judged(), considered=found), (), 0.0)
    told = orjson.loads(orjson.dumps(recent.after(0)))[0]["considered"]
    assert told[0]["predicted"].keys() == {"ttft_s", "tpot_s", "complete_s", "keeps_promise_0_1"}


def test_of_many_decisions_only_so_many_are_looked_at() -> None:
    fleet = fleet_of(*({"name": f"b{number}"} for number in range(10)))
    views = fleet.views(fleet.candidates("m", "openai_chat"), 0.0)
    witness, ask = Witness(), applicant().ask
    looked = sum(bool(witness(ask, views, call / 1000)) for call in range(1000))
    assert looked == 25, "a second has room for 25 x 10 outlooks"


async def test_without_an_open_page_nothing_is_worked_out() -> None:
    async with ScriptedBackend() as backend, router_for(backend) as router:
        await router.post("/v1/chat/completions", CHAT)
        async with router.app.board.page(), router.app.board.page():
            await router.post("/v1/chat/completions", CHAT)
        await router.post("/v1/chat/completions", CHAT)
        await eventually(lambda: router.app.board.decisions(0)["last"] == 3)
        calls = router.app.board.decisions(0)["calls"]
        assert [[each["backend"] for each in call["considered"]] for call in calls] == [[], ["b0"], []]
