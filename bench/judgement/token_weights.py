"""How the weights of `classifiers.estimate` were found: `python -m bench.judgement.token_weights` prints them.

Least absolute relative deviation from the median count of six vocabularies, over the texts of the data folder that are
ASCII, and over what people paste into them: source code, hexadecimal, base64. By iteratively reweighted least squares
(Schlossmacher 1973), since a few odd texts must not bend the weights.
"""

from __future__ import annotations

import base64
import json
import random
import statistics
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.judgement import vocabularies
from bench.judgement.data import folder, records
from classifiers.estimate import ascii_counts

_SEED = 4
_PASTED = 60
"""Texts of each kind of pasted matter."""
_ROUNDS = 30
_SMALLEST_TOKENS = 4
"""Below it an error counts as if the text were this long."""

Floats = NDArray[np.float64]


def _spoken(body: Mapping[str, Any]) -> str:
    return "\n".join(vocabularies.texts_of({**body, "tools": None, "functions": None}))


def _texts() -> Iterator[tuple[str, str]]:
    """Each text as the estimate gets it, and as a template writes it."""
    where = folder()
    for record in records(where) if where else ():
        body = record["body"]
        text = _spoken(body)
        yield text, text
        if tools := body.get("tools"):
            yield json.dumps(tools, separators=(",", ":"), ensure_ascii=False), json.dumps(tools, ensure_ascii=False)
    chance = random.Random(_SEED)
    for _ in range(_PASTED):
        size = chance.randrange(200, 4000)
        for text in (base64.b64encode(chance.randbytes(size)).decode(), chance.randbytes(size).hex()):
            yield text, text
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[:_PASTED]:
        text = path.read_text(encoding="utf-8", errors="replace")[:6000]
        yield text, text


def fitted(counts: Floats, tokens: Floats) -> Floats:
    """Weights of the columns of `counts`, shape (texts, kinds), for these numbers of tokens."""
    scale = 1 / np.maximum(tokens, _SMALLEST_TOKENS)
    rows, wanted = counts * scale[:, None], tokens * scale
    found: Any = np.zeros(counts.shape[1])
    trust: Any = np.ones(len(tokens))
    for _ in range(_ROUNDS):
        root = np.sqrt(trust)
        found = np.linalg.lstsq(rows * root[:, None], wanted * root, rcond=None)[0]
        trust = 1 / np.maximum(np.abs(rows @ found - wanted), 0.01)
    return np.asarray(found, float)


def main() -> None:
    texts = sorted({pair for pair in _texts() if pair[0] and pair[0].isascii()})
    counts = np.array([ascii_counts(text.encode()) for text, _ in texts], float)
    medians = [statistics.median(vocabularies.count(name, seen) for name in vocabularies.FITTED) for _, seen in texts]
    tokens = np.array(medians, float)
    weights = fitted(counts, tokens)
    off = np.abs(counts @ weights - tokens) / tokens
    print(f"{len(texts)} texts; weights: {', '.join(f'{weight:.3f}' for weight in weights)}")
    print(f"error, whole texts: median {np.median(off):.1%}, 95th percentile {np.quantile(off, 0.95):.1%}")


if __name__ == "__main__":
    main()
