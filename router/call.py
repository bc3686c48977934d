"""One call on its way through the gateway: what is known of it so far."""

from __future__ import annotations

from http import HTTPStatus

from classifiers.api import CallClass, Features, Source, Verdict
from router.access.keys import Fields, Visit
from router.applicant import Placed
from router.arrivals import Presence
from router.fleet.evidence import NOTHING_SEEN, Answered
from router.fleet.ledger import Outcome
from router.fleet.prefixes import Prefix
from router.intake import Intake, Judged
from router.observe.facts import CallFacts, JudgedCall, Server
from router.observe.foretold import Predicted
from router.observe.trace_context import Trace, read
from router.pipelines import Hop
from router.plan import Plan
from router.surfaces import SURFACES
from router.surfaces.api import Surface
from router.watch import StreamWatch, Watch
from router.wire.exchange import Exchange

_NOT_JUDGED = Verdict(call_class=CallClass.MIXED, confidence=0.0, source=Source.DEFAULT, reasons=("not_classified",))
_NO_FEATURES = Features(surface="")
_FIRST_GUESS = SURFACES["openai_chat"]
"""The client API, until the path has been looked at."""
_LONGEST_MODEL = 200
"""Characters of a name that somebody made up."""


class Call:
    """Written by the gateway as the call goes on; turned into `CallFacts` at its end."""

    __slots__ = (
        "_client",
        "affinity_key",
        "arrived_s",
        "cors",
        "decided_s",
        "decoded",
        "dial_s",
        "exchange",
        "features",
        "generates",
        "headed_s",
        "hop",
        "known",
        "outcome",
        "placed",
        "placed_s",
        "plan",
        "prefix",
        "presence",
        "request_id",
        "retries",
        "stalls",
        "status",
        "surface",
        "target",
        "trace",
        "verdict",
        "visit",
        "watch",
    )

    def __init__(self, exchange: Exchange, plan: Plan, request_id: str, arrived_s: float) -> None:
        self.exchange = exchange
        self.plan = plan
        self.surface: Surface = _FIRST_GUESS
        self.target = exchange.path
        """The path under which backends know the API."""
        self.visit: Visit | None = None
        """Of the key that came with it; None where no keys are configured."""
        self.cors: Fields = []
        """What a browser is told of other origins."""
        self.affinity_key = ""
        self.decoded = False
        """The content codings of the body were undone."""
        self.request_id = request_id
        self.arrived_s = arrived_s
        self.features = _NO_FEATURES
        self.verdict = _NOT_JUDGED
        self.generates = False
        """It was classified, since an engine has to work on it."""
        self.known: Judged | None = None
        """All that was found out when it was judged; None until then."""
        self.prefix: Prefix | None = None
        """Its prompt, as far as backends may have it in their caches."""
        self.hop: Hop | None = None
        """What it is of a task of several calls."""
        self._client: str | None = None
        self.presence: Presence | None = None
        """Among the calls of its client; None until it was read."""
        self.decided_s = self.placed_s = arrived_s
        self.placed: Placed | None = None
        self.trace: Trace | None = None
        """With our own span; None: calls are not traced."""
        self.dial_s: float | None = None
        """Until a connection to the backend stood; 0: one was kept. None: none ever stood."""
        self.headed_s: float | None = None
        """When the head of the backend's answer was there."""
        self.watch: Watch | None = None
        self.status = self.retries = 0
        self.outcome = "refused"
        self.stalls = 0
        """Times that the client did not read what there was."""

    def judged_generating(self, judged: Judged) -> None:
        """An engine has to work on it, and it is known what it is."""
        self.generates = True
        self.known, self.verdict, self.presence = judged, judged.verdict, judged.presence
        self.prefix, self.hop = judged.prefix, judged.hop

    @property
    def judged(self) -> bool:
        """Whether it came so far that it has a class."""
        return self.verdict is not _NOT_JUDGED

    @property
    def reason(self) -> str:
        """Why it is of this class, and why it went where it went: `builtin:stream+short_prompt; preferred_lane`."""
        why = f"{self.verdict.source}:{'+'.join(self.verdict.reasons)}"
        return f"{why}; {self.placed.reason}" if self.placed is not None else why

    @property
    def client(self) -> str:
        """Whose calls are remembered together: a key's or an address's, and of these one program's.

        Asked for once it has been read.
        """
        if self._client is None:
            if self.visit is not None:
                owner = self.visit.name
            else:
                owner = self.plan.forwarding.client(self.exchange.raw_headers, self.exchange.peer)
            self._client = f"{owner} {self.features.headers.get('user-agent', '')}"
        return self._client

    def sent(self, placed: Placed) -> None:
        """It goes to a backend."""
        self.placed = placed
        if self.prefix is not None:
            self.prefix.sent(placed.backend.name)
        if self.hop is not None:
            self.hop.placed(placed.backend.name, placed.model, self.placed_s)

    def off_backend(self, *, complete: bool) -> None:
        """It is over there, so its prompt is in the cache; or the backend did not begin on it."""
        if self.prefix is None:
            return
        if self.watch is None or self.status >= 400:
            self.prefix.turned_away()
            return
        self.prefix.ended(
            prompt_tokens=self.reported_prompt_tokens,
            cached_tokens=self.watch.progress.cached_tokens,
            output_tokens=self.output_tokens,
            complete=complete,
        )

    def leave(self, now_s: float) -> None:
        """Tell what became of it to those who keep count of its client."""
        if self.presence is None:
            return
        self.presence.ended(
            now_s,
            left=self.outcome == "client_gone",
            first_token_seen=self.watch is not None and self.watch.first_token_s is not None,
            output_tokens=self.output_tokens,
        )

    def headers(self, now_s: float) -> list[tuple[bytes, bytes]]:
        """Response headers that are ours, as far as `expose` lets clients see them."""
        ours = [(b"X-Request-Id", self.request_id.encode("latin-1")), *self.cors]
        if self.visit is not None:
            ours += self.visit.headers(now_s)
        expose = self.plan.settings.expose
        if expose == "none" or not self.judged:
            return ours
        ours.append((b"X-Twolane-Class", self.verdict.call_class.encode()))
        if expose == "full":
            if self.placed is not None:
                ours.append((b"X-Twolane-Backend", self.placed.backend.settings.name.encode()))
            ours.append((b"X-Twolane-Reason", self.reason.encode("ascii", "replace")))
            ours.append((b"X-Twolane-Queue-Ms", b"%d" % ((self._placed_or(now_s) - self.decided_s) * 1e3)))
            ours.append((b"Server-Timing", self._server_timing(now_s)))
        return ours

    def _server_timing(self, now_s: float) -> bytes:
        """Milliseconds for reading and classifying, in the line, and until the backend's head."""
        placed_s = self._placed_or(now_s)
        return b"classify;dur=%.3f, queue;dur=%.3f, upstream;dur=%.3f" % (
            (self.decided_s - self.arrived_s) * 1e3,
            (placed_s - self.decided_s) * 1e3,
            (now_s - placed_s) * 1e3,
        )

    def _placed_or(self, now_s: float) -> float:
        """When it left the line; now, if it has not."""
        return self.placed_s if self.placed is not None else now_s

    @property
    def reported_prompt_tokens(self) -> int | None:
        """As the engine has counted them; None: it did not say."""
        return self.watch.progress.prompt_tokens if self.watch is not None else None

    @property
    def output_tokens(self) -> int | None:
        """Of the answer so far, as the engine or else the stream has counted them; None: there was nothing to count."""
        progress = self.watch.progress if self.watch is not None else None
        return (progress.output or None) if progress is not None else None

    def hop_ended(self, intake: Intake, now_s: float) -> None:
        """Tell what became of it to the task that it is a hop of."""
        if self.hop is None:
            return
        watch = self.watch
        progress = watch.progress if watch is not None else None
        intake.pipelines.ended(
            self.hop,
            now_s,
            complete=self.outcome == "completed",
            first_s=watch.first_token_s if watch is not None else None,
            prompt_tokens=progress.prompt_tokens if progress is not None else None,
            cached_tokens=progress.cached_tokens if progress is not None else None,
            output_tokens=self.output_tokens,
            ids=(progress.response_id,) if progress is not None and self._may_be_named(progress.response_id) else (),
        )

    def _may_be_named(self, response_id: str) -> bool:
        """Whether a later call may say that it goes on from this answer; only one API has a field for that."""
        return bool(response_id) and self.surface.name == "openai_responses"

    def answered(self) -> Answered:
        """What the answer tells of the backend."""
        watch = self.watch
        if watch is None or self.stalls:  # a client that reads slowly slows the stream down
            return NOTHING_SEEN
        progress = watch.progress
        return Answered(
            last_s=watch.last_token_s if isinstance(watch, StreamWatch) else None,
            prompt_tokens=progress.prompt_tokens,
            cached_tokens=progress.cached_tokens,
            output_tokens=progress.output or None,
            prompt_s=progress.prompt_s,
            decode_s=progress.decode_s,
        )

    def tokens_taken(self) -> int | None:
        """What counts against the limit of its key; None: the engine has not said, so the estimate has to do."""
        if self.placed is None or self.status >= 400:
            return 0
        progress = self.watch.progress if self.watch is not None else None
        if progress is None:
            return None
        prompt = progress.prompt_tokens
        return progress.output + (self.features.prompt_tokens if prompt is None else prompt)

    def facts(self, now_s: float) -> CallFacts:
        watch = self.watch
        progress = watch.progress if watch is not None else None
        first_s = watch.first_token_s if watch is not None else None
        return CallFacts(
            request_id=self.request_id,
            surface=self.surface.name,
            call_class=self.verdict.call_class if self.judged else "none",
            source=self.verdict.source,
            reason=self.reason,
            backend=self.placed.backend.name if self.placed is not None else "",
            model=(self.features.model or "")[:_LONGEST_MODEL],
            stream=self.features.stream,
            outcome=self.outcome,
            status=self.status,
            decide_s=self.decided_s - self.arrived_s,
            queue_s=self.placed_s - self.decided_s,
            ttft_s=first_s - self.arrived_s if first_s is not None else None,
            complete_s=now_s - self.arrived_s,
            tpot_s=watch.tpot_s() if watch is not None else None,
            prompt_tokens=progress.prompt_tokens if progress is not None else None,
            cached_tokens=progress.cached_tokens if progress is not None else None,
            output_tokens=self.output_tokens,
            retries=self.retries,
            key=self.visit.name if self.visit is not None else "",
            stalls=self.stalls,
            predicted=self._predicted(),
            lane=self.placed.backend.lane if self.placed is not None else "",
            trace=self.trace if self.trace is not None else read(self.exchange.header("traceparent")),
            connect_s=self.dial_s,
            first_byte_s=self.headed_s - self.arrived_s if self.headed_s is not None else None,
            flow=watch.gaps.flow() if isinstance(watch, StreamWatch) else None,
        )

    def _predicted(self) -> Predicted | None:
        running = self.placed.lease.running if self.placed is not None else None
        if running is None or running.predicted is None:
            return None
        waited_s, seen = self.placed_s - self.arrived_s, running.predicted
        return Predicted(waited_s + seen.first_s, seen.tpot_s, waited_s + seen.whole_s)

    def judged_as(self) -> JudgedCall | None:
        """What was decided of it and why; None where nothing was judged: refused before, or it needs no slot."""
        known = self.known
        if known is None:
            return None
        return JudgedCall(
            features=self.features,
            verdict=self.verdict,
            rules=(self.hop.promised if self.hop is not None else None) or self.plan.rules[self.verdict.call_class],
            placement=self.placed.reason if self.placed is not None else "",
            client=self.client,
            lengths=known.lengths,
            affinity_key=self.affinity_key,
            server=self._server(),
            considered=self.placed.considered if self.placed is not None else (),
            seen=known.seen,
            recalled=known.recalled,
        )

    def _server(self) -> Server | None:
        if self.placed is None:
            return None
        backend = self.placed.backend
        slots = backend.identity.slots if backend.identity is not None else None
        return Server(backend.engine.name, slots, backend.cap, backend.context_tokens)


def judge(status: int) -> tuple[Outcome, str]:
    """What an answer with this status says about the backend, and the word for it in metrics.

    4xx says nothing about a backend, nor does 429 or 503: busy is not dead. Nor is one that lacks what was asked for.
    """
    if status < 400:
        return Outcome.COMPLETED, "completed"
    if status < 500 or status == HTTPStatus.SERVICE_UNAVAILABLE:
        return Outcome.IGNORED, "backend_4xx" if status < 500 else "backend_busy"
    return Outcome.IGNORED if status == HTTPStatus.NOT_IMPLEMENTED else Outcome.FAILED, "backend_error"
