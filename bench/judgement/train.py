"""`python -m bench.judgement.train`: the model that comes with the router, from the labelled calls to the file.

Deterministic: the same data give the same bytes. Two stages are trained, one for calls by themselves and one for calls
of clients that the router knows already; the second learns from replayed sessions and jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bench.judgement import data
from bench.judgement.data import Row
from bench.judgement.replay import replay
from bench.judgement.virtual import Replayed
from classifiers.builtin import UNLEARNED
from classifiers.modelfile import written
from classifiers.training import Recipe, Rows, Vocabulary, balanced, fit, fit_stage
from classifiers.vector import LEANS, LOGARITHMS, NAMES, ONLY_WITH_ARRIVAL, TRUST, WORDS, vector
from router.models import BUILTIN_FILE

REQUEST = Recipe(kind="linear", strength=0.003, clip=4.0, folds=8)
"""Of the stage for calls by themselves."""
ARRIVAL = Recipe(kind="linear", strength=0.003, clip=4.0, folds=8)
"""Of the stage for calls of known clients."""
CARRY = 0.3
"""Of a verdict on a known client, what was said of earlier calls of the program (see `classifiers.carry`)."""
ROUNDS = 2
"""In which every labelled call is replayed: in one a source has few clients, and what these happen to do decides."""
POWER = 0.3
"""A source weighs as its rows to this power: with 1 the largest would decide, with 0 a handful of rows."""
VOCABULARY = Vocabulary(names=NAMES, words=WORDS, logarithms=LOGARITHMS, leans=LEANS, trust=TRUST)


def learnable(rows: Iterable[Row]) -> list[Row]:
    """Without calls of APIs that say themselves what they are for: the model is never asked about these."""
    return [row for row in rows if row.features.surface not in UNLEARNED]


def rows_of(rows: Sequence[Row]) -> Rows:
    """As `classifiers.training` takes them; groups are sources."""
    labels, sources = [str(row.label) for row in rows], [row.source for row in rows]
    return Rows(
        vectors=[vector(row.features) for row in rows],
        labels=labels,
        weights=balanced(labels, sources, POWER) if labels else [],
        groups=sources,
    )


def known(replayed: Iterable[Replayed]) -> list[Row]:
    """Replayed calls of clients that had called before: those that the second stage is asked about."""
    return [
        row for row in learnable(each.row for each in replayed) if row.features.arrival and row.features.arrival.calls
    ]


def train(
    rows: Sequence[Row], replayed: Iterable[Replayed] = (), *, request: Recipe = REQUEST, arrival: Recipe = ARRIVAL
) -> dict[str, Any]:
    """The document of `classifiers.learned`; without replayed calls it has no second stage."""
    single, later = rows_of(learnable(rows)), rows_of(known(replayed))
    document = fit(
        single,
        None,
        request,
        VOCABULARY,
        version=_version(single, later),
        only_with_arrival=ONLY_WITH_ARRIVAL,
        trained={
            "rows": len(single.labels),
            "rows_with_arrival": len(later.labels),
            "sources": len(set(single.groups)),
        },
    )
    if later.labels:
        document["arrival"] = {**fit_stage(later, arrival, VOCABULARY), "carry": CARRY}
    return document


def _version(*parts: Rows) -> str:
    """The same for the same rows."""
    digest = sha256()
    for rows in parts:
        for label, row in zip(rows.labels, rows.vectors, strict=True):
            digest.update(f"{label} {' '.join(f'{value:.9g}' for value in row)}\n".encode())
    return f"builtin-{digest.hexdigest()[:8]}"


def main(out: Annotated[Path, typer.Option(help="The file to write.")] = BUILTIN_FILE) -> None:
    """Train the model that comes with the router."""
    console = Console(highlight=False, soft_wrap=True)
    where = data.folder()
    if where is None:
        raise typer.BadParameter(f"{data.VARIABLE} does not name a folder with prompts")
    document = train(data.load(where), replay(where, rounds=ROUNDS))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(written(document), encoding="utf-8")
    console.print(f"{out}: {document['version']}")
    for stage in ("request", "arrival"):
        console.print(f"  {stage}: {document[stage]['figures']}")


if __name__ == "__main__":
    typer.run(main)
