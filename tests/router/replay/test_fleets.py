"""Which engine stands for which backend, and what is said of where its pace comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.replay.fleets import Paces
from router.replay.recognise import load, merged
from router.replay.recorded import NotReplayable, Recorded
from router.settings.load import parse
from router.simulate.pace import Flavour
from tests.router.replay.logs import SLOW, line, served_by, write

TRACE = "t_s,input_tokens,output_tokens\n0,50000,20\n1,10,20\n"


def trace(tmp_path: Path) -> list[Recorded]:
    path = tmp_path / "t.csv"
    path.write_text(TRACE)
    return merged([load(path)])


def backends(*rows: str) -> str:
    return "backends:\n" + "".join(f"  - {{{row}}}\n" for row in rows)


def test_a_trace_says_nothing_of_backends_so_their_kind_does(tmp_path: Path) -> None:
    text = backends(
        'name: a, url: "http://127.0.0.1:1", engine: ollama',
        'name: b, url: "http://127.0.0.1:2", engine: sglang',
        'name: c, url: "http://127.0.0.1:3", lane: latency, max_inflight: 2',
        'name: d, url: "http://127.0.0.1:4", max_inflight: 200',
    )
    fleet = Paces(trace(tmp_path), 64).fleet(parse(text, "x.yaml", {}))
    kinds = {name: (each.spec.kind, each.spec.flavour, each.spec.sequences) for name, each in fleet.items()}
    assert kinds["a"][:2] == ("ollama", Flavour.SLOTS)
    assert kinds["b"] == ("sglang", Flavour.BLOCKS, 64)
    assert kinds["c"] == ("llamacpp", Flavour.SLOTS, 2)
    assert kinds["d"] == ("vllm", Flavour.BLOCKS, 200)
    assert all("usual pace" in each.how for each in fleet.values())
    assert "lane" in fleet["c"].how
    assert all(each.spec.context_tokens > 50_020 for each in fleet.values())


def test_a_log_says_what_its_backends_are_and_how_fast(tmp_path: Path) -> None:
    calls = merged([load(write(tmp_path / "d.jsonl", served_by(SLOW, 60)))])
    text = backends('name: desk, url: "http://127.0.0.1:1"', 'name: new, url: "http://127.0.0.1:2", engine: vllm')
    paces = Paces(calls, 64)
    fleet = paces.fleet(parse(text, "x.yaml", {}))
    assert (fleet["desk"].spec.kind, fleet["desk"].spec.sequences) == ("llamacpp", 3)
    assert fleet["desk"].spec.context_tokens == 8192
    assert fleet["desk"].how.startswith("fitted to 60 logged calls")
    assert fleet["new"].how.startswith("not in the log")
    assert paces.fleet(parse(text, "x.yaml", {}))["desk"].fit is fleet["desk"].fit, "fitted once"


def test_few_calls_leave_the_usual_pace_and_that_is_told(tmp_path: Path) -> None:
    calls = merged([load(write(tmp_path / "d.jsonl", [line(number) for number in range(3)]))])
    fleet = Paces(calls, 64).fleet(parse(backends('name: desk, url: "http://127.0.0.1:1"'), "x.yaml", {}))
    assert fleet["desk"].how.startswith("fewer than 20")


def test_settings_of_which_the_log_knows_no_backend_are_refused(tmp_path: Path) -> None:
    calls = merged([load(write(tmp_path / "d.jsonl", [line()]))])
    with pytest.raises(NotReplayable, match="knows none of the backends gpu; it has desk"):
        Paces(calls, 64).fleet(parse(backends('name: gpu, url: "http://127.0.0.1:1"'), "x.yaml", {}))
