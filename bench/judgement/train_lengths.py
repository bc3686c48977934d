"""Fits the model of output lengths: `python -m bench.judgement.train_lengths` writes classifiers/models/lengths.json.

Two linear quantile regressions on the base-2 logarithm of the tokens, by iteratively reweighted least squares with a
ridge, on standardised columns. `sklearn.linear_model.QuantileRegressor` solves the same by linear programming, with an
L1 penalty; it was not compared. Boosted trees are worse on unseen sources (docs/lengths.md).
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

import classifiers
from bench.judgement.answers import Answer, read_answers, weights
from bench.judgement.data import folder
from classifiers.lengths import COLUMNS, LengthModel, columns
from classifiers.modelfile import written
from router.fleet.output_lengths import OutputLengths

FILE: Final = Path(classifiers.__file__ or "").parent / "models" / "lengths.json"
QUANTILES: Final = {"p50": 0.5, "p90": 0.9}
FOLDS: Final = 12
_ROUNDS: Final = 40
_RIDGE: Final = 0.1
_NEAR: Final = 0.05
"""Errors below it, in octaves, count as that: where the loss has its kink."""
_DIGITS: Final = 4
_FIRST_GUESS: Final = {"centre": 1.0, "spread": 4.0, "tight_octaves": 0.7}
_CHOICES: Final = {"centre": (0.5, 1.0, 2.0, 4.0), "spread": (2.0, 4.0, 8.0), "tight_octaves": (0.5, 0.7, 1.0, 1.5)}
_SEED: Final = 4
_CALLS_OF_A_CLIENT: Final = 40
_SOURCES_OF_A_CLIENT: Final = 4


def fit_line(rows: Any, wanted: Any, trust: Any, share: float) -> tuple[float, list[float]]:
    """Intercept and weights of the columns as they are; `rows` (calls, columns), `wanted` and `trust` (calls,)."""
    mean, deviation = rows.mean(axis=0), rows.std(axis=0) + 1e-9
    table = np.column_stack([(rows - mean) / deviation, np.ones(len(rows))])
    penalty = np.eye(table.shape[1]) * _RIDGE * trust.sum()
    penalty[-1, -1] = 0.0
    found = np.zeros(table.shape[1])
    found[-1] = np.quantile(wanted, share)
    for _ in range(_ROUNDS):
        error = wanted - table @ found
        pull = trust * np.where(error >= 0, share, 1 - share) / np.maximum(np.abs(error), _NEAR)
        found = np.linalg.solve(table.T @ (table * pull[:, None]) + penalty, table.T @ (pull * wanted))
    scaled = found[:-1] / deviation
    return float(found[-1] - scaled @ mean), [float(weight) for weight in scaled]


def fit(calls: Sequence[Answer], answers: Mapping[str, float] | None = None) -> dict[str, Any]:
    """The document of a model; `answers`: how many it counts as, a first guess where that is left out."""
    rows = np.array([columns(call.features) for call in calls], float)
    wanted = np.log2([call.tokens for call in calls])
    trust = np.array(weights([call.source for call in calls]))
    lines = {name: fit_line(rows, wanted, trust, share) for name, share in QUANTILES.items()}
    return {
        "format": 1,
        "unit": "log2 of the tokens of one answer",
        "intercept": {name: round(lines[name][0], _DIGITS) for name in QUANTILES},
        "columns": [
            {"name": name, "words": words}
            | {quantile: round(lines[quantile][1][index], _DIGITS) for quantile in QUANTILES}
            for index, (name, words) in enumerate(COLUMNS.items())
        ],
        "answers": dict(answers or _FIRST_GUESS),
    }


def folds(calls: Sequence[Answer]) -> Iterator[tuple[list[Answer], list[Answer]]]:
    """What to fit and what to judge: each source is judged once, by a model that has not seen it."""
    sources = sorted({call.source for call in calls})
    for fold in range(FOLDS):
        held = set(sources[fold::FOLDS])
        if held:
            yield [call for call in calls if call.source not in held], [call for call in calls if call.source in held]


def one_thing(calls: Sequence[Answer]) -> list[list[Answer]]:
    """Clients that send calls of one source, in random order, a few dozen each."""
    chance = random.Random(_SEED)
    clients = []
    for source in sorted({call.source for call in calls}):
        own = [call for call in calls if call.source == source]
        chance.shuffle(own)
        clients += [own[start : start + _CALLS_OF_A_CLIENT] for start in range(0, len(own), _CALLS_OF_A_CLIENT)]
    return clients


def four_things(calls: Sequence[Answer]) -> list[list[Answer]]:
    """Clients that send calls of four sources in turn, at random."""
    parts = one_thing(calls)
    chance = random.Random(_SEED)
    chance.shuffle(parts)
    clients = []
    for start in range(0, len(parts), _SOURCES_OF_A_CLIENT):
        client = [call for part in parts[start : start + _SOURCES_OF_A_CLIENT] for call in part]
        chance.shuffle(client)
        clients.append(client)
    return clients


def pinball(share: float, error: float) -> float:
    """Loss of a quantile; `error` is what was, minus what was said (Koenker and Bassett, 1978)."""
    return max(share * error, (share - 1) * error)


def loss_with_history(clients: Sequence[Sequence[Answer]], models: Mapping[str, LengthModel]) -> float:
    """Both quantiles, in octaves, mean over the sources. A client is judged by the model of its first call's source."""
    by_source: dict[str, list[float]] = {}
    for client in clients:
        store = OutputLengths(models[client[0].source])
        for call in client:
            said = store.predict("", call.features)
            assert said is not None, call.features.surface
            pairs = zip((said.p50_tokens, said.p90_tokens), QUANTILES.values(), strict=True)
            loss = sum(pinball(share, math.log2(call.tokens / max(1, tokens))) for tokens, share in pairs)
            by_source.setdefault(call.source, []).append(loss)
            store.learn("", call.features, call.tokens)
    return sum(sum(losses) / len(losses) for losses in by_source.values()) / len(by_source)


def trained(calls: Sequence[Answer]) -> dict[str, Any]:
    """The shipped document. What the model counts as beside a history is chosen on sources that it has not seen."""
    unseen = {call.source: document for seen, held in folds(calls) for document in (fit(seen),) for call in held}
    clients = (one_thing(calls), four_things(calls))

    def loss(answers: dict[str, float]) -> float:
        models = {source: LengthModel.parse({**document, "answers": answers}) for source, document in unseen.items()}
        return sum(loss_with_history(each, models) for each in clients)

    choices = [dict(zip(_CHOICES, values, strict=True)) for values in itertools.product(*_CHOICES.values())]
    document = fit(calls, min(choices, key=loss))
    return {**document, "trained": {"rows": len(calls), "sources": len(unseen)}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FILE)
    out = parser.parse_args().out
    where = folder()
    if where is None:
        raise SystemExit("TWOLANE_DATA names no folder with prompts/")
    out.parent.mkdir(exist_ok=True)
    out.write_text(written(trained(read_answers(where))), encoding="utf-8")
    print(f"{out} written")


if __name__ == "__main__":
    main()
