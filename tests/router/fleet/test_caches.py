"""What is remembered of the caches of backends: slots, stores of blocks, and how much of either."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.blocks import Blocks, cut
from router.fleet.caches import Cache, Slots, Store

TOKENS = 1_000


def prompt(*turns: str, system: str = "") -> Blocks:
    """Turns of user and assistant, a word each, long enough for several blocks."""
    said = [("s", [system * 1_000])] if system else []
    return cut("m", [*said, *[("au"[(index + 1) % 2], [f"{turn} " * 300]) for index, turn in enumerate(turns)]])


def serve(cache: Cache, blocks: Blocks, *, answer_tokens: int = 0, tokens: int = TOKENS) -> None:
    cache.ended(cache.sent(blocks, tokens), answer_tokens)


def held(cache: Cache, blocks: Blocks, tokens: int = TOKENS) -> float:
    return cache.match(blocks, tokens).held_0_1


def big_store() -> Store:
    return Store(1_000_000, 10_000)


@pytest.mark.parametrize("cache", [Slots(2), big_store()])
def test_the_same_prompt_again_is_there_as_a_whole(cache: Cache) -> None:
    assert held(cache, prompt("hello")) == 0
    serve(cache, prompt("hello"))
    assert held(cache, prompt("hello")) == 1
    assert held(cache, prompt("other")) == 0


@pytest.mark.parametrize("cache", [Slots(2), big_store()])
def test_the_next_turn_finds_the_prompt_before_and_its_answer(cache: Cache) -> None:
    one, two = prompt("question"), prompt("question", "answer", "more")
    serve(cache, one)
    without = held(cache, two)
    assert without == pytest.approx(one.ends[-1] / two.ends[-1])
    serve(cache, one, answer_tokens=300)
    ((start, length),) = two.answers
    assert held(cache, two) == pytest.approx((start + length) / two.ends[-1])


@pytest.mark.parametrize("cache", [Slots(2), big_store()])
def test_an_answer_of_which_most_is_left_out_in_the_next_turn_is_not_counted(cache: Cache) -> None:
    serve(cache, prompt("question"), answer_tokens=3_000)
    two = prompt("question", "answer", "more")
    assert held(cache, two) == pytest.approx(prompt("question").ends[-1] / two.ends[-1])


def test_slots_remember_one_prompt_each() -> None:
    slots = Slots(2)
    for word in "abc":
        serve(slots, prompt(word))
    assert [held(slots, prompt(word)) for word in "abc"] == [0, 1, 1]
    assert slots.match(prompt("a"), TOKENS).faded_0_1 == 1


def test_a_prompt_goes_to_the_slot_that_it_continues() -> None:
    slots = Slots(2)
    serve(slots, prompt("a"))
    serve(slots, prompt("b"))
    serve(slots, prompt("a", "ok", "more"))
    assert held(slots, prompt("b")) == 1
    serve(slots, prompt("c"))
    assert held(slots, prompt("b")) == 0, "it was idle for longest"
    assert held(slots, prompt("a", "ok", "more")) == 1


def test_a_slot_that_works_lends_nothing() -> None:
    slots = Slots(2)
    running = slots.sent(prompt("a"), TOKENS)
    assert held(slots, prompt("a")) == 0
    slots.ended(running, 0)
    assert held(slots, prompt("a")) == 1


def test_a_short_head_in_common_does_not_choose_the_slot() -> None:
    """As in llama.cpp: less than a tenth of the prompt is no reason to push out what was used lately."""
    slots = Slots(2)
    serve(slots, prompt("old"))
    serve(slots, prompt("a", system="rules "))
    longer = prompt(*[f"b{number}" for number in range(301)], system="rules ")
    assert held(slots, longer) == 0
    serve(slots, longer)
    assert held(slots, prompt("old")) == 0


@pytest.mark.parametrize("cache", [Slots(1), big_store()])
def test_a_server_that_turned_a_call_away_has_what_it_had_before(cache: Cache) -> None:
    serve(cache, prompt("a"))
    cache.turned_away(cache.sent(prompt("b"), TOKENS))
    assert held(cache, prompt("a")) == 1
    assert held(cache, prompt("b")) == 0
    cache.turned_away(cache.sent(prompt("a", "ok", "b"), TOKENS))
    assert held(cache, prompt("a")) == 1


def test_more_calls_than_slots_leave_as_many_prompts_as_slots() -> None:
    slots = Slots(2)
    running = [slots.sent(prompt(word), TOKENS) for word in "abcd"]
    for each in running:
        slots.ended(each, 0)
    assert sum(held(slots, prompt(word)) for word in "abcd") == 2


def test_a_store_holds_as_many_tokens_as_fit() -> None:
    store = Store(3 * TOKENS, 10_000)
    for word in "abcd":
        serve(store, prompt(word))
    # The beginning of a prompt goes last.
    assert held(store, prompt("a")) == 0
    assert [held(store, prompt(word)) for word in "bcd"] == [pytest.approx(1, abs=0.35), 1, 1]
    assert store.match(prompt("a"), TOKENS).faded_0_1 == 1


def test_answers_take_room_in_a_store() -> None:
    store = Store(3 * TOKENS, 10_000)
    serve(store, prompt("a"))
    serve(store, prompt("b"), answer_tokens=2_500)
    assert held(store, prompt("a")) < 1


def test_what_is_used_stays_in_a_store_while_others_flood_it() -> None:
    """No worse than least recently used: a conversation whose turns come more often than the flood fills the store."""
    store = Store(20 * TOKENS, 10_000)
    turns = ["first"]
    for number in range(60):
        blocks = prompt(*turns, system="rules ")
        serve(store, blocks, tokens=500 * len(turns))
        if number:
            assert held(store, blocks) == 1
        for other in range(5):
            serve(store, prompt(f"flood{number}.{other}"))
        if number % 10 == 0:
            turns += ["answer", f"turn{number}"]
        assert held(store, prompt(*turns, system="rules ")) >= 0.5
    once = prompt("flood3.1")
    assert held(store, once) == 0


@pytest.mark.parametrize(
    ("cache", "most"), [(Store(10_000, 200), 200), (Store(10**9, 200), 200), (Slots(4), (4 + 32) * 20)]
)
def test_memory_is_bounded_whatever_comes(cache: Store | Slots, most: int) -> None:
    for number in range(2_000):
        serve(cache, prompt(f"{number}"), answer_tokens=50)
        assert len(cache) <= most


@given(
    st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=5), min_size=1, max_size=12), st.integers(1, 4_000)
)
def test_a_store_holds_what_an_exact_one_would(prompts: Sequence[Sequence[str]], capacity: int) -> None:
    """Against the plain rule: newest uses first, each block once, until the tokens are spent."""
    store = Store(capacity, 10_000)
    uses: list[tuple[int, int]] = []
    for turns in prompts:
        blocks = prompt(*turns)
        serve(store, blocks)
        spans = [end - start for start, end in zip((0, *blocks.ends), blocks.ends, strict=False)]
        for block, span in reversed(list(zip(blocks.hashes, spans, strict=True))):
            known = [tokens for old, tokens in uses if old == block]
            uses = [use for use in uses if use[0] != block]
            uses.append((block, known[0] if known else round(span * TOKENS / blocks.ends[-1])))
        while sum(tokens for _, tokens in uses) > capacity:
            uses.pop(0)
    kept = {block for block, _ in uses}
    for turns in prompts:
        blocks = prompt(*turns)
        depth = next((index for index, block in enumerate(blocks.hashes) if block not in kept), len(blocks.hashes))
        assert held(store, blocks) == (blocks.ends[depth - 1] / blocks.ends[-1] if depth else 0)


def test_a_prompt_that_comes_back_counts_without_the_answer_it_had_before() -> None:
    store = Store(10_000, 4_096)
    for answer_tokens in (4_000, 10):
        for number in range(60):
            serve(store, prompt(str(number)), answer_tokens=answer_tokens, tokens=200)

    assert 0 <= store._tokens <= 10_000
    assert store._tokens == sum(store._held.values())
