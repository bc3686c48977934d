"""How much of a prompt backends are expected to have, and how what engines report corrects that."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from classifiers.api import Features
from router.engines.api import Identity, Load, Loading, Ready
from router.fleet.fleet import Fleet
from router.fleet.prefixes import Prefix, Prefixes
from router.settings.load import parse
from router.surfaces import find, read_call

SYSTEM = "You answer in short sentences. " * 60
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def fleet_of(*names: str, engine: str = "vllm") -> Fleet:
    settings = parse(
        "backends: ["
        + ", ".join(
            f"{{name: {name}, url: 'http://127.0.0.1:{number}', engine: {engine}}}"
            for number, name in enumerate(names, 9000)
        )
        + "]",
        "t.yaml",
        {},
    )
    fleet = Fleet(settings)
    for backend in fleet.backends():
        fleet.identified(backend, Identity(engine=engine, slots=2 if engine == "llamacpp" else None, models=("m",)))
        fleet.probed(backend, Ready(), None, since_s=0.0, now_s=0.0)
    return fleet


def features(*said: object, model: str = "m") -> Features:
    roles = ("user", "assistant")
    turns = [{"role": roles[index % 2], "content": content} for index, content in enumerate(said)]
    body = {"model": model, "messages": [{"role": "system", "content": SYSTEM}, *turns]}
    return read_call(find("POST", "/v1/chat/completions"), json.dumps(body).encode(), {})


def asked(prefixes: Prefixes, *said: object, key: str = "", model: str = "m") -> Prefix:
    read = features(*said, model=model)
    prefix = prefixes.of(read, read.blocks())
    prefix.key = key
    return prefix


def serve(prefix: Prefix, backend: str, *, cached: int | None = None, output_tokens: int | None = 5) -> None:
    prefix.sent(backend)
    prefix.ended(prompt_tokens=prefix.prompt_tokens, cached_tokens=cached, output_tokens=output_tokens, complete=True)


def test_the_backend_that_had_a_prompt_has_it_and_no_other() -> None:
    prefixes = Prefixes(fleet_of("one", "two"))
    serve(asked(prefixes, "Hello?"), "one")
    again = asked(prefixes, "Hello?")
    assert again["one"] == again.prompt_tokens - 1, "one token is always computed"
    assert again["two"] == again.get("two", 0) == 0
    assert dict(again) == {"one": again.prompt_tokens - 1, "two": 0}
    assert asked(prefixes, "Hello?", model="n")["one"] == 0


def test_another_conversation_of_the_same_program_shares_its_system_text() -> None:
    prefixes = Prefixes(fleet_of("one"))
    serve(asked(prefixes, "Hello?"), "one")
    other = asked(prefixes, "Something else " * 50)
    assert other["one"] == pytest.approx(len(SYSTEM) / 5, rel=0.35)
    assert other["one"] < other.prompt_tokens * 0.8


def test_what_is_expected_follows_what_happens_until_it_is_asked() -> None:
    """A call in the line is judged by the caches of the moment at which room appears."""
    prefixes = Prefixes(fleet_of("one"))
    waiting = asked(prefixes, "Hello?")
    assert waiting["one"] == 0
    serve(asked(prefixes, "Hello?"), "one")
    assert waiting["one"] == waiting.prompt_tokens - 1


def test_a_server_without_a_cache_is_soon_expected_to_have_nothing() -> None:
    prefixes = Prefixes(fleet_of("one"))
    for _ in range(8):
        serve(asked(prefixes, "Hello?"), "one", cached=0)
    again = asked(prefixes, "Hello?")
    assert again["one"] < 0.25 * again.prompt_tokens
    for _ in range(60):
        serve(asked(prefixes, "Hello?"), "one", cached=again.prompt_tokens)
    assert asked(prefixes, "Hello?")["one"] > 0.9 * again.prompt_tokens


def test_a_server_that_keeps_more_than_its_slots_is_found_out() -> None:
    prefixes = Prefixes(fleet_of("one", engine="llamacpp"))
    words = [f"{number} " * 400 for number in range(6)]
    for word in words:
        serve(asked(prefixes, word), "one", cached=0)
    early = asked(prefixes, words[0])
    assert early["one"] < 0.4 * early.prompt_tokens, "its slots have had other prompts since"
    for _ in range(3):
        for word in words:
            prefix = asked(prefixes, word)
            serve(prefix, "one", cached=prefix.prompt_tokens - 1)
    assert asked(prefixes, words[0])["one"] > 0.7 * early.prompt_tokens


def test_servers_that_report_nothing_are_taken_for_what_they_are() -> None:
    prefixes = Prefixes(fleet_of("one"))
    for _ in range(20):
        serve(asked(prefixes, "Hello?"), "one", cached=None)
    assert prefixes.trust("one") == (1.0, 0.0)


def test_after_an_outage_nothing_is_expected_any_more() -> None:
    fleet = fleet_of("one", "two")
    prefixes = Prefixes(fleet)
    for name in ("one", "two"):
        serve(asked(prefixes, "Hello?"), name)
    one, two = fleet.backends()
    waiting = asked(prefixes, "Hello?")
    assert waiting["one"] > 0
    fleet.refused(one, "connection refused")
    fleet.probed(one, Ready(), None, since_s=1.0, now_s=1.0)
    again = asked(prefixes, "Hello?")
    assert again["one"] == 0
    assert again["two"] > 0
    assert waiting["one"] == 0, "also for who asked before"
    fleet.loading(two, Loading())
    assert again["two"] == 0


def test_a_server_that_says_how_much_it_holds_is_believed() -> None:
    fleet = fleet_of("one")
    prefixes = Prefixes(fleet)
    words = [f"{number} and " * 800 for number in range(4)]
    for word in words:
        serve(asked(prefixes, word), "one")
    tokens = asked(prefixes, words[0]).prompt_tokens
    assert all(asked(prefixes, word)["one"] == tokens - 1 for word in words)
    size = int(2.5 * tokens)
    fleet.probed(fleet.backends()[0], Ready(), Load(running=0.0, cache_tokens=size), since_s=1.0, now_s=1.0)
    kept = [asked(prefixes, word)["one"] for word in words]
    assert kept[0] < 0.4 * tokens, "the system text is still there, since the others share it"
    assert kept[1:] == [tokens - 1] * 3


def test_sglang_names_a_number_of_calls_and_has_no_slots() -> None:
    fleet = fleet_of("one", engine="sglang")
    fleet.identified(fleet.backends()[0], Identity(engine="sglang", slots=1, models=("m",)))
    prefixes = Prefixes(fleet)
    for word in ("a", "b"):
        serve(asked(prefixes, word), "one")
    assert asked(prefixes, "a")["one"] > 200


def test_another_model_in_the_same_place_begins_anew() -> None:
    fleet = fleet_of("one")
    prefixes = Prefixes(fleet)
    serve(asked(prefixes, "Hello?"), "one", cached=0)
    fleet.identified(fleet.backends()[0], Identity(engine="vllm", models=("n",)))
    assert asked(prefixes, "Hello?")["one"] == 0
    assert prefixes.trust("one") == (1.0, 0.0)


def test_one_more_model_on_a_server_leaves_what_it_has() -> None:
    fleet = fleet_of("one")
    prefixes = Prefixes(fleet)
    serve(asked(prefixes, "Hello?"), "one")
    before = asked(prefixes, "Hello?")["one"]
    for models in (("m", "adapter"), ("m", "adapter", "another")):
        fleet.identified(fleet.backends()[0], Identity(engine="vllm", models=models))
        assert asked(prefixes, "Hello?")["one"] == before > 0


def test_a_call_that_ends_after_an_outage_brings_nothing_back() -> None:
    fleet = fleet_of("one")
    prefixes = Prefixes(fleet)
    prefix = asked(prefixes, "Hello?")
    prefix.sent("one")
    fleet.refused(fleet.backends()[0], "connection refused")
    prefix.ended(prompt_tokens=400, cached_tokens=0, output_tokens=5, complete=True)
    assert asked(prefixes, "Hello?")["one"] == 0


def test_a_call_that_was_turned_away_counts_for_the_next_backend_alone() -> None:
    prefixes = Prefixes(fleet_of("one", "two"))
    prefix = asked(prefixes, "Hello?")
    prefix.sent("one")
    prefix.turned_away()
    serve(prefix, "two")
    again = asked(prefixes, "Hello?")
    assert (again["one"], again["two"]) == (0, again.prompt_tokens - 1)
    prefix.turned_away()
    prefix.ended(prompt_tokens=None, cached_tokens=None, output_tokens=None, complete=False)


@pytest.mark.parametrize(("key", "expected_share"), [("session=7", 0.5), ("", 0.0)])
def test_a_conversation_about_an_image_is_known_by_its_session(key: str, expected_share: float) -> None:
    prefixes = Prefixes(fleet_of("one", "two"))
    content: Sequence[object] = [{"type": "text", "text": "What is this? " * 200}, IMAGE]
    serve(asked(prefixes, content, key=key), "one")
    again = asked(prefixes, content, "A cat.", "And this? " * 20, key=key)
    text_before = len(SYSTEM) / 4 / again.prompt_tokens
    share = again["one"] / again.prompt_tokens
    assert share > text_before + 0.2 if expected_share else share == pytest.approx(text_before, abs=0.1)
    assert again["two"] == 0


@pytest.mark.parametrize(("reported", "least_0_1", "most_0_1"), [(None, 0.4, 0.6), (0.0, 0.0, 0.2), (1.0, 0.8, 1.0)])
@pytest.mark.parametrize("engine", ["vllm", "llamacpp"])
def test_the_word_of_a_caller_counts_as_far_as_reports_bear_it_out(
    engine: str, reported: float | None, least_0_1: float, most_0_1: float
) -> None:
    """Prompts that have nothing in common but the name of their session."""
    prefixes = Prefixes(fleet_of("one", "two", engine=engine))
    for number in range(10):
        read = features_of_text(f"{number} " * 900)
        prefix = prefixes.of(read, read.blocks())
        prefix.key = "x-session-id=7"
        serve(prefix, "one", cached=None if reported is None else round(reported * prefix.prompt_tokens))
    read = features_of_text("something else " * 500)
    prefix = prefixes.of(read, read.blocks())
    assert prefix["one"] == 0
    prefix.key = "x-session-id=7"
    again = prefixes.of(read, read.blocks())
    again.key = prefix.key
    assert least_0_1 * again.prompt_tokens <= again["one"] <= most_0_1 * again.prompt_tokens
    assert again["two"] == 0


def features_of_text(text: str) -> Features:
    return read_call(find("POST", "/v1/completions"), json.dumps({"model": "m", "prompt": text}).encode(), {})


def test_conversations_that_nobody_named_are_known_by_their_text_alone() -> None:
    prefixes = Prefixes(fleet_of("one"))
    serve(asked(prefixes, "Hello?", key="opening=abc"), "one")
    read = features_of_text("something else " * 500)
    prefix = prefixes.of(read, read.blocks())
    prefix.key = "opening=abc"
    assert prefix["one"] == 0


def test_backends_that_are_gone_are_forgotten() -> None:
    fleet = fleet_of("one", "two")
    prefixes = Prefixes(fleet)
    prefix = asked(prefixes, "Hello?")
    serve(prefix, "two")
    fleet.apply(parse("backends: [{name: one, url: 'http://127.0.0.1:9000', engine: vllm}]", "t.yaml", {}))
    assert prefix["two"] == 0
    prefix.sent("two")
    prefix.ended(prompt_tokens=None, cached_tokens=None, output_tokens=None, complete=False)
    assert list(prefix) == ["one"]
