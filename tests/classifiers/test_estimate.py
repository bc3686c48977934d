"""Estimates of tokens against what real vocabularies make of a text."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from classifiers.estimate import estimate_tokens

# Counts by the vocabularies that the weights were fitted on: the median of six.
PARAGRAPHS = {
    "english": (
        "The train stopped at a small station, and the passengers stepped out to look at the snow. "
        "Nobody knew how long the delay would be, but the tea was hot and the windows were warm.",
        39,
    ),
    "german": (
        "Schöne Grüße aus München! Wir möchten gerne wissen, wie viele Plätze für die Veranstaltung am nächsten "
        "Donnerstag noch verfügbar sind, und ob man sich vorher anmelden müsste.",
        41,
    ),
    "russian": (
        "Когда поезд остановился на маленькой станции, пассажиры вышли на платформу и долго смотрели на "
        "заснеженные поля.",
        32,
    ),
    "chinese": (
        "请将下面的文章翻译成英文,并保持原来的格式。另外,请在文末列出三个要点,说明作者对人工智能发展的看法。",
        34,
    ),
    "japanese": ("注文の詳細を送っていただき、登録された住所にいつ届くか教えてください。", 22),
    "json": (
        '{"type": "function", "function": {"name": "get_order", "parameters": {"type": "object", "properties": '
        '{"order_id": {"type": "string", "description": "The id of the order"}}, "required": ["order_id"]}}}',
        57,
    ),
    "code": (
        "def mean(values: list[float]) -> float:\n    if not values:\n        return 0.0\n"
        "    total = sum(values)\n    return total / len(values)\n",
        36,
    ),
    "identifiers": (
        "public OrderSummary loadSummary(String orderId) {\n"
        "    return cachedOrders.computeIfAbsent(orderId, key -> summaryClient.fetchOrder(key));\n}\n",
        30,
    ),
    "hexadecimal": ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", 47),
    "table": ("| 2024-03-11 | 1,204.50 | 17 % |\n| 2024-03-12 | 1,310.25 | 19 % |\n", 48),
}
BASE64_TOKENS = 1220


@pytest.mark.parametrize("kind", PARAGRAPHS)
def test_a_paragraph_is_estimated_close_to_what_vocabularies_make_of_it(kind: str) -> None:
    text, tokens = PARAGRAPHS[kind]

    assert estimate_tokens(text) == pytest.approx(tokens, rel=0.15)


def test_base64_in_a_text_is_not_taken_for_few_long_words() -> None:
    digests = b"".join(sha256(bytes([number])).digest() for number in range(40))

    assert estimate_tokens(b64encode(digests).decode()) == pytest.approx(BASE64_TOKENS, rel=0.15)


def test_empty_text_has_no_tokens() -> None:
    assert estimate_tokens("") == 0


@given(st.text(min_size=1))
def test_text_that_is_not_empty_has_at_least_one_token_and_few_per_character(text: str) -> None:
    assert 1 <= estimate_tokens(text) <= 2 * len(text) + 1


@pytest.mark.parametrize("kind", PARAGRAPHS)
def test_a_long_text_is_sampled_and_grows_in_proportion(kind: str) -> None:
    text, _ = PARAGRAPHS[kind]

    assert estimate_tokens(text * 400) == pytest.approx(400 * estimate_tokens(text), rel=0.1)


def test_the_sample_reaches_from_the_first_character_to_the_last() -> None:
    english, chinese = "some words of prose " * 1000, "请将下面的文章翻译成英文" * 1000

    both = estimate_tokens(english + chinese)

    assert both == pytest.approx(estimate_tokens(english) + estimate_tokens(chinese), rel=0.1)


def test_digits_cost_more_than_letters() -> None:
    assert estimate_tokens("1234567890" * 10) > 2 * estimate_tokens("abcdefghij" * 10)


def test_emoji_cost_more_than_a_token_each() -> None:
    assert estimate_tokens("🎉" * 10) > 10


def test_half_of_a_surrogate_pair_is_no_reason_to_fail() -> None:
    assert estimate_tokens("\ud83d") == 1
