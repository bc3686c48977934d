"""How far two prompts are the same, as their blocks tell it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from classifiers.blocks import BLOCK_CHARS, NO_BLOCKS, common, cut, in_order
from tests.classifiers.reading import read

TEXTS = st.text(st.sampled_from("ab \né…"), max_size=700)
MESSAGES = st.lists(st.tuples(st.sampled_from("suat"), st.lists(TEXTS, min_size=1, max_size=3)), min_size=1, max_size=8)


@given(MESSAGES, st.lists(TEXTS, min_size=1, max_size=2), MESSAGES)
def test_the_next_turn_has_the_blocks_of_the_turn_before(
    history: list[tuple[str, list[str]]], answer: list[str], more: list[tuple[str, list[str]]]
) -> None:
    history = [*history, ("u", ["and now?"])]
    before, after = cut("m", history), cut("m", [*history, ("a", answer), *more])
    assert common(before.hashes, after.hashes) == len(before.hashes)
    end = before.ends[-1]
    assert end in after.ends
    assert after.answer_at(end) == len("\n".join(answer))


def test_system_text_and_a_long_part_of_a_message_are_matched_to_their_end() -> None:
    system, document = ("s", ["rules " * 77]), "facts " * 333
    one, other = [cut("m", [system, ("u", [document, ask])]) for ask in ("Who?", "Where?")]
    shared = common(one.hashes, other.hashes)
    assert one.ends[shared - 1] == len("<|system|>\n") + 6 * 77 + len("\n<|user|>\n") + 6 * 333 + len("\n")
    apart = cut("m", [system, ("u", ["Hello?"])])
    assert one.ends[common(one.hashes, apart.hashes) - 1] == len("<|system|>\n") + 6 * 77


@given(TEXTS, TEXTS, TEXTS)
def test_prompts_share_what_comes_before_their_first_difference(head: str, one: str, other: str) -> None:
    mine, yours = cut("m", [("u", [head + "x" + one])]), cut("m", [("u", [head + "y" + other])])
    shared = common(mine.hashes, yours.hashes)
    chars = mine.ends[shared - 1] if shared else 0
    different = len("\n<|user|>\n" + head)
    assert chars <= different
    assert different - chars < BLOCK_CHARS


def test_another_model_has_nothing_in_common() -> None:
    said = [("u", ["x" * 2000])]
    assert common(cut("m", said).hashes, cut("n", said).hashes) == 0


def test_a_long_prompt_has_few_blocks_and_a_match_is_a_sixteenth_short_at_most() -> None:
    text = "".join(f"line {number}\n" for number in range(100_000))
    one, other = cut("m", [("u", [text])]), cut("m", [("u", [text[:900_000] + "?"])])
    assert len(one.hashes) < 250
    shared = common(one.hashes, other.hashes)
    assert 900_000 * 15 / 16 <= one.ends[shared - 1] <= 900_000 + 20


def test_a_conversation_of_very_many_answers_has_bounded_ends() -> None:
    said = [("u", ["go"]), ("a", ["ok"])] * 5_000
    blocks = cut("m", said)
    assert len(blocks.answers) == 1_024
    assert len(blocks.hashes) < 1_400


def test_nothing_said_is_no_block() -> None:
    assert cut("m", []) == NO_BLOCKS


def test_a_template_writes_system_text_then_tools_then_what_was_said() -> None:
    said = [("s", ["rules"]), ("u", ["a", "b"]), ("s", ["late"]), ("a", ["c"])]
    assert [(role, list(texts)) for role, texts in in_order(["one", "two"], "[]", said)] == [
        ("s", ["one", "two"]),
        ("s", ["rules"]),
        ("s", ["[]"]),
        ("u", ["a", "b"]),
        ("s", ["late"]),
        ("a", ["c"]),
    ]
    assert list(in_order([], "[]", [("s", ["rules"])])) == [("s", ["rules"]), ("s", ("[]",))]


def test_parts_of_a_message_are_compared_in_their_order() -> None:
    """A document in front of two questions is shared, whichever way the client writes parts."""
    document = "".join(f"{number} and " for number in range(2_000))
    one = read([{"type": "text", "text": document}, {"type": "text", "text": "Who?"}]).blocks()
    other = read([{"type": "text", "text": document}, {"type": "text", "text": "Where and when?"}]).blocks()
    shared = common(one.hashes, other.hashes)
    assert one.ends[shared - 1] > len(document) * 15 / 16


def test_what_stands_behind_an_image_is_not_compared() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    blocks = read([image, {"type": "text", "text": "What is it?"}], system="x" * 1_000).blocks()
    assert not blocks.whole
    assert blocks.ends[-1] < 1_020
    assert read("plain").blocks().whole


def test_a_salt_of_the_cache_keeps_prompts_apart() -> None:
    assert common(read("x" * 900).blocks().hashes, read("x" * 900, cache_salt="mine").blocks().hashes) == 0


def test_no_blocks_are_made_once_the_text_is_forgotten() -> None:
    features = read("x" * 900)
    features.forget_text()
    assert features.blocks() == NO_BLOCKS
