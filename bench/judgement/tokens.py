"""Estimated prompt tokens against real tokenizers, before and after learning from the counts that engines report.

python -m bench.judgement.tokens
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from bench.judgement import vocabularies
from bench.judgement.data import folder, records
from classifiers.api import Features
from router.fleet.token_rate import TokenRates
from router.surfaces.calls import read_call
from router.surfaces.routes import find

_SEED: Final = 4
_CHAT_WORDS: Final = 30
_TOOL_WORDS: Final = 110
"""Tokens of the sentences that a template may add to a chat, and to one with tools; common ones are about as long."""


class Counted(NamedTuple):
    """One call, and what it is in each vocabulary."""

    source: str
    features: Features
    tokens: dict[str, int]


def counted(where: Path) -> list[Counted]:
    """All calls. Takes a minute."""
    names = (*vocabularies.FITTED, *vocabularies.OTHERS)
    found = []
    for record in records(where):
        body = record["body"]
        features = read_call(find("POST", record["path"]), orjson.dumps(body), record["headers"])
        tokens = {name: vocabularies.prompt_tokens(name, body) for name in names}
        found.append(Counted(record["source"], features, tokens))
    return found


def error(estimate: float, tokens: float) -> float:
    """Relative; at least one token is expected."""
    return abs(estimate - tokens) / max(1.0, tokens)


def _figures(errors: Iterable[float]) -> str:
    errors = sorted(errors)
    return f"{statistics.median(errors):7.1%} {errors[int(0.95 * len(errors))]:7.1%}"


def _median(call: Counted) -> float:
    return statistics.median(call.tokens[name] for name in vocabularies.FITTED)


def learned(calls: Sequence[Counted], name: str) -> tuple[list[float], list[float]]:
    """Errors without and with learning, over the second half of the calls in random order, all of one model whose
    template adds sentences of its own."""
    order = list(calls)
    random.Random(_SEED).shuffle(order)
    rates = TokenRates()
    before, after = [], []
    for number, call in enumerate(order):
        features = replace(call.features, model=name)
        tokens = call.tokens[name]
        if features.last_role:
            tokens += _TOOL_WORDS if features.tools else _CHAT_WORDS
        rates.correct(features)
        if number >= len(order) // 2:
            before.append(error(call.features.prompt_tokens, tokens))
            after.append(error(features.prompt_tokens, tokens))
        rates.learn(features, tokens)
    return before, after


def report(where: Path | None = None) -> list[str]:
    """Rows to print; one that says why where there are no data."""
    where = where or folder()
    if where is None:
        return ["prompt tokens: not measured, TWOLANE_DATA names no data"]
    calls = counted(where)
    rows = [
        f"Prompt tokens of {len(calls)} calls: relative error of the estimate, median and 95th percentile",
        "",
        f"{'vocabulary':24} {'estimate':>15} {'with a wordy template':>23} {'learned from usage':>20}",
    ]
    rows.append(f"{'median of the six':24} {_figures(error(c.features.prompt_tokens, _median(c)) for c in calls)}")
    for name in (*vocabularies.FITTED, *vocabularies.OTHERS):
        plain = _figures(error(call.features.prompt_tokens, call.tokens[name]) for call in calls)
        before, after = learned(calls, name)
        seen = "" if name in vocabularies.FITTED else " (not fitted)"
        rows.append(f"{name + seen:24} {plain} {_figures(before):>23} {_figures(after):>20}")
    rows += ["", f"{'source':24} {'calls':>5} {'error':>11} {'estimate / tokens':>22}"]
    for source in sorted({call.source for call in calls}):
        own = [call for call in calls if call.source == source]
        errors = _figures(error(call.features.prompt_tokens, _median(call)) for call in own)
        bias = statistics.median(call.features.prompt_tokens / _median(call) for call in own)
        rows.append(f"{source:24} {len(own):5} {errors} {bias:12.2f}")
    return rows


if __name__ == "__main__":
    print("\n".join(report()))
