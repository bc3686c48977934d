"""Which keys exist where."""

from __future__ import annotations

from router.settings.outline import every_key, homes, known_keys, sections


def test_keys_are_found_in_lists_and_below_other_keys() -> None:
    assert list(known_keys(("backends", 3)))[:2] == ["name", "url"]
    assert list(known_keys(("classify", "rules", 0))) == ["if", "then"]
    assert list(known_keys(("headers",))) == ["class", "session", "tightest"]
    assert "listen" in known_keys(())


def test_where_people_choose_the_keys_none_are_known() -> None:
    assert known_keys(("models", "chat")) == {}
    assert known_keys(("listen",)) == {}
    assert known_keys(("classes", "ttft", "keep_free")) == {}


def test_a_key_that_stands_elsewhere_is_found() -> None:
    assert homes("max_wait") == ["classes.ttft", "classes.mixed", "classes.throughput"]
    assert homes("url") == ["backends[*]"]
    assert homes("listen") == [""]
    assert homes("nothing") == []


def test_every_key_is_described_for_editors() -> None:
    silent = [
        (*place, key)
        for place, keys in sections().items()
        for key, field in keys.items()
        if not field.description or not field.description.endswith((".", ")", "}"))
    ]
    assert silent == []


def test_the_outline_knows_deep_and_shallow_keys() -> None:
    keys = set(every_key())
    assert {("listen",), ("backends", "*", "weight"), ("classes", "ttft", "slo", "tpot")} <= keys
