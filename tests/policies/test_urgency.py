"""When a call has to start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from classifiers.api import Features
from classifiers.lengths import Lengths
from policies.api import Ask, Pace
from policies.urgency import urgency
from tests.policies.makers import MIXED, ask, desk

TENTH = Pace(step_s=0.01, sequence_s=0.0, prefill_token_s=0.001, step_tokens=10_000)
FAST = replace(TENTH, step_s=0.005)


def hop(**known: Any) -> Ask:
    made = ask(MIXED, **known)
    features = Features(surface="openai_chat", prompt_tokens=1_000)
    rules = replace(made.rules, slo_complete_s=6.0)
    return replace(made, features=features, lengths=Lengths(p50_tokens=101, p90_tokens=200), rules=rules)


def test_a_call_starts_in_time_to_be_complete_on_the_quickest_backend() -> None:
    alone = urgency(hop(), [desk(pace=TENTH)], 120.0)

    assert alone.work_s == pytest.approx(2.01)
    assert alone.latest_s == pytest.approx(6.0 - 2.01)
    assert urgency(hop(), [desk(pace=TENTH), desk(pace=FAST)], 120.0).work_s < 1.6


def test_a_due_time_of_its_pipeline_counts_where_it_is_sooner() -> None:
    assert urgency(hop(due_s=4.0), [desk(pace=TENTH)], 120.0).latest_s == pytest.approx(4.0 - 2.01)


def test_a_hope_comes_before_the_promise_and_does_not_replace_it() -> None:
    found = urgency(hop(hoped_s=3.0), [desk(pace=TENTH)], 120.0)

    assert found.hoped_s == pytest.approx(3.0 - 2.01)
    assert found.latest_s == pytest.approx(6.0 - 2.01)


def test_who_was_promised_nothing_has_the_time_of_ageing() -> None:
    assert urgency(ask(), [desk()], 120.0).latest_s == 120.0
