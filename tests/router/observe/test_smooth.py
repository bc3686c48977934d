"""What a call is worth between 0 and 1: whole when promises were kept, never more by waiting, nothing when given up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.observe.facts import CallFacts
from router.observe.smooth import smooth_0_1
from tests.router.observe.test_goodput import chat, ended

SECONDS = st.floats(0.001, 30.0)
TOKENS = st.integers(2, 2000)
READER = chat()
"""A first token in 0.5 s, and 0.05 s per token."""


def streamed(ttft_s: float, tpot_s: float, tokens: int) -> CallFacts:
    return ended(ttft_s=ttft_s, tpot_s=tpot_s, output_tokens=tokens, complete_s=ttft_s + tpot_s * (tokens - 1))


def worth(facts: CallFacts) -> float:
    return smooth_0_1(facts, READER.rules)


@given(SECONDS, SECONDS, TOKENS)
def test_it_is_between_0_and_1_and_whole_where_promises_were_kept(ttft_s: float, tpot_s: float, tokens: int) -> None:
    facts = streamed(ttft_s, tpot_s, tokens)
    assert 0.0 < worth(facts) <= 1.0
    if READER.kept(facts):
        assert worth(facts) == 1.0


@given(SECONDS, SECONDS, TOKENS, st.floats(0.0, 10.0))
def test_holding_tokens_back_never_raises_it(ttft_s: float, tpot_s: float, tokens: int, held_s: float) -> None:
    """Also not where the later tokens then come closer together, which makes the mean gap look better."""
    at_once = streamed(ttft_s, tpot_s, tokens)
    last_s = ttft_s + tpot_s * (tokens - 1)
    held_s = min(held_s, last_s - ttft_s)
    held = streamed(ttft_s + held_s, (last_s - ttft_s - held_s) / (tokens - 1), tokens)
    assert worth(held) <= worth(at_once) + 1e-9


def test_what_took_twice_as_long_as_was_promised_counts_half() -> None:
    rules = chat(slo_complete_s=6.0).rules
    assert smooth_0_1(ended(stream=False, ttft_s=None, tpot_s=None, complete_s=12.0), rules) == pytest.approx(0.5)


def test_late_is_worth_more_than_given_up() -> None:
    assert worth(streamed(20.0, 0.2, 100)) > 0.0
    assert worth(ended(outcome="backend_error", ttft_s=None)) == 0.0


def test_tokens_that_came_early_make_up_for_later_ones() -> None:
    facts = streamed(0.01, 0.051, 100)
    assert not READER.kept(facts)
    assert worth(facts) == 1.0
