"""What is known of the next call that waits for a first token."""

from __future__ import annotations

from dataclasses import replace

import pytest

from classifiers.api import CallClass
from policies.api import Ask
from router.fleet.demand import DemandMeter
from tests.router.builders import applicant


def chat(tokens: int = 300) -> Ask:
    asked = applicant(prompt_tokens=tokens).ask
    return replace(asked, rules=replace(asked.rules, slo_ttft_s=0.5, slo_tpot_s=0.05))


def test_the_settings_say_what_is_promised_whatever_one_caller_asks_for() -> None:
    meter = DemandMeter()
    meter.promise(0.5, 0.05)
    before = meter.told(0.0)
    patient = chat()
    meter.came(replace(patient, rules=replace(patient.rules, slo_ttft_s=60.0)), 1.0)

    assert (before.per_s, before.ttft_s, before.tpot_s) == (0.0, 0.5, 0.05)
    assert (meter.told(2.0).ttft_s, meter.told(2.0).tpot_s) == (0.5, 0.05)


def test_the_rate_is_that_of_late() -> None:
    meter = DemandMeter()
    for number in range(400):
        meter.came(chat(), number * 0.5)

    assert meter.told(200.0).per_s == pytest.approx(2.0, rel=0.15)
    assert meter.told(600.0).per_s < 0.01


def test_those_who_have_ceased_to_come_are_not_expected_for_a_minute() -> None:
    meter = DemandMeter()
    for number in range(60):
        meter.came(chat(), number * 0.5)

    assert meter.told(30.5).per_s == pytest.approx(2.0, rel=0.15), "a usual gap says nothing"
    assert meter.told(39.5).per_s == pytest.approx(0.3)


def test_soon_after_the_start_the_rate_is_not_taken_for_less() -> None:
    meter = DemandMeter()
    for number in range(10):
        meter.came(chat(), number * 0.5)

    assert 1.0 < meter.told(5.0).per_s < 3.0


def test_many_a_second_are_told_as_many() -> None:
    meter = DemandMeter()
    for number in range(12_000):
        meter.came(chat(), number * 0.01)

    assert meter.told(120.0).per_s == pytest.approx(100.0, rel=0.15)


def test_other_classes_ask_for_no_first_token() -> None:
    meter = DemandMeter()
    meter.came(applicant(CallClass.THROUGHPUT).ask, 1.0)

    assert meter.told(2.0).per_s == 0.0


def test_the_typical_prompt_is_a_large_one_among_the_usual() -> None:
    meter = DemandMeter()
    for number in range(300):
        meter.came(chat(200 if number % 2 else 400), number * 0.1)

    assert 300 < meter.told(30.0).prompt_tokens < 450
