"""`twolane replay` as somebody at a terminal uses it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from router.commands import cli
from tests.router.replay.logs import SETTINGS, SLOW, line, served_by, write
from tests.router.running import router_for
from tests.scripted import Peer, Received, ScriptedBackend

ROUND_ROBIN = SETTINGS + "policy: round_robin\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.yaml").write_text(SETTINGS)
    (tmp_path / "b.yaml").write_text(ROUND_ROBIN)
    write(tmp_path / "d.jsonl", served_by(SLOW, 60, per_s=0.4))
    return tmp_path


def replay(*words: object) -> Result:
    return CliRunner().invoke(cli, ["replay", *map(str, words)])


def document(folder: Path, *words: object) -> dict[str, Any]:
    done = replay(folder / "d.jsonl", "-c", folder / "a.yaml", "--json", folder / "r.json", *words)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = orjson.loads((folder / "r.json").read_bytes())
    return found


def test_settings_are_put_side_by_side_with_what_was_logged(folder: Path) -> None:
    done = replay(folder / "d.jsonl", "-c", folder / "a.yaml", "-c", folder / "b.yaml")
    assert done.exit_code == 0, done.output
    for words in ("as logged", "decision log of Twolane, 60 calls", "fitted to 60 logged calls", "ttft: inside SLO"):
        assert words in done.output


def test_the_settings_that_a_log_came_from_give_about_what_it_has(folder: Path) -> None:
    found = document(folder)
    logged, (tried,) = found["logged"], found["policies"]
    ours, theirs = logged["classes"]["ttft"], tried["result"]["classes"]["ttft"]
    assert theirs["share"] == pytest.approx(ours["share"], abs=0.05)
    for what in ("ttft_s", "tpot_s", "complete_s"):
        assert theirs[what]["p50"] == pytest.approx(ours[what]["p50"], rel=0.15)


def test_the_document_has_the_layout_that_is_described(folder: Path) -> None:
    found = document(folder, "-c", folder / "b.yaml", "--limit", 40, "--speed-up", 1.5)
    assert found["format"] == 1
    assert found["options"] == {"speed_up": 1.5, "limit": 40, "rate": 1.0, "seed": 0}
    assert found["calls"] == 40
    described = (Path(__file__).parents[3] / "docs" / "replay.md").read_text().partition("## The JSON")[2]
    names = [*found, *found["policies"][0], *found["policies"][0]["fleet"]["desk"], *found["logged"]]
    names += [*found["logged"]["total"], *found["policies"][0]["fleet"]["desk"]["pace"]]
    assert [name for name in names if name not in described] == []
    assert [each["policy"] for each in found["policies"]] == ["workload_aware", "round_robin"]


def test_figures_can_go_to_standard_output_alone(folder: Path) -> None:
    done = replay(folder / "d.jsonl", "-c", folder / "a.yaml", "--json", "-")
    assert orjson.loads(done.stdout)["calls"] == 60


def test_where_the_figures_cannot_be_written_is_told_before_the_replay(folder: Path) -> None:
    (folder / "d.jsonl").unlink()  # it is not even looked for
    for place in (folder / "none" / "r.json", folder):
        done = replay(folder / "d.jsonl", "-c", folder / "a.yaml", "--json", place)
        assert (done.exit_code, f"--json {place}: nothing can be written there" in done.output) == (2, True)


def test_the_same_seed_gives_the_same_figures(folder: Path) -> None:
    assert document(folder, "--seed", 4) == document(folder, "--seed", 4)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_chart_is_drawn(folder: Path, ending: str) -> None:
    pytest.importorskip("matplotlib")
    file = folder / f"r.{ending}"
    done = replay(folder / "d.jsonl", "-c", folder / "a.yaml", "-c", folder / "b.yaml", "--chart", file)
    assert done.exit_code == 0, done.output
    assert file.read_bytes().startswith(b"\x89PNG" if ending == "png" else b"<?xml")


def test_without_the_library_a_chart_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = replay(folder / "d.jsonl", "-c", folder / "a.yaml", "--chart", folder / "r.png")
    assert done.exit_code == 2
    assert "pip install 'twolane[chart]'" in done.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("none.jsonl", "-c", "a.yaml"), "no such file"),
        (("d.jsonl", "-c", "none.yaml"), "there is no such file"),
        (("d.jsonl", "-c", "broken.yaml"), "broken.yaml:1"),
        (("d.jsonl", "-c", "a.yaml", "-c", "other.yaml"), "other.yaml: the log knows none of the backends gpu"),
        (("empty.jsonl", "-c", "a.yaml"), "is empty"),
        (("a.yaml", "-c", "a.yaml"), "not recognised"),
        (("d.jsonl", "-c", "a.yaml", "--speed-up", "0"), "above 0"),
        (("d.jsonl", "-c", "a.yaml", "--class", "chat"), "expected ttft, mixed or throughput"),
        (("d.jsonl", "-c", "a.yaml", "--chart", "r.gif"), ".png or .svg"),
        (("d.jsonl", "-c", "a.yaml", "--chart", "none/r.png"), "no such folder"),
        (("d.jsonl",), "--config"),
    ],
)
def test_what_is_wrong_is_said_and_the_exit_code_is_2(
    folder: Path, words: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TERM", "dumb")
    Path("broken.yaml").write_text("backend: []\n")
    Path("other.yaml").write_text(SETTINGS.replace("desk", "gpu"))
    Path("empty.jsonl").touch()
    done = replay(*words)
    assert done.exit_code == 2
    assert says in done.output
    assert "Traceback" not in done.output


def test_settings_that_promise_something_else_are_held_against_the_first(folder: Path) -> None:
    (folder / "a.yaml").write_text(ROUND_ROBIN)
    (folder / "b.yaml").write_text(ROUND_ROBIN.replace("2s", "1ms"))
    found = document(folder, "-c", folder / "b.yaml")
    assert any("differ in what they promise" in note for note in found["notes"])
    first, second = (each["result"]["classes"]["ttft"]["share"] for each in found["policies"])
    assert first == pytest.approx(second, abs=0.1)


def test_a_result_that_cannot_be_written_is_told_after_it_was_shown(folder: Path) -> None:
    done = replay(folder / "d.jsonl", "-c", folder / "a.yaml", "--json", "/dev/full")
    assert done.exit_code == 1
    assert "cannot be written" in done.output
    assert "as logged" in done.output


async def test_what_a_running_router_logs_can_be_replayed(folder: Path) -> None:
    file = folder / "live.jsonl"

    async def answer(request: Received, peer: Peer) -> None:
        await peer.stream_head()
        for _ in range(3):
            await peer.token("one")
        await peer.last_chunk()

    body = {"model": "m", "messages": [{"role": "user", "content": "hello there"}], "stream": True}
    async with ScriptedBackend(answer) as backend, router_for(backend, decisions={"file": str(file)}) as router:
        for _ in range(25):
            await router.post("/v1/chat/completions", body, "x-twolane-class: ttft")
    (folder / "b.yaml").write_text(SETTINGS.replace("desk", "b0"))
    done = replay(file, "-c", folder / "b.yaml")
    assert done.exit_code == 0, done.output
    assert "decision log of Twolane, 25 calls" in done.output


def test_calls_that_are_all_turned_away_at_once_have_figures(folder: Path) -> None:
    """No time goes by then, so nothing is per second."""
    (folder / "a.yaml").write_text(SETTINGS.replace('1"}', '1", context_tokens: 2048}'))
    (folder / "t.csv").write_text("t_s,input_tokens,output_tokens\n0,5000,10\n")
    done = replay(folder / "t.csv", "-c", folder / "a.yaml", "--json", folder / "r.json")
    assert done.exit_code == 0, done.output
    (tried,) = orjson.loads((folder / "r.json").read_bytes())["policies"]
    assert (tried["result"]["total"]["failed"], tried["result"]["total"]["kept_tokens_per_s"]) == (1, 0.0)


def test_a_line_that_is_half_written_does_not_stop_it(folder: Path) -> None:
    with (folder / "d.jsonl").open("ab") as log:
        log.write(orjson.dumps(line())[:100])
    done = replay(folder / "d.jsonl", "-c", folder / "a.yaml")
    assert done.exit_code == 0
    assert "1 lines passed over: not a whole line of JSON" in done.output
