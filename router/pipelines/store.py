"""All tasks that are under way: each call is given to the one it belongs to, told what is left, and counted at its end.

Bounds: `capacity` named tasks and as many found ones, the hashes of `Threads`, what is `Shown`; a task that is
silent for `TTL_S` is over. Nothing of it outlives the process, and no text and no id of a caller is kept: names are
looked up by keyed hashes that no other process makes. After a restart hops go on as calls of which nothing is known.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from hashlib import blake2b
from secrets import token_bytes
from typing import Final

from classifiers.api import CallClass, Features
from classifiers.marks import Marks
from classifiers.tags import Tags
from router.pipelines import due
from router.pipelines.hop import Hop, Kind, Pipeline, Span
from router.pipelines.shown import Shown
from router.pipelines.siblings import Siblings
from router.pipelines.templates import Template, Templates
from router.pipelines.threads import Threads
from router.pipelines.traces import Traces
from router.pipelines.turns import TTL_S, is_over, is_turn
from router.pipelines.underway import UnderWay
from router.pipelines.words import Words

IDLE_S: Final = 30.0
"""After so long without a call a task that was not named is taken for complete; a later hop takes it up again."""
_CAPACITY: Final = 4_096
_NO_MARKS: Final = Marks()


def _nobody(pipeline: Pipeline) -> None:
    """Is told."""


class Pipelines:
    """Time is an argument. `on_close` is told of each task of several calls once it is over."""

    def __init__(self, capacity: int = _CAPACITY, key: bytes | None = None) -> None:
        self.on_close: Callable[[Pipeline], None] = _nobody
        self._capacity = capacity
        self._key = token_bytes(16) if key is None else key
        self._by_name: OrderedDict[int, Pipeline] = OrderedDict()
        self._named_open = UnderWay(TTL_S)
        self._found_open = UnderWay(IDLE_S)
        """Those that nobody named."""
        self.shown = Shown()
        self._threads = Threads()
        self._siblings = Siblings()
        self._traces = Traces()
        self._templates = Templates()
        self._words = Words()
        self._made = 0
        self._threads_made = 0

    def __len__(self) -> int:
        return len(self._named_open) + len(self._found_open)

    def open(self) -> tuple[Pipeline, ...]:
        """Tasks that are under way."""
        return (*self._named_open.all(), *self._found_open.all())

    # --- a call arrives

    def believes(self, client: str, tags: Tags) -> bool:
        """Whether what the client says of its hops may change anything; see `Words`."""
        return self._words.believed(hash(client), final=tags.hop == "final")

    def arrive(
        self,
        client: str,
        features: Features,
        call_class: CallClass,
        tags: Tags,
        now_s: float,
        *,
        recognise: bool = True,
    ) -> Hop:
        """A call has come in and was judged. It has to be `ended` in any case. `recognise`: it may belong to a task
        that nobody named."""
        if self._found_open or self._named_open:
            self.expire(now_s)
        marks = features.recognised_by() or _NO_MARKS
        owner = hash(client)
        program = hash((marks.system, marks.tools))
        hop = Hop(owner, program, now_s, stream=features.stream, tools=features.tools > 0)
        hop.call_class, hop.tags = call_class, tags
        if recognise:
            pipeline = self._recognised(client, hop, features, marks)
            self._threads.remember(owner, marks, hop)
        else:
            pipeline = self._said(client, hop)
        if pipeline is not None:
            self._join(hop, pipeline, now_s)
        return hop

    def _recognised(self, client: str, hop: Hop, features: Features, marks: Marks) -> Pipeline | None:
        """The task that it belongs to, and the history from which it goes on."""
        found = self._threads.earlier(hop.client, marks)
        if found is None and features.previous_response_id:
            earlier = self._threads.by_id(hop.client, features.previous_response_id)
            # Its history is kept by the server, so all that the call brings was added; a bare prompt is one message.
            found = (earlier, max(1, len(marks.roles))) if earlier is not None else None
        if found is not None:
            self._go_on(hop, *found, marks)
        else:
            self._threads_made += 1
            hop.thread = self._threads_made
        return self._pipeline_of(client, hop, found[0] if found is not None else None)

    def _go_on(self, hop: Hop, earlier: Hop, added: int, marks: Marks) -> None:
        hop.kind = Kind.TURN if is_turn(hop, earlier, added, marks) else Kind.NEXT
        hop.thread, hop.thread_hops = earlier.thread, earlier.thread_hops + 1
        hop.backend, hop.model = earlier.backend, earlier.model
        earlier.continued = True

    def _said(self, client: str, hop: Hop) -> Pipeline | None:
        """The task that its caller names, or one of its own where it has a deadline and no name."""
        tags = hop.tags
        if tags.task or tags.session:
            return self._named(client, hop)
        return self._new(hop, recognised=False) if tags.deadline_s is not None else None

    def _pipeline_of(self, client: str, hop: Hop, earlier: Hop | None) -> Pipeline | None:
        """The task that it belongs to; None: it is alone, as far as is known."""
        tags = hop.tags
        if tags.task or tags.session:
            return self._named(client, hop)
        if earlier is not None and hop.kind is Kind.NEXT:
            return self._of(earlier)
        if hop.kind is not Kind.TURN and hop.call_class is not CallClass.TTFT:
            other = self._traced(client, hop) if tags.trace else self._beside(hop)
            if other is not None:
                return self._of(other)
        return self._said(client, hop)

    def _beside(self, hop: Hop) -> Hop | None:
        """A call of the same task that no history connects with this one.

        Rows of a job are sent at once as well, so these are parts of a task only where a step of it came right before.
        """
        other = self._siblings.first_of_burst(hop)
        if other is not None:
            if other.pipeline is None:
                return None
            hop.kind = Kind.SIBLING
            return other
        other = self._siblings.step_before(hop)
        if other is not None:
            hop.kind = Kind.NEXT
        return other

    def _traced(self, client: str, hop: Hop) -> Hop | None:
        """A call of the same task that their trace connects with this one."""
        other = self._traces.before(hash((_address_of(client), hop.tags.trace)), hop)
        if other is not None:
            hop.kind = Kind.SIBLING if other.ended_s is None else Kind.NEXT
        return other

    def _named(self, client: str, hop: Hop) -> Pipeline:
        """The task with the name that the caller gave it, or a new one."""
        tags = hop.tags
        key = hash((_address_of(client), tags.task or tags.session))
        pipeline = self._by_name.get(key)
        if pipeline is not None and not is_over(pipeline, hop):
            if hop.kind is Kind.FIRST:
                hop.kind = Kind.SIBLING if pipeline.open else Kind.NEXT
            self._by_name.move_to_end(key)
            return pipeline
        if pipeline is not None:
            self._close(pipeline)
        pipeline = self._by_name[key] = self._new(hop, recognised=False)
        if len(self._by_name) > self._capacity:
            self._by_name.popitem(last=False)
        return pipeline

    def _of(self, earlier: Hop) -> Pipeline:
        """The task of a call from which another goes on; the call becomes its first hop where it was alone."""
        if earlier.pipeline is not None and not earlier.pipeline.closed:
            return earlier.pipeline
        adopted = earlier.pipeline is None
        pipeline = self._new(earlier, recognised=True)
        if adopted:
            earlier.pipeline = pipeline
            pipeline.started_s = earlier.arrived_s
            pipeline.hops = pipeline.steps = 1
            pipeline.manner = earlier.manner
            pipeline.streamed = int(earlier.stream)
            if earlier.span is not None:
                self._count(pipeline, earlier.span)
                earlier.span = None
            else:
                pipeline.open = 1
        return pipeline

    def _new(self, hop: Hop, *, recognised: bool) -> Pipeline:
        self._made += 1
        id_ = blake2b(b"%d" % self._made, digest_size=6, key=self._key).hexdigest()
        template = self._templates.of(hash((hop.client, hop.program)))
        pipeline = Pipeline(id_, hop.client, template, hop.arrived_s, recognised=recognised)
        peers = self._peers(pipeline)
        if len(peers) >= self._capacity:
            self._close(peers.oldest())
        peers.add(pipeline)
        return pipeline

    def _peers(self, pipeline: Pipeline) -> UnderWay:
        return self._found_open if pipeline.recognised else self._named_open

    def _join(self, hop: Hop, pipeline: Pipeline, now_s: float) -> None:
        tags = hop.tags
        hop.pipeline = pipeline
        hop.final = tags.hop == "final" or (not tags.hop and hop.kind is not Kind.TURN and _is_read(hop, pipeline))
        if not pipeline.open:
            if pipeline.steps:
                pipeline.template.went_on(pipeline.manner, now_s - pipeline.last_s)
            pipeline.steps += 1
            pipeline.manner = hop.manner
            pipeline.due_s = None
        if tags.deadline_s is not None:
            pipeline.deadline_s = pipeline.started_s + tags.deadline_s
        if tags.hops_left is not None:
            pipeline.hops_left, pipeline.hops_left_at = tags.hops_left, pipeline.steps
        pipeline.final_seen |= tags.hop == "final"
        pipeline.hops += 1
        pipeline.streamed += hop.stream
        pipeline.open += 1
        self._touch(pipeline, now_s)

    # --- when it should be complete

    def due(self, hop: Hop, now_s: float) -> float | None:
        """Instant; None: nobody set a deadline, or it is out of reach.

        Hops that run at the same time are due together, also those that come late.
        """
        pipeline = hop.pipeline
        if pipeline is None or pipeline.deadline_s is None:
            return None
        template = pipeline.template
        rest = _rest(hop, pipeline, template)
        pipeline.yields = due.out_of_reach(now_s, pipeline.deadline_s, rest, known=template.seen > 0)
        if pipeline.yields:
            return None
        found = due.due_s(now_s, pipeline.deadline_s, rest)
        if pipeline.due_s is not None:
            found = min(found, max(pipeline.due_s, now_s + rest.step_s))
        pipeline.due_s = hop.due_s = found
        return found

    # --- what becomes of it

    def ended(
        self,
        hop: Hop,
        now_s: float,
        *,
        complete: bool,
        first_s: float | None,
        prompt_tokens: int | None,
        cached_tokens: int | None,
        output_tokens: int | None,
        ids: Iterable[str] = (),
    ) -> None:
        """Exactly once. `first_s`: instant of its first token. `ids`: those that a later call may name."""
        hop.ended_s = now_s
        span = Span(
            hop.kind,
            hop.call_class,
            hop.arrived_s,
            hop.placed_s,
            first_s,
            now_s,
            hop.backend if hop.placed_s is not None else "",
            complete,
            prompt_tokens or 0,
            cached_tokens or 0,
            output_tokens or 0,
            hop.final,
        )
        for id_ in ids:
            self._threads.answered(hop.client, id_, hop)
        if complete:
            self._siblings.ended(hop, now_s)
        pipeline = hop.pipeline
        if pipeline is None:
            hop.span = span
            return
        self._count(pipeline, span)
        if complete and span.placed_s is not None:
            pipeline.template.took(now_s - span.placed_s)
        pipeline.open -= 1
        self._touch(pipeline, now_s)
        if pipeline.final_seen and not pipeline.open and (hop.tags.task or hop.tags.session):
            self._close(pipeline)

    def _count(self, pipeline: Pipeline, span: Span) -> None:
        self.shown.add(pipeline, span)
        pipeline.prompt_tokens += span.prompt_tokens
        pipeline.cached_tokens += span.cached_tokens
        pipeline.output_tokens += span.output_tokens
        pipeline.failed += not span.complete
        if span.placed_s is not None:
            pipeline.attained_s += span.ended_s - span.placed_s
        pipeline.last_s = max(pipeline.last_s, span.ended_s)

    # --- over

    def _touch(self, pipeline: Pipeline, now_s: float) -> None:
        pipeline.last_s = now_s
        if not pipeline.closed:
            self._peers(pipeline).touch(pipeline)

    def expire(self, now_s: float) -> None:
        """Close what has been silent for too long: at most one task of each kind, so that no call pays for all."""
        for peers in (self._found_open, self._named_open):
            silent = peers.silent(now_s)
            if silent is not None:
                self._close(silent)

    def _close(self, pipeline: Pipeline) -> None:
        if pipeline.closed:
            return
        self._peers(pipeline).remove(pipeline)
        self.shown.close(pipeline)
        pipeline.closed = True
        if not pipeline.open:
            pipeline.template.ended(pipeline.steps, pipeline.manner)
        if pipeline.several:
            self.on_close(pipeline)


def _address_of(client: str) -> str:
    """Its key or address. Hops of one task may come from several programs, so a name counts for all behind it."""
    return client.partition(" ")[0]


def _is_read(hop: Hop, pipeline: Pipeline) -> bool:
    """Whether somebody reads this answer, where nobody says so: it is streamed, and either the first of its task that
    is, or like those that came last in earlier tasks.

    Nothing before the answer tells more. Whether the model will call another tool or speak is not known to the program
    either; some say it by streaming.
    """
    if not hop.stream or not pipeline.hops:
        return False
    return not pipeline.streamed or pipeline.template.ends_with(hop.manner)


def _rest(hop: Hop, pipeline: Pipeline, template: Template) -> due.Rest:
    step_s = due.UNKNOWN_STEP_S if template.step_s is None else template.step_s
    gap_s = template.gap_s or 0.0
    if hop.final:
        left = 0.0
    elif pipeline.hops_left is not None:
        left = float(max(0, pipeline.hops_left - (pipeline.steps - pipeline.hops_left_at)))
    else:
        left = template.steps_left(pipeline.steps)
    quickest_s = (1.0 + left) * min(step_s, template.quickest_s or step_s)
    return due.Rest(step_s, left, gap_s, quickest_s)
