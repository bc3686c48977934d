"""What the router would have carried over from call to call, had it judged the replayed calls by these scores."""

from __future__ import annotations

from collections.abc import Sequence

from bench.judgement.compare import Scores
from bench.judgement.train import CARRY
from bench.judgement.virtual import Replayed
from classifiers.carry import LogOdds, carried, centred, taken_in
from classifiers.marks import Marks

_NO_MARKS = Marks()


def carried_over(calls: Sequence[Replayed], scores: Scores, temperature: float, share: float = CARRY) -> Scores:
    """Log-odds. `scores` are what each of the calls got by itself; calls of one client stand in the order in which they
    came. As `router.arrivals` does it: by program and stream, else by client and stream.
    """
    by_program: dict[tuple[int, int, int, bool], LogOdds] = {}
    by_client: dict[tuple[int, bool], LogOdds] = {}
    found: Scores = []
    for call, own in zip(calls, scores, strict=True):
        features = call.row.features
        marks, stream = features.recognised_by() or _NO_MARKS, features.stream
        program, client = (call.client, marks.system, marks.tools, stream), (call.client, stream)
        alone = centred(own, temperature)
        lately = by_program.get(program) or by_client.get(client)
        found.append(alone if lately is None else carried(alone, lately, share))
        by_program[program] = taken_in(by_program.get(program), alone)
        by_client[client] = taken_in(by_client.get(client), alone)
    return found
