"""`python -m bench.judgement.evaluate`: how well unseen sources are judged, as tables, on the terminal and in the docs.

Every figure is of calls whose whole source was held out while the model was trained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Final

import typer
from rich.console import Console

from bench.judgement import data, lengths, sessions, tokens
from bench.judgement.carrying import carried_over
from bench.judgement.compare import Scores, borders, by_rule, calibrated, candidates
from bench.judgement.data import Row
from bench.judgement.reasons import REASONS
from bench.judgement.replay import replay
from bench.judgement.train import ARRIVAL, REQUEST, ROUNDS, VOCABULARY, known, learnable, rows_of
from classifiers.api import CallClass, Features
from classifiers.builtin import UNLEARNED
from classifiers.chain import Chain
from classifiers.judged import MIN_CONFIDENCE, Judged
from classifiers.learned import Feature, Learned, Probabilities, Stage
from classifiers.measures import accuracy, confusion, expected_calibration_error, likeliest, macro_accuracy
from classifiers.modelfile import CLASSES, softmax
from classifiers.training import Rows, held_out, temperature_of

DOCUMENT: Final = Path(__file__).resolve().parents[2] / "docs" / "judgement.md"
BEGIN, END = "<!-- make eval: begin -->", "<!-- make eval: end -->"
THRESHOLDS: Final = (0.0, 0.4, 0.5, 0.6, 0.7, 0.8)
_WEAK: Final = 0.6
_LARGE: Final = 100

Table = list[list[str]]


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one model under one way of holding out."""

    macro: float
    sources: float
    plain: float
    error: float

    @classmethod
    def of(cls, labels: Sequence[str], groups: Sequence[str], found: Sequence[Probabilities]) -> Figures:
        table = confusion(labels, [likeliest(row) for row in found])
        return cls(
            macro=macro_accuracy(table),
            sources=fmean(shares(labels, groups, [likeliest(row) for row in found]).values()),
            plain=accuracy(table),
            error=expected_calibration_error(labels, found),
        )

    def cells(self) -> list[str]:
        return [f"{self.macro:.3f}", f"{self.sources:.3f}", f"{self.plain:.3f}", f"{self.error:.3f}"]


def shares(labels: Sequence[str], groups: Sequence[str], judged: Sequence[str]) -> dict[str, float]:
    """Of each source the share that was judged right."""
    right: Counter[str] = Counter()
    for label, group, verdict in zip(labels, groups, judged, strict=True):
        right[group] += label == verdict
    return {group: right[group] / count for group, count in Counter(groups).items()}


def family(source: str) -> str:
    """Sources that were made alike share the first part of their name."""
    return source.partition("_")[0]


def groupings(rows: Rows) -> dict[str, tuple[Rows, int]]:
    """Ways of holding out, and in how many folds."""
    families = replace(rows, groups=[family(group) for group in rows.groups])
    return {
        "one source at a time": (rows, len(set(rows.groups))),
        "sources in 8 folds": (rows, 8),
        "sources in 5 folds": (rows, 5),
        "whole families of sources": (families, len(set(families.groups))),
        "families in 8 folds": (families, 8),
    }


@dataclass(slots=True)
class _Row:
    """A call whose scores are there already."""

    scores: Probabilities

    def effects(self, place: int) -> list[float]:
        return [0.0]

    def strongest(self, place: int, most: int) -> list[tuple[float, int]]:
        return [(0.0, 0)]

    def loudest(self, place: int, most: int) -> list[tuple[float, int]]:
        return [(0.0, 0)]


@dataclass(frozen=True, slots=True)
class _Known:
    """Stands in the place of a model: the vector is the number of the call."""

    scores: Scores

    def look(self, vector: Sequence[float]) -> _Row:
        return _Row(self.scores[int(vector[0])])


def chain_of(rows: Sequence[Row], scores: Scores, temperature: float, min_confidence: float) -> Chain:
    """The whole chain, with the scores of models that had not seen the source; calls are known by identity."""
    places = {id(row.features): float(place) for place, row in enumerate(rows)}
    feature = Feature(place=0, name="call", words="call", flag=False, usual=0.0)
    model = Learned("held out", Stage((feature,), _Known(scores), temperature), None, {})

    def vector(features: Features) -> list[float]:
        return [places[id(features)]]

    return Chain(judged=Judged(model, vector, min_confidence))


def final_table(rows: Sequence[Row], learned: Sequence[Row], scores: Scores, temperature: float) -> Table:
    """Of the chain's verdicts on all rows, whatever voice decided: by `min_confidence`."""
    labels = [str(row.label) for row in rows]
    found: Table = []
    for threshold in THRESHOLDS:
        chain = chain_of(learned, scores, temperature, threshold)
        verdicts = [chain.classify(row.features) for row in rows]
        unsure = sum(1 for verdict in verdicts if "unsure" in verdict.reasons)
        table = confusion(labels, [str(verdict.call_class) for verdict in verdicts])
        slow = table[CallClass.TTFT][CallClass.THROUGHPUT] / labels.count("ttft")
        found.append(
            [
                f"{threshold:g}" + (" (default)" if threshold == MIN_CONFIDENCE else ""),
                f"{macro_accuracy(table):.3f}",
                f"{accuracy(table):.3f}",
                f"{unsure / len(rows):.3f}",
                f"{slow:.3f}",
            ]
        )
    return found


