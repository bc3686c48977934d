"""Learned models in a running router: the one that judges, the one in its shadow, and files that change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog
import yaml

from classifiers.api import Features, Verdict
from router.app import App
from router.settings.load import SettingsError, load
from tests.cases.apis import CHAT
from tests.router import opinions
from tests.router.running import Running, router_for
from tests.router.test_decisions import lines
from tests.scripted import ScriptedBackend, echo, eventually


async def call(router: Running, *fields: str) -> str:
    """Class that a plain call is given."""
    answer = await router.post(CHAT.path, CHAT.body(stream=False), *fields)
    assert answer.status == 200
    return answer.header("x-twolane-class") or ""


def written(folder: Path, backend: ScriptedBackend, **classify: Any) -> Path:
    """A settings file for this backend."""
    settings = {
        "listen": "127.0.0.1:0",
        "admin": "127.0.0.1:0",
        "backends": [{"name": "b0", "url": backend.url, "engine": "openai", "lane": "latency"}],
        "classify": classify,
        "decisions": {"file": "d.jsonl"},
    }
    path = folder / "twolane.yaml"
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path


async def started(path: Path) -> Running:
    found = load(path)
    app = App(found.settings, found.path, found.digest)
    listen, admin = await app.start()
    assert admin is not None
    return Running(app, listen.port, admin.port)


async def test_a_model_file_judges_what_nobody_tagged_and_says_why(tmp_path: Path) -> None:
    opinions.write(tmp_path / "own.json", "mixed")
    async with ScriptedBackend(echo) as backend:
        router = await started(written(tmp_path, backend, model="own.json"))
        try:
            assert await call(router) == "mixed"
            assert await call(router, "x-twolane-class: ttft") == "ttft"
            assert router.metric("twolane_verdicts_total", source="model", **{"class": "mixed"}) == 1
        finally:
            await router.app.close()
    first, second = lines(tmp_path / "d.jsonl")
    assert (first["class"], first["source"], first["confidence"]) == ("mixed", "model", pytest.approx(0.965, abs=0.01))
    assert second["source"] == "header"


async def test_a_model_that_is_less_sure_than_asked_leaves_the_call_to_the_cautious_class(tmp_path: Path) -> None:
    opinions.write(tmp_path / "own.json", "throughput", score=1.0)
    async with ScriptedBackend(echo) as backend:
        for least, expected in ((0.5, "throughput"), (0.9, "mixed")):
            router = await started(written(tmp_path, backend, model="own.json", min_confidence=least))
            try:
                assert await call(router) == expected
            finally:
                await router.app.close()
    assert lines(tmp_path / "d.jsonl")[-1]["reasons"][0] == "unsure"


async def test_the_shadow_is_counted_logged_and_explained_and_decides_nothing(tmp_path: Path) -> None:
    opinions.write(tmp_path / "own.json", "mixed")
    opinions.write(tmp_path / "next.json", "throughput")
    async with ScriptedBackend(echo) as backend:
        router = await started(written(tmp_path, backend, model="own.json", shadow="next.json"))
        try:
            assert await call(router) == "mixed"
            assert await call(router, "x-twolane-class: batch") == "throughput"
            asked = orjson.dumps({"path": CHAT.path, "body": CHAT.body(stream=False)})
            told: Any = (await router.admin("POST", "/explain", asked)).json()
            assert (told["class"], told["shadow"]["class"], told["shadow"]["agrees"]) == ("mixed", "throughput", False)
            assert told["shadow"]["notes"]
            series = "twolane_shadow_verdicts_total"
            assert router.metric(series, shadow="throughput", source="model", **{"class": "mixed"}) == 1
            assert router.metric(series, shadow="throughput", source="header", **{"class": "throughput"}) == 1
            assert router.metric(series) == 2
        finally:
            await router.app.close()
    assert [(line["class"], line["shadow"]["class"]) for line in lines(tmp_path / "d.jsonl")] == [
        ("mixed", "throughput"),
        ("throughput", "throughput"),
    ]


async def test_without_a_shadow_there_is_nothing_of_it() -> None:
    async with ScriptedBackend(echo) as backend, router_for(backend) as router:
        await call(router)
        assert router.app.judgements.shadow is None
        assert router.metric("twolane_shadow_verdicts_total") == 0


class Broken:
    def classify(self, features: Features) -> Verdict | None:
        raise ZeroDivisionError(features.headers)


async def test_a_shadow_that_fails_hurts_no_call_and_is_told_once_without_the_call(tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    with structlog.testing.capture_logs() as told:
        async with ScriptedBackend(echo) as backend, router_for(backend, decisions={"file": str(file)}) as router:
            router.app.judgements.shadow = Broken()
            for _ in range(3):
                await call(router)
            assert router.metric("twolane_shadow_failures_total") == 3
    assert [line["shadow"] for line in lines(file)] == [None] * 3
    assert [entry["event"] for entry in told].count("shadow_failed") == 1


async def test_a_model_file_that_changed_is_loaded_anew_by_itself(tmp_path: Path) -> None:
    opinions.write(tmp_path / "own.json", "mixed")
    async with ScriptedBackend(echo) as backend:
        router = await started(written(tmp_path, backend, model="own.json"))
        try:
            assert await call(router) == "mixed"
            opinions.write(tmp_path / "draft.json", "throughput").replace(tmp_path / "own.json")
            await eventually(lambda: router.metric("twolane_reloads_total", result="ok") == 1)
            assert await call(router) == "throughput"
        finally:
            await router.app.close()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "is no model that can be used: the file: is not JSON"),
        (b"[1]", "is no model that can be used: "),
        (orjson.dumps({**opinions.always("mixed"), "format": 99}), "format: expected 1; train the model again"),
        (orjson.dumps(opinions.always("mixed")).replace(b"intercept", b"odd"), "request.intercept: it is missing"),
        (b"\xff\xfe", "is no model that can be used: "),
    ],
)  # fmt: skip
async def test_a_broken_model_file_is_a_problem_with_a_place_at_start_and_changes_nothing_on_reload(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    (tmp_path / "broken.json").write_bytes(content)
    opinions.write(tmp_path / "own.json", "mixed")
    async with ScriptedBackend(echo) as backend:
        path = written(tmp_path, backend, model="own.json", shadow="broken.json")
        with pytest.raises(SettingsError) as caught:
            load(path)
        (found,) = caught.value.problems
        assert (found.key_path, problem in found.message) == ("classify.shadow", True)
        assert found.line > 1
        router = await started(written(tmp_path, backend, model="own.json"))
        try:
            (tmp_path / "own.json").write_bytes(content)
            await eventually(lambda: router.metric("twolane_reloads_total", result="refused") >= 1)
            (said,) = (await router.app.reload())["problems"]
            assert "classify.model: " in said
            assert problem in said
            assert await call(router) == "mixed"
        finally:
            await router.app.close()
