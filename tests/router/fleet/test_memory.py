"""The memory of what belongs to which backend is bounded and forgets the least recently used."""

from __future__ import annotations

from router.fleet.memory import Memory


def test_what_was_remembered_is_recalled() -> None:
    memory = Memory(10)
    memory.remember("a", "desk")
    memory.remember("a", "rack")
    assert memory.recall("a") == "rack"
    assert memory.recall("b") is None


def test_an_empty_key_is_nothing() -> None:
    memory = Memory(10)
    memory.remember("", "desk")
    assert memory.recall("") is None
    assert len(memory) == 0


def test_the_least_recently_used_is_forgotten_first() -> None:
    memory = Memory(2)
    memory.remember("a", "1")
    memory.remember("b", "2")
    memory.recall("a")
    memory.remember("c", "3")
    assert [memory.recall(key) for key in "abc"] == ["1", None, "3"]


def test_the_size_stays_within_its_bound() -> None:
    memory = Memory(100)
    for number in range(10_000):
        memory.remember(str(number), "x")
    assert len(memory) == 100