def source_table(request: Rows, single: Sequence[Probabilities], later: Rows, second: Sequence[Probabilities]) -> Table:
    """A row for each source, the weakest first."""
    alone = shares(request.labels, request.groups, [likeliest(row) for row in single])
    context = shares(later.labels, later.groups, [likeliest(row) for row in second])
    classes = dict(zip(request.groups, request.labels, strict=True))
    taken: dict[str, Counter[str]] = {}
    for group, row in zip(request.groups, single, strict=True):
        taken.setdefault(group, Counter())[likeliest(row)] += 1
    counts = Counter(request.groups)
    return [
        [
            source,
            classes[source],
            str(counts[source]),
            f"{share:.2f}",
            f"{context[source]:.2f}" if source in context else "",
            ", ".join(
                f"{name} {taken[source][name]}" for name in CLASSES if taken[source][name] and name != classes[source]
            ),
            REASONS.get(source, "") if share < _WEAK and counts[source] > _LARGE else "",
        ]
        for source, share in sorted(alone.items(), key=lambda item: (item[1], item[0]))
    ]


def markdown(title: str, heads: Sequence[str], table: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"### {title}", "", f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in table), ""]


def report(where: Path, say: Console) -> list[str]:
    """All tables, as Markdown."""
    rows = data.load(where)
    learned = learnable(rows)
    texts = [borders(record) for record in data.records(where)]
    texts = [text for text, row in zip(texts, rows, strict=True) if row.features.surface not in UNLEARNED]
    request = rows_of(learned)
    heads = ["", "macro accuracy", "mean of sources", "accuracy", "calibration error"]

    compared = [["tools: mixed; else stream: ttft; else throughput", *_figures(request, by_rule(learned)).cells()]]
    for name, make in candidates(request, texts).items():
        say.print(f"comparing: {name}")
        compared.append([name, *_figures(request, make()).cells()])

    found: Table = []
    single: Scores = []
    for name, (grouped, folds) in groupings(request).items():
        say.print(f"holding out: {name}")
        scores = held_out(grouped, REQUEST, VOCABULARY, folds)
        single = single or scores
        found.append([f"request alone, {name}", *_figures(request, scores).cells()])

    say.print("replaying sessions and jobs")
    replayed = list(replay(where, rounds=ROUNDS))
    later, calls = rows_of(known(replayed)), sessions.of_known_clients(replayed)
    say.print("holding out: one source at a time, with arrival context")
    second = held_out(later, ARRIVAL, VOCABULARY, len(set(later.groups)))
    # Calibrated by what calls get by themselves, as the shipped model is.
    alone = temperature_of(second, later.labels, later.weights)
    carried = [softmax(row, 1.0) for row in carried_over(calls, second, alone)]
    found.append(["with arrival context, each call by itself", *_figures(later, second).cells()])
    found.append(["with arrival context", *Figures.of(later.labels, later.groups, carried).cells()])
    found.append(["... from the second call of a program on", *_of_known_programs(later, carried).cells()])

    temperature = temperature_of(single, request.labels, request.weights)
    return [
        *markdown("Models, sources in 8 folds", heads, compared),
        *markdown("The shipped model", heads, found),
        *markdown(
            "Verdicts of the whole chain, request alone",
            ["min_confidence", "macro accuracy", "accuracy", "unsure", "ttft calls that wait as throughput"],
            final_table(rows, learned, single, temperature),
        ),
        *markdown(
            "Sources, each unseen",
            ["source", "class", "calls", "request alone", "with arrival", "taken for", "why it cannot be told"],
            source_table(request, calibrated(single, request), later, carried),
        ),
        "### Hops of agent sessions",
        "",
        "```",
        *sessions.report(calls, [likeliest(row) for row in carried]),
        "```",
        "",
    ]


def amounts(where: Path, say: Console) -> list[str]:
    """Prompt tokens and output lengths (see docs/lengths.md), as they are printed."""
    say.print("counting tokens")
    counted = tokens.report(where)
    say.print("judging output lengths")
    return [
        *("### Prompt tokens", "", "```", *counted, "```", ""),
        *("### Output lengths", "", "```", *lengths.report(where), "```", ""),
    ]


def _figures(rows: Rows, scores: Scores) -> Figures:
    return Figures.of(rows.labels, rows.groups, calibrated(scores, rows))


def _of_known_programs(rows: Rows, found: Sequence[Probabilities]) -> Figures:
    """Calls of a client's program that had called before; of the others only the client's other doings are known."""
    place = VOCABULARY.names.index("program_calls")
    kept = [number for number, vector in enumerate(rows.vectors) if vector[place] > 0]
    return Figures.of(
        [rows.labels[number] for number in kept],
        [rows.groups[number] for number in kept],
        [found[number] for number in kept],
    )


def put_into(document: Path, lines: Sequence[str]) -> None:
    """Between the marks; raises `ValueError` where they are missing."""
    text = document.read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    if BEGIN not in text or END not in text:
        raise ValueError(f"{document} has no {BEGIN} ... {END}")
    document.write_text(f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"{END}{after}", encoding="utf-8")


def main(write: Annotated[bool, typer.Option(help="Put the tables into docs/judgement.md.")] = True) -> None:
    """How well sources that were not seen are judged: classes, hops of sessions, tokens of prompts and of answers."""
    say = Console(highlight=False, soft_wrap=True)
    where = data.folder()
    if where is None:
        raise typer.BadParameter(f"{data.VARIABLE} does not name a folder with prompts")
    lines = [*report(where, say), *amounts(where, say)]
    say.print("\n".join(lines), markup=False)
    if write:
        put_into(DOCUMENT, lines)


if __name__ == "__main__":
    typer.run(main)
