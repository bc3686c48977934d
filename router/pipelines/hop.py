"""One call as a hop of a task, and the task itself. Written by the store alone; times in seconds of one clock."""

from __future__ import annotations

from collections import deque
from enum import StrEnum
from typing import Final, NamedTuple

from classifiers.api import CallClass
from classifiers.tags import NO_TAGS, Tags
from policies.api import ClassRules
from router.pipelines.templates import Template

KEPT_SPANS: Final = 256
"""Newest hops of a task that can be shown."""


class Kind(StrEnum):
    """Why a call is taken for part of what it is part of."""

    FIRST = "first"
    """Nothing was seen of the task before."""
    NEXT = "next"
    """It goes on from an answer, and a program sent it."""
    SIBLING = "sibling"
    """One of several that were sent at once."""
    TURN = "turn"
    """It goes on from an answer that somebody has read: a new task of the same conversation."""


class Span(NamedTuple):
    """One hop that has ended, for showing. Tokens as counted; 0 where nobody did."""

    kind: Kind
    call_class: CallClass
    arrived_s: float
    placed_s: float | None
    first_s: float | None
    """When its first token came; of an answer in one piece, when it would have come, as far as that is known."""
    ended_s: float
    backend: str
    complete: bool
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    final: bool


class Pipeline:
    """One task. Bounded: counts, and the newest `KEPT_SPANS` hops."""

    __slots__ = (
        "attained_s",
        "cached_tokens",
        "client",
        "closed",
        "deadline_s",
        "due_s",
        "failed",
        "final_seen",
        "hops",
        "hops_left",
        "hops_left_at",
        "id",
        "last_s",
        "manner",
        "open",
        "output_tokens",
        "prompt_tokens",
        "recognised",
        "spans",
        "started_s",
        "steps",
        "streamed",
        "template",
        "yields",
    )

    def __init__(self, id_: str, client: int, template: Template, started_s: float, *, recognised: bool) -> None:
        self.id = id_
        """Made here, of hashes; what a caller named it is not kept."""
        self.client = client
        self.template = template
        """Of tasks of its client that began with the same program."""
        self.started_s = started_s
        self.recognised = recognised
        """Nobody named it."""
        self.last_s = started_s
        """When something of it came or ended last."""
        self.open = 0
        self.hops = 0
        self.steps = 0
        """Hops that ran at the same time count as one."""
        self.manner = 0
        """Of the newest step; see `Hop.manner`."""
        self.streamed = 0
        self.attained_s = 0.0
        """Seconds that backends worked for it."""
        self.deadline_s: float | None = None
        """Instant; None: nobody set one."""
        self.due_s: float | None = None
        """Of the calls that were sent at once last: all of them are due together."""
        self.hops_left: int | None = None
        self.hops_left_at = 0
        """Number of the step in which that was said."""
        self.final_seen = False
        """The caller said so of one of its hops."""
        self.yields = False
        """Its deadline is out of reach, so it lets others go first."""
        self.failed = 0
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.output_tokens = 0
        self.spans: deque[Span] = deque(maxlen=KEPT_SPANS)
        self.closed = False

    @property
    def several(self) -> bool:
        """Whether it is more than one call by itself, as far as can be told."""
        return self.hops > 1 or not self.recognised


class Hop:
    """One call, from its arrival on; kept after its end as what a later call may go on from."""

    __slots__ = (
        "arrived_s",
        "backend",
        "call_class",
        "client",
        "continued",
        "due_s",
        "ended_s",
        "final",
        "kind",
        "model",
        "pipeline",
        "placed_s",
        "program",
        "promised",
        "span",
        "stream",
        "tags",
        "thread",
        "thread_hops",
        "tools",
    )

    def __init__(self, client: int, program: int, arrived_s: float, *, stream: bool, tools: bool) -> None:
        self.client = client
        self.program = program
        self.arrived_s = arrived_s
        self.stream = stream
        self.tools = tools
        self.call_class = CallClass.MIXED
        self.kind = Kind.FIRST
        self.pipeline: Pipeline | None = None
        """None: a call by itself, as long as none goes on from it."""
        self.tags: Tags = NO_TAGS
        self.final = False
        self.due_s: float | None = None
        self.promised: ClassRules | None = None
        """By what it will be judged; None: nothing was decided."""
        self.placed_s: float | None = None
        self.ended_s: float | None = None
        self.backend = ""
        """That answered it, and where the next call of its thread is at home."""
        self.model: str | None = None
        """As that backend calls it."""
        self.continued = False
        self.thread = 0
        """A number that all calls of one history share."""
        self.thread_hops = 0
        """Calls in its history before it."""
        self.span: Span | None = None
        """Once it has ended, as long as it belongs to no task."""

    @property
    def deadline_s(self) -> float | None:
        """Instant at which its task should have ended; None: nobody said."""
        return None if self.pipeline is None else self.pipeline.deadline_s

    def placed(self, backend: str, model: str | None, now_s: float) -> None:
        """It goes to this backend, which calls the model so."""
        self.placed_s, self.backend, self.model = now_s, backend, model

    @property
    def manner(self) -> int:
        """By what it is compared with steps of earlier tasks: its program, and whether it is streamed."""
        return hash((self.program, self.stream))

    @property
    def goes_on(self) -> bool:
        """Whether other calls of its task were seen."""
        return self.pipeline is not None and self.kind in (Kind.NEXT, Kind.SIBLING)

    @property
    def in_loop(self) -> bool:
        """Whether it goes on from a history, and a program sent it."""
        return self.thread_hops > 0 and self.kind is Kind.NEXT

    @property
    def is_hop(self) -> bool:
        """Whether it is known to be part of a task of several calls."""
        return self.goes_on or (self.pipeline is not None and not self.pipeline.recognised)
