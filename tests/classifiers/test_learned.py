"""A model's document becomes probabilities and words, and a wrong document becomes an error that says where."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from classifiers.learned import Learned, ModelError
from classifiers.modelfile import softmax, written
from tests.classifiers.models import NAMES, document, each, feature, leaf, linear_stage, stump, tree_stage

STREAMED = [1.0, 0.0, 40.0, 2.0]
BULK = [0.0, 0.0, 5000.0, 1.0]
HOP = [0.0, 1.0, 700.0, 6.0]

numbers = st.floats(0, 1e6)
vectors = st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0]), numbers, numbers)


def parsed(stage: dict[str, Any], arrival: dict[str, Any] | None = None) -> Learned:
    return Learned.parse(document(stage, arrival), NAMES)


def error_of(wrong: object) -> ModelError:
    with pytest.raises(ModelError) as caught:
        Learned.parse(wrong, NAMES)  # type: ignore[arg-type]
    return caught.value


def test_a_linear_model_is_what_its_numbers_say() -> None:
    stream, tokens = 1.0, (math.log1p(40) - 6) / 2
    scores = (2 * stream - tokens, -1.0, -2 * stream + tokens)

    assert parsed(linear_stage()).judge(STREAMED) == pytest.approx(softmax(scores, 1.0))


def test_a_value_far_from_all_that_was_seen_counts_no_more_than_the_clip_allows() -> None:
    model = parsed(linear_stage())

    assert model.judge([0.0, 0.0, 1e9, 1.0]) == model.judge([0.0, 0.0, 1e12, 1.0])
    assert model.judge([0.0, 0.0, 1e4, 1.0]) != model.judge([0.0, 0.0, 1e3, 1.0])


@pytest.mark.parametrize(
    ("vector", "scores"),
    [
        (STREAMED, (1.0 + 0.25, -1.0, 0.25 - 0.5)),
        (BULK, (-1.0 - 0.25, -1.0, 0.25 + 1.5)),
        (HOP, (-1.0 - 0.25, 2.0, 0.25 - 0.5)),
        ([0.0, 0.0, 1000.0, 1.0], (-1.0 - 0.25, -1.0, 0.25 - 0.5)),  # a value that is the threshold goes left
        ([0.0, 0.0, 50.0, 1.0], (-1.0 + 0.25, -1.0, 0.25 - 0.5)),
    ],
)
def test_trees_arrive_at_the_leaf_that_the_vector_leads_to(
    vector: list[float], scores: tuple[float, float, float]
) -> None:
    assert parsed(tree_stage()).judge(vector) == pytest.approx(softmax(scores, 1.0))


def test_a_class_may_have_no_trees_and_a_tree_no_questions() -> None:
    stage = {**tree_stage(), "trees": each([leaf(0.5)], [], [stump(0, 0.5, 1.0, -1.0)])}

    assert parsed(stage).judge(STREAMED) == pytest.approx(softmax((0.5, -1.0, -0.75), 1.0))
    assert parsed({**stage, "trees": each([], [], [])}).judge(BULK) == pytest.approx(softmax((0.0, -1.0, 0.25), 1.0))


@given(vectors)
def test_probabilities_add_up_to_one(vector: tuple[float, ...]) -> None:
    for stage in (linear_stage(), tree_stage()):
        probabilities = parsed(stage).judge(vector)

        assert math.fsum(probabilities) == pytest.approx(1.0)
        assert all(0 <= share <= 1 for share in probabilities)


def _random_tree(chance: Any, leaves: int) -> dict[str, list[Any]]:
    """Any tree of that many leaves: a leaf is split until there are enough."""
    tree: dict[str, list[Any]] = {
        "feature": [-1],
        "threshold": [0.0],
        "left": [-1],
        "right": [-1],
        "value": [chance.uniform(-1, 1)],
    }
    for _ in range(leaves - 1):
        number = chance.choice([place for place, asked in enumerate(tree["feature"]) if asked < 0])
        size = len(tree["feature"])
        tree["feature"][number], tree["threshold"][number] = chance.randrange(3), float(chance.randrange(5))
        tree["left"][number], tree["right"][number] = size, size + 1
        for key, value in (("feature", -1), ("threshold", 0.0), ("left", -1), ("right", -1)):
            tree[key] += [value, value]
        tree["value"] += [chance.uniform(-1, 1), chance.uniform(-1, 1)]
    return tree


def _walked(tree: dict[str, list[Any]], taken: tuple[float, ...]) -> list[int]:
    path = [0]
    while tree["feature"][path[-1]] >= 0:
        number = path[-1]
        side = "left" if taken[tree["feature"][number]] <= tree["threshold"][number] else "right"
        path.append(tree[side][number])
    return path


@settings(max_examples=60)
@given(st.randoms(use_true_random=False), st.lists(st.tuples(*[st.integers(-1, 6)] * 3), min_size=1, max_size=8))
def test_all_trees_at_once_give_what_walking_each_would(chance: Any, taken: list[tuple[int, int, int]]) -> None:
    trees = {name: [_random_tree(chance, chance.randrange(1, 9)) for _ in range(7)] for name in each(0, 0, 0)}
    stage = {**tree_stage(), "features": [feature("turns"), feature("tools"), feature("stream")], "trees": trees}
    model = parsed(stage)

    for turns, tools, stream in taken:
        vector, asked = (float(stream), float(tools), 0.0, float(turns)), (float(turns), float(tools), float(stream))
        base = (0.0, -1.0, 0.25)
        paths = {name: [(tree, _walked(tree, asked)) for tree in grown] for name, grown in trees.items()}
        scores = [
            start + sum(tree["value"][path[-1]] for tree, path in paths[name])
            for start, name in zip(base, trees, strict=True)
        ]
        assert model.judge(vector) == pytest.approx(softmax((scores[0], scores[1], scores[2]), 1.0))

        for place, name in enumerate(trees):
            added = [0.0, 0.0, 0.0]
            for tree, path in paths[name]:
                for parent, child in itertools.pairwise(path):
                    added[tree["feature"][parent]] += tree["value"][child] - tree["value"][parent]
            seen = model.request.model.look(vector)
            effects = seen.effects(place)
            assert effects == pytest.approx(added, abs=0.005)
            order = sorted(range(3), key=lambda number: (-abs(effects[number]), number))
            assert seen.strongest(place, 2) == [(effects[number], number) for number in order[:2]]


def moved(model: Learned, vector: Sequence[float]) -> tuple[tuple[str, float], ...]:
    judgement = model.look(vector)
    return judgement.effects(judgement.place)


def test_the_words_say_what_moved_the_verdict_and_by_how_much() -> None:
    assert moved(parsed(linear_stage()), HOP)[0] == ("has tools", 4.0)

    (first, effect), (second, other) = moved(parsed(tree_stage()), BULK)
    assert (first, second) == ("tokens of the prompt (5000)", "streams (no)")
    assert (effect, other) == pytest.approx((1.0, 0.5), abs=0.001)


def test_effects_are_log_odds_of_the_calibrated_probabilities() -> None:
    cooler = parsed({**linear_stage(), "calibration": {"temperature": 2.0}})

    assert moved(cooler, HOP)[0] == ("has tools", 2.0)
    assert max(cooler.judge(HOP)) < max(parsed(linear_stage()).judge(HOP))


@pytest.mark.parametrize(
    ("vector", "place", "reasons"),
    [
        (STREAMED, 0, ("stream", "low_prompt_tokens")),
        (BULK, 2, ("no_stream", "high_prompt_tokens")),
        (HOP, 1, ("tools",)),
        (STREAMED, 2, ()),  # nothing speaks for it
    ],
)
def test_reasons_are_the_strongest_words_for_a_class(vector: list[float], place: int, reasons: tuple[str, ...]) -> None:
    assert parsed(linear_stage()).look(vector).reasons(place) == reasons


def test_at_most_three_reasons_are_given() -> None:
    features = [
        feature(name, transform="none", mean=0.0, scale=1.0, weights=each(1.0 + number, 0.0, 0.0))
        for number, name in enumerate(NAMES)
    ]
    judgement = parsed({**linear_stage(), "features": features}).look([1.0, 1.0, 1.0, 1.0])

    assert judgement.reasons(0) == ("turns", "prompt_tokens", "tools")


def test_what_a_call_has_and_what_it_lacks_are_weighed_against_each_other() -> None:
    """The effects of features that are zero are known beforehand; what is named is the same as by looking at all."""
    chance = random.Random(5)
    for _ in range(300):
        entries = [
            feature(
                name,
                transform="none",
                mean=chance.uniform(-1, 1),
                scale=chance.uniform(0.5, 2),
                weights=each(*[chance.gauss(0, 1) for _ in range(3)]),
            )
            for name in NAMES
        ]
        judgement = parsed({**linear_stage(), "features": entries}).look(
            [chance.choice([0.0, 1.0, 2.5]) for _ in NAMES]
        )
        for place in range(3):
            effects = judgement._seen.effects(place)
            loudest = judgement._seen.loudest(place, 3)
            assert [effect for effect, _ in loudest if effect > 0] == pytest.approx(
                [effect for effect in sorted(effects, reverse=True)[:3] if effect > 0]
            )
            assert all(effects[number] == pytest.approx(effect) for effect, number in loudest)
            order = sorted(range(len(effects)), key=lambda number: (-abs(effects[number]), number))
            for most in range(1, len(NAMES) + 1):
                strongest = [(effects[number], number) for number in order[:most]]
                assert judgement._seen.strongest(place, most) == strongest


def test_a_known_client_is_judged_by_the_second_stage() -> None:
    model = parsed(linear_stage(), {**linear_stage(), "intercept": each(9.0, 0.0, 0.0)})

    assert model.judge(BULK)[0] < 0.5
    assert model.judge(BULK, history=True)[0] > 0.9
    assert parsed(linear_stage()).judge(BULK, history=True) == parsed(linear_stage()).judge(BULK)


def test_a_model_is_the_same_after_it_was_written_and_read() -> None:
    text = written(document(tree_stage(), linear_stage()))

    assert Learned.parse(json.loads(text), NAMES) == Learned.parse(document(tree_stage(), linear_stage()), NAMES)
    assert written(json.loads(text)) == text
    assert sum('"name": "stream"' in line and line.count('"name"') == 1 for line in text.splitlines()) == 2


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("key", "says", "change"),
    [
        ("format", "expected 1; train", lambda d: d.update(format=2)),
        ("format", "expected 1; train", lambda d: d.update(format=True)),
        ("format", "missing", lambda d: d.pop("format")),
        ("version", "printable", lambda d: d.update(version="a\nb")),
        ("version", "120", lambda d: d.update(version="a" * 121)),
        ("classes", "ttft, mixed, throughput", lambda d: d["classes"].reverse()),
        ("request", "expected an object", lambda d: d.update(request=[])),
        ("request.kind", "linear or trees", lambda d: d["request"].update(kind="forest")),
        ("request.kind", "linear or trees", lambda d: d["request"].update(kind=["linear"])),
        ("request.features", "expected 1 to", lambda d: d["request"].update(features=[])),
        ("request.features", "expected 1 to", lambda d: d["request"]["features"].extend([{}] * 600)),
        ("request.features[1].name", "'x' is no feature", lambda d: d["request"]["features"][1].update(name="x")),
        ("request.features", "named twice", lambda d: d["request"]["features"][1].update(name="stream")),
        ("request.features[0].words", "printable", lambda d: d["request"]["features"][0].update(words="")),
        ("request.features[0].kind", "flag or amount", lambda d: d["request"]["features"][0].update(kind="x")),
        ("request.calibration.temperature", "0.01", lambda d: d["request"]["calibration"].update(temperature=0)),
        ("arrival.base", "missing", lambda d: d["arrival"].pop("base")),
        ("arrival.base.mixed", "between", lambda d: d["arrival"]["base"].update(mixed=math.nan)),
        ("arrival.base.mixed", "between", lambda d: d["arrival"]["base"].update(mixed=-math.inf)),
        ("arrival.base.mixed", "a number", lambda d: d["arrival"]["base"].update(mixed="1")),
        ("arrival.base.mixed", "between", lambda d: d["arrival"]["base"].update(mixed=10**400)),
        ("arrival.trees.mixed", "expected 0 to", lambda d: d["arrival"]["trees"].update(mixed=[leaf(0)] * 300)),
        ("arrival.trees.mixed", "an array", lambda d: d["arrival"]["trees"].update(mixed={})),
    ],
)
def test_a_wrong_document_is_refused_with_its_place(key: str, says: str, change: Change) -> None:
    wrong = document(linear_stage(), tree_stage())
    change(wrong)
    error = error_of(wrong)

    assert error.key == key
    assert says in error.message


@pytest.mark.parametrize(
    ("key", "says", "change"),
    [
        ("", "child of exactly one", {"left": [0, -1, -1]}),
        ("", "child of exactly one", {"right": [1, -1, -1]}),
        ("", "child of exactly one", {"feature": [-1, -1, -1]}),
        ("", "after its parent", {"feature": [0, 0, -1, -1, -1], "left": [3, 1, -1, -1, -1]}),
        (".left[0]", "-1 to 2", {"left": [3, -1, -1]}),
        (".left", "expected 3 to 3 entries, got 2", {"left": [1, -1]}),
        (".feature[0]", "-1 to 2", {"feature": [3, -1, -1]}),
        (".feature[0]", "-1 to 2", {"feature": [0.0, -1, -1]}),
        (".feature", "expected 1 to 15 entries, got 17", {"feature": [-1] * 17}),
        (".threshold[0]", "a number", {"threshold": [None, 0, 0]}),
        (".value[2]", "between", {"value": [0, 0, 1e9]}),
    ],
)
def test_nodes_that_make_no_tree_are_refused(key: str, says: str, change: dict[str, list[Any]]) -> None:
    wrong = document(tree_stage())
    tree = {**stump(0, 0.5, -1.0, 1.0), **change}
    if len(tree["feature"]) == 5:  # node 1 is its own child's child
        tree |= {"threshold": [0.0] * 5, "right": [2, 4, -1, -1, -1], "value": [0.0] * 5}
    wrong["request"]["trees"]["ttft"] = [tree]
    error = error_of(wrong)

    assert error.key == f"request.trees.ttft[0]{key}"
    assert says in error.message


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("scale", {"scale": 0}),
        ("mean", {"mean": "0"}),
        ("transform", {"transform": "sqrt"}),
        ("weights.ttft", {"weights": {}}),
        ("weights.ttft", {"weights": each(1e6, 0, 0)}),
    ],
)
def test_a_wrong_weight_is_refused(key: str, change: dict[str, Any]) -> None:
    wrong = document()
    wrong["request"]["features"][2].update(change)

    assert error_of(wrong).key == f"request.features[2].{key}"


@pytest.mark.parametrize("nothing", [None, [], "model", 1])
def test_what_is_no_object_is_no_model(nothing: object) -> None:
    assert error_of(nothing).key == "the document"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.data())
def test_any_change_of_a_document_gives_a_model_or_an_error_of_ours(data: st.DataObject) -> None:
    changed: Any = document(tree_stage(), linear_stage())
    at = changed
    while isinstance(at, (dict, list)) and at:
        key: Any = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if data.draw(st.booleans()):
            at[key] = data.draw(json_values)
            break
        at = at[key]
    try:
        model = Learned.parse(changed, NAMES)
    except ModelError:
        return
    assert math.fsum(model.judge(HOP)) == pytest.approx(1.0)
