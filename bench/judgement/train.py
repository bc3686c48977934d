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
from classifiers.builtin import UNLEARNED
from classifiers.modelfile import written
from classifiers.training import Recipe, Rows, Vocabulary, balanced, fit
from classifiers.vector import LEANS, LOGARITHMS, NAMES, ONLY_WITH_ARRIVAL, TRUST, WORDS, vector
from router.models import BUILTIN_FILE

REQUEST = Recipe(kind="linear", strength=0.003, clip=4.0, folds=8)
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
        weights=balanced(labels, sources, POWER),
        groups=sources,
    )


def train(rows: Sequence[Row], recipe: Recipe = REQUEST) -> dict[str, Any]:
    """The document of `classifiers.learned`."""
    request = rows_of(learnable(rows))
    return fit(
        request,
        None,
        recipe,
        VOCABULARY,
        version=_version(request),
        only_with_arrival=ONLY_WITH_ARRIVAL,
        trained={"rows": len(request.labels), "sources": len(set(request.groups))},
    )


def _version(rows: Rows) -> str:
    digest = sha256()
    for label, row in zip(rows.labels, rows.vectors, strict=True):
        digest.update(f"{label} {' '.join(f'{value:.9g}' for value in row)}\n".encode())
    return f"builtin-{digest.hexdigest()[:8]}"


def main(out: Annotated[Path, typer.Option(help="The file to write.")] = BUILTIN_FILE) -> None:
    """Train the model that comes with the router."""
    console = Console(highlight=False, soft_wrap=True)
    where = data.folder()
    if where is None:
        raise typer.BadParameter(f"{data.VARIABLE} does not name a folder with prompts")
    document = train(data.load(where))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(written(document), encoding="utf-8")
    console.print(f"{out}: {document['version']}, {document['request']['figures']}")


if __name__ == "__main__":
    typer.run(main)
