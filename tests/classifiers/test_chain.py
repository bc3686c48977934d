"""The order in which the voices are asked."""

from __future__ import annotations

from classifiers.api import CallClass, Features, Source
from classifiers.chain import Chain
from classifiers.rules import Rules
from tests.classifiers.test_judged import judged

RULES = Rules.compiled([({"prompt_tokens": ">6000"}, CallClass.MIXED)])
STREAM = Features(surface="openai_chat", stream=True, turns=1)
LONG = Features(surface="openai_chat", prompt_tokens=7000, turns=1)
TAGGED = Features(surface="openai_chat", prompt_tokens=7000, headers={"x-twolane-class": "interactive"})
MISTAGGED = Features(surface="openai_chat", prompt_tokens=7000, headers={"x-twolane-class": "fastest"})


def test_a_header_outranks_the_rules_which_outrank_the_table() -> None:
    chain = Chain(rules=RULES)

    assert chain.classify(TAGGED).source is Source.HEADER
    assert chain.classify(LONG).source is Source.RULE
    assert chain.classify(STREAM).source is Source.BUILTIN


def test_where_nothing_speaks_the_default_does() -> None:
    verdict = Chain(rules=RULES, builtin=False, default=CallClass.MIXED).classify(STREAM)

    assert (verdict.call_class, verdict.source, verdict.reasons) == (CallClass.MIXED, Source.DEFAULT, ("default",))


def test_the_built_in_table_can_pass_on_to_the_default() -> None:
    assert Chain().classify(Features(surface="openai_audio")).source is Source.DEFAULT


def test_a_model_is_asked_after_what_callers_chose_on_purpose() -> None:
    chain = Chain(rules=RULES, judged=judged())

    assert chain.classify(TAGGED).source is Source.HEADER
    assert chain.classify(LONG).source is Source.RULE
    assert chain.classify(Features(surface="openai_chat", service_tier="flex")).source is Source.BUILTIN
    assert chain.classify(Features(surface="openai_completions", prompts=9)).source is Source.BUILTIN
    assert chain.classify(STREAM).source is Source.MODEL
    assert chain.classify(Features(surface="openai_chat", turns=1)).source is Source.MODEL


def test_a_model_takes_the_place_of_the_table_of_shapes_even_where_that_is_switched_off() -> None:
    with_table, without = Chain(judged=judged()), Chain(judged=judged(), builtin=False)
    tagged = Features(surface="openai_chat", service_tier="flex")

    assert with_table.classify(STREAM) == without.classify(STREAM)
    assert without.classify(tagged).source is Source.MODEL


def test_neither_table_nor_model_tells_of_a_recording() -> None:
    assert Chain(judged=judged()).classify(Features(surface="openai_audio")).source is Source.DEFAULT


def test_explain_lists_the_model_with_its_reasons_in_words() -> None:
    *_, builtin, model, default = Chain(rules=RULES, judged=judged()).explain(STREAM)

    assert builtin[:2] == (Source.BUILTIN, None)
    assert model[0] is Source.MODEL
    assert "streams: +2.0 for ttft" in model[2]
    assert default[0] is Source.DEFAULT


def test_more_names_of_the_class_header_are_understood() -> None:
    verdict = Chain(("x-lane",)).classify(Features(surface="openai_chat", headers={"x-lane": "bulk"}))

    assert verdict.call_class is CallClass.THROUGHPUT


def test_an_unknown_hint_changes_nothing_and_is_named() -> None:
    chain = Chain(rules=RULES)

    assert chain.classify(MISTAGGED) == chain.classify(LONG)
    assert [hint.header for hint in chain.ignored(MISTAGGED)] == ["x-twolane-class"]
    assert chain.ignored(TAGGED) == ()


def test_explain_lists_what_every_voice_said() -> None:
    header, rule, builtin, default = Chain(rules=RULES).explain(MISTAGGED)

    assert header[:2] == (Source.HEADER, None)
    assert header[2][0].startswith("x-twolane-class: fastest is ignored; expected ttft, ")
    assert rule[1] is not None
    assert rule[1].call_class is CallClass.MIXED
    assert rule[2] == ("rule_1: matches",)
    assert builtin[1] is not None
    assert builtin[1].reasons == ("no_stream", "long_prompt")
    assert default[1] is not None
    assert default[1].confidence == 0


def test_explain_leaves_out_a_table_that_is_switched_off() -> None:
    assert [source for source, _, _ in Chain(builtin=False).explain(STREAM)] == [
        Source.HEADER,
        Source.RULE,
        Source.DEFAULT,
    ]


def test_the_first_voice_with_a_verdict_in_explain_is_the_one_that_classifies() -> None:
    for chain in (Chain(rules=RULES), Chain(rules=RULES, judged=judged())):
        for features in (STREAM, LONG, TAGGED, MISTAGGED):
            assert next(verdict for _, verdict, _ in chain.explain(features) if verdict) == chain.classify(features)
