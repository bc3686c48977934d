"""Predicted output lengths on sources that the model has not seen: losses, buckets, and what history adds.

python -m bench.judgement.lengths
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from bench.judgement.answers import BUCKETS, Answer, bucket, read_answers
from bench.judgement.data import folder
from bench.judgement.train_lengths import FILE, fit, folds, four_things, one_thing, pinball
from classifiers.lengths import LengthModel, Lengths
from router.fleet.output_lengths import OutputLengths

_NO_LIMIT_TOKENS: Final = 1024
"""What `use max_tokens` takes where none is given."""

Predict = Callable[[Answer], Lengths]


class Judged(NamedTuple):
    """One prediction and what came."""

    source: str
    said: Lengths
    tokens: int

    def loss(self, share: float) -> float:
        """Pinball loss in octaves: 1 is a factor of two."""
        said = self.said.p50_tokens if share == 0.5 else self.said.p90_tokens
        return pinball(share, math.log2(self.tokens / max(1, said)))

    def loss_tokens(self, share: float) -> float:
        said = self.said.p50_tokens if share == 0.5 else self.said.p90_tokens
        return pinball(share, self.tokens - said)


def alone(model: LengthModel) -> Predict:
    return lambda call: model.predict(call.features)


def by_limit(call: Answer) -> Lengths:
    limit = call.features.max_tokens or _NO_LIMIT_TOKENS
    return Lengths(limit, limit)


def by_global(calls: Sequence[Answer]) -> Predict:
    """Quantiles of all calls, each source counted the same."""
    per_source: dict[str, list[int]] = {}
    for call in calls:
        per_source.setdefault(call.source, []).append(call.tokens)
    pairs = sorted((tokens, 1 / len(each)) for each in per_source.values() for tokens in each)
    sizes, shares = [tokens for tokens, _ in pairs], np.cumsum([share for _, share in pairs])
    p50, p90 = (sizes[int(np.searchsorted(shares, share * shares[-1]))] for share in (0.5, 0.9))

    def predict(call: Answer) -> Lengths:
        limit = call.features.max_tokens or p90
        return Lengths(min(p50, limit), min(p90, limit))

    return predict


def judged(calls: Iterable[Answer], predict: Predict) -> list[Judged]:
    return [Judged(call.source, predict(call), call.tokens) for call in calls]


def with_history(
    models: Mapping[str, LengthModel], clients: Iterable[Sequence[Answer]], *, after: int = 0
) -> list[Judged]:
    """Each client's calls in turn, those from the `after`-th on judged, by the model of its first call's source."""
    found = []
    for client in clients:
        store = OutputLengths(models[client[0].source])
        for turn, call in enumerate(client):
            if turn >= after and (said := store.predict("", call.features)) is not None:
                found.append(Judged(call.source, said, call.tokens))
            store.learn("", call.features, call.tokens)
    return found


def by_source(rows: Sequence[Judged], of: Callable[[Judged], float]) -> float:
    """Mean over sources of the mean over calls."""
    each: dict[str, list[float]] = {}
    for row in rows:
        each.setdefault(row.source, []).append(of(row))
    return statistics.fmean(statistics.fmean(values) for values in each.values())


def figures(name: str, rows: Sequence[Judged]) -> str:
    hit = by_source(rows, lambda row: bucket(row.said.p50_tokens) == bucket(row.tokens))
    near = by_source(rows, lambda row: abs(bucket(row.said.p50_tokens) - bucket(row.tokens)) <= 1)
    covered = by_source(rows, lambda row: row.tokens <= row.said.p90_tokens)
    losses = [by_source(rows, lambda row: row.loss(0.5)), by_source(rows, lambda row: row.loss(0.9))]
    tokens = [by_source(rows, lambda row: row.loss_tokens(0.5)), by_source(rows, lambda row: row.loss_tokens(0.9))]
    return (
        f"{name:38} {losses[0]:7.3f} {losses[1]:7.3f} {tokens[0]:8.1f} {tokens[1]:8.1f} "
        f"{hit:7.2f} {near:7.2f} {covered:7.2f}"
    )


def report(where: Path | None = None) -> list[str]:
    """Rows to print; one that says why where there are no data."""
    where = where or folder()
    if where is None:
        return ["output lengths: not measured, TWOLANE_DATA names no data"]
    calls = read_answers(where)
    rows: dict[str, list[Judged]] = {}

    def add(name: str, more: list[Judged]) -> None:
        rows.setdefault(name, []).extend(more)

    shipped = json.loads(FILE.read_text(encoding="utf-8"))["answers"]
    unseen: dict[str, LengthModel] = {}
    for seen, held in folds(calls):
        model = LengthModel.parse(fit(seen, shipped))
        unseen |= dict.fromkeys({call.source for call in held}, model)
        add("use max_tokens (1024 where not given)", judged(held, by_limit))
        add("global median and 90th percentile", judged(held, by_global(seen)))
        add("model, the call alone", judged(held, alone(model)))
    for name, clients in (("one source", one_thing(calls)), ("four sources", four_things(calls))):
        for after in (0, 4, 19):
            add(f"{name} a client, from call {after + 1} on", with_history(unseen, clients, after=after))
    head = f"{'pinball loss':>53} {'in tokens':>17} {'bucket':>8} {'within':>7} {'below':>7}"
    under = f"{'':38} {'P50':>7} {'P90':>7} {'P50':>8} {'P90':>8} {'hit':>7} {'one':>7} {'P90':>7}"
    sources = len({call.source for call in calls})
    return [
        f"Output lengths of {len(calls)} calls of {sources} sources, each judged by a model that has not seen it;",
        f"losses in octaves and in tokens, buckets up to {', '.join(map(str, BUCKETS))} and more; means over sources",
        "",
        head,
        under,
        *(figures(name, more) for name, more in rows.items()),
        "",
        *_per_source(rows),
    ]


def _per_source(rows: dict[str, list[Judged]]) -> list[str]:
    alone_rows, history = rows["model, the call alone"], rows["one source a client, from call 5 on"]
    lines = [
        f"{'source':22} {'calls':>5} {'true P50 / P90':>15} {'said P50 / P90':>15} "
        f"{'bucket hit':>10} {'with history':>12}"
    ]
    for source in sorted({row.source for row in alone_rows}):
        own = [row for row in alone_rows if row.source == source]
        later = [row for row in history if row.source == source]
        true = np.quantile([row.tokens for row in own], (0.5, 0.9))
        said = (
            statistics.median(row.said.p50_tokens for row in own),
            statistics.median(row.said.p90_tokens for row in own),
        )
        hits = [_hits(own), _hits(later) if later else math.nan]
        lines.append(
            f"{source:22} {len(own):5} {true[0]:7.0f} / {true[1]:5.0f} {said[0]:7.0f} / {said[1]:5.0f} "
            f"{hits[0]:10.2f} {hits[1]:12.2f}"
        )
    return lines


def _hits(rows: Sequence[Judged]) -> float:
    return statistics.fmean(bucket(row.said.p50_tokens) == bucket(row.tokens) for row in rows)


if __name__ == "__main__":
    print("\n".join(report()))
