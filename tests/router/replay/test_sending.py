"""What recorded calls are when they arrive again: no text, but counts, class, and what their prompts share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from classifiers.api import Features
from classifiers.hints import affinity_key
from router.replay.recognise import load
from router.replay.recorded import Recorded
from router.replay.sending import Sharing, arriving, features_of
from router.simulate.memory import common
from tests.router.replay.logs import line, write


def calls(tmp_path: Path, *lines: dict[str, object]) -> list[Recorded]:
    return load(write(tmp_path / "d.jsonl", lines)).calls


def test_the_router_sees_the_counts_that_it_saw(tmp_path: Path) -> None:
    (call,) = calls(tmp_path, line(max_tokens=50, session="ab", asked={"prompt_tokens": 110, "tools": 2, "turns": 4}))
    features = features_of(call)
    assert isinstance(features, Features)
    assert (features.prompt_tokens, features.tools, features.turns, features.max_tokens) == (110, 2, 4, 50)
    assert affinity_key(features)
    (sent,) = arriving([call], Sharing())
    assert (sent.prompt_tokens, sent.output_tokens, sent.verdict) == (100, 31, call.verdict)


def test_each_run_gets_features_of_its_own(tmp_path: Path) -> None:
    (call,) = calls(tmp_path, line())
    assert features_of(call) is not features_of(call)


def test_prompts_of_one_conversation_grow_and_those_of_others_share_nothing(tmp_path: Path) -> None:
    first, second, other = calls(
        tmp_path,
        line(0.0, session="a", prompt_tokens=640, output_tokens=64),
        line(1.0, session="a", prompt_tokens=1280),
        line(2.0, session="b", prompt_tokens=1280),
    )
    sharing = Sharing()
    blocks, full = sharing.blocks(first)
    later, _ = sharing.blocks(second)
    alone, _ = sharing.blocks(other)
    assert (len(blocks), len(full), len(later)) == (10, 11, 20)
    assert common(full, later) == 11
    assert common(alone, later) == 0


def test_calls_of_one_client_with_the_same_system_text_begin_alike(tmp_path: Path) -> None:
    asked = {"prompt_tokens": 700, "system_tokens": 512}
    ours = [line(number, session=f"s{number}", asked=asked, prompt_tokens=700) for number in range(2)]
    first, second, stranger = calls(tmp_path, *ours, line(5, session="s3", asked=asked, client="ff", prompt_tokens=700))
    sharing = Sharing()
    assert common(sharing.blocks(first)[0], sharing.blocks(second)[0]) == 8
    assert common(sharing.blocks(first)[0], sharing.blocks(stranger)[0]) == 0


def test_what_the_engine_had_in_its_cache_is_there_again(tmp_path: Path) -> None:
    calls_ = calls(tmp_path, *(line(number, prompt_tokens=700, cached_tokens=256) for number in range(2)))
    sharing = Sharing()
    first, second = (sharing.blocks(call)[0] for call in calls_)
    assert len(first) == 4
    assert common(first, second) == 4


def test_blocks_of_a_trace_are_taken_as_they_are(tmp_path: Path) -> None:
    (call,) = calls(tmp_path, line())
    sharing = Sharing(512)
    assert sharing.blocks(replace(call, blocks=(7, 8, 9), prompt_tokens=1_100)) == ((7, 8), (7, 8))


def test_the_router_sees_of_prompts_how_far_they_are_the_same(tmp_path: Path) -> None:
    lines = [line(number, session="a", prompt_tokens=tokens) for number, tokens in enumerate((6_400, 64_000))]
    first, second = (each.features for each in arriving(calls(tmp_path, *lines), Sharing()))
    assert first is not None
    assert second is not None
    shorter, longer = first.blocks(), second.blocks()
    assert longer.chars == 256_000
    assert len(longer.hashes) < 120
    assert longer.hashes[: len(shorter.hashes)] == shorter.hashes
    assert 0.9 * shorter.chars <= shorter.ends[-1] <= shorter.chars
