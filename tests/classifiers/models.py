"""Small models and rows for the tests of what is learned, written by hand or drawn from a fixed seed."""

from __future__ import annotations

import random
from typing import Any

from classifiers.training import Rows, Vocabulary

NAMES = ("stream", "tools", "prompt_tokens", "turns")
WORDS = {"stream": "streams", "tools": "has tools", "prompt_tokens": "tokens of the prompt", "turns": "messages"}
VOCABULARY = Vocabulary(names=NAMES, words=WORDS, logarithms=frozenset({"prompt_tokens"}))


def feature(name: str, kind: str = "amount", usual: float = 0.0, **more: Any) -> dict[str, Any]:
    return {"name": name, "words": WORDS.get(name, name), "kind": kind, "usual": usual, **more}


def each(ttft: Any, mixed: Any, throughput: Any) -> dict[str, Any]:
    return {"ttft": ttft, "mixed": mixed, "throughput": throughput}


def linear_stage() -> dict[str, Any]:
    """Who streams is read; who has tools is a hop; the more tokens, the more of a batch."""
    return {
        "kind": "linear",
        "clip": 3.0,
        "features": [
            feature("stream", "flag", 0.5, transform="none", mean=0.5, scale=0.5, weights=each(2.0, 0.0, -2.0)),
            feature("tools", "flag", 0.0, transform="none", mean=0.0, scale=1.0, weights=each(0.0, 4.0, 0.0)),
            feature("prompt_tokens", usual=400.0, transform="log1p", mean=6.0, scale=2.0, weights=each(-1.0, 0.0, 1.0)),
        ],
        "intercept": each(0.0, -1.0, 0.0),
        "calibration": {"temperature": 1.0},
    }


def leaf(value: float) -> dict[str, Any]:
    return {"feature": [-1], "threshold": [0.0], "left": [-1], "right": [-1], "value": [value]}


def stump(place: int, threshold: float, low: float, high: float) -> dict[str, Any]:
    """A tree that asks one question; the values below and above stand at equal weight."""
    return {
        "feature": [place, -1, -1],
        "threshold": [threshold, 0.0, 0.0],
        "left": [1, -1, -1],
        "right": [2, -1, -1],
        "value": [(low + high) / 2, low, high],
    }


def tree_stage() -> dict[str, Any]:
    """Streams: `ttft`; tools: `mixed`; more than 1000 tokens and no stream: `throughput`."""
    both = {
        "feature": [0, 2, -1, -1, -1],
        "threshold": [0.5, 1000.0, 0.0, 0.0, 0.0],
        "left": [1, 2, -1, -1, -1],
        "right": [4, 3, -1, -1, -1],
        "value": [0.0, 0.5, -0.5, 1.5, -0.5],
    }
    return {
        "kind": "trees",
        "features": [feature("stream", "flag", 0.5), feature("tools", "flag"), feature("prompt_tokens", usual=400.0)],
        "base": each(0.0, -1.0, 0.25),
        "trees": each([stump(0, 0.5, -1.0, 1.0), stump(2, 50.0, 0.25, -0.25)], [stump(1, 0.5, 0.0, 3.0)], [both]),
        "calibration": {"temperature": 1.0},
    }


def document(request: dict[str, Any] | None = None, arrival: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "format": 1,
        "version": "by hand",
        "classes": ["ttft", "mixed", "throughput"],
        "request": linear_stage() if request is None else request,
        "arrival": arrival,
        "trained": {"rows": 0},
    }


def drawn_rows(count: int = 900, classes: tuple[str, ...] = ("ttft", "mixed", "throughput"), groups: int = 6) -> Rows:
    """Calls of each class in turn, told apart by noisy features; the same on every call."""
    chance = random.Random(7)
    vectors, labels = [], []
    for number in range(count):
        label = classes[number % len(classes)]
        stream = float(chance.random() < {"ttft": 0.85, "mixed": 0.4, "throughput": 0.1}[label])
        tools = float(chance.random() < {"ttft": 0.1, "mixed": 0.7, "throughput": 0.05}[label])
        tokens = float(int(chance.lognormvariate({"ttft": 5, "mixed": 7, "throughput": 6.5}[label], 1.2)))
        vectors.append([stream, tools, tokens, float(chance.randrange(1, 12))])
        labels.append(label)
    weights = [0.5 + number % 3 for number in range(count)]
    return Rows(vectors=vectors, labels=labels, weights=weights, groups=[f"g{n // 3 % groups}" for n in range(count)])
