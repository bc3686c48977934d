"""The life of a call, top to bottom.

    read       body (bounded), surface, features
    classify   explicit header > rules > built-in judgement > default
    place      a lease on a backend, at once or after a wait in the line
    attempt    send; a backend that certainly did not start may be followed by another
    deliver    head and bytes as they come, a watch beside the stream
    end        the lease closed once, facts told to metrics and log

A client that leaves cancels this coroutine wherever it is: out of the line, or off the backend, at once.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from secrets import token_hex

import structlog

from classifiers.api import CallClass, Source, Verdict
from classifiers.chain import Chain
from classifiers.hints import affinity_key
from policies.api import Ask, ClassRules
from router.call import Call, judge
from router.dispatch import Dispatcher
from router.engines.api import Answer, Loading
from router.errors import (
    BackendBroke,
    BackendTimeout,
    BackendUnreachable,
    Draining,
    NoBackend,
    NotFound,
    RouterError,
)
from router.fleet.fleet import Fleet
from router.fleet.ledger import Outcome
from router.heads import content_codings, hints, to_client
from router.line import Applicant, Placed
from router.listing import Listings
from router.observe.facts import CallFacts
from router.outgoing import upstream_request
from router.settings.model import Settings
from router.surfaces import Kind, Route, error_surface, find, read_call
from router.tasks import Clock
from router.upstreams import Upstreams
from router.watch import may_say_in_band, watch_for
from router.wire.api import Patience, UpstreamResponse
from router.wire.coding import decode_body
from router.wire.exchange import Exchange, RawHeaders

log = structlog.get_logger("twolane.gateway")

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_SMALL_ANSWER_BYTES = 64 * 1024
_JSON = (b"Content-Type", b"application/json")
_UTILITY = Verdict(call_class=CallClass.MIXED, confidence=1.0, source=Source.BUILTIN, reasons=("needs_no_slot",))
_FOLLOW_UP = Verdict(call_class=CallClass.MIXED, confidence=1.0, source=Source.BUILTIN, reasons=("stored_response",))
_PASSTHROUGH = Verdict(call_class=CallClass.MIXED, confidence=1.0, source=Source.RULE, reasons=("passthrough",))


@dataclass(frozen=True, slots=True)
class Plan:
    """What the settings mean for calls; replaced as a whole on reload, so each call sees one of them."""

    settings: Settings
    chain: Chain
    rules: Mapping[CallClass, ClassRules]
    patience: Patience

    @classmethod
    def of(cls, settings: Settings, chain: Chain) -> Plan:
        timeouts = settings.timeouts
        return cls(
            settings=settings,
            chain=chain,
            rules={call_class: settings.classes.of(call_class).rules() for call_class in CallClass},
            patience=Patience(connect_s=timeouts.connect, first_byte_s=timeouts.first_byte, idle_s=timeouts.idle),
        )


class _TryAnother(Exception):
    """The backend certainly did not start on the call; the next one may."""

    def __init__(self, why: str) -> None:
        super().__init__(why)


class Gateway:
    """Serves every request of the public port."""

    def __init__(
        self,
        plan: Plan,
        fleet: Fleet,
        dispatcher: Dispatcher,
        upstreams: Upstreams,
        listings: Listings,
        *,
        clock: Clock,
        on_end: Callable[[CallFacts], None],
        on_watch_failure: Callable[[], None],
    ) -> None:
        self.plan = plan
        self.draining = False
        self._fleet = fleet
        self._dispatcher = dispatcher
        self._upstreams = upstreams
        self._listings = listings
        self._clock = clock
        self._on_end = on_end
        self._on_watch_failure = on_watch_failure
        self._open: set[asyncio.Task[None] | None] = set()

    @property
    def open_calls(self) -> int:
        return len(self._open)

    def end_all(self) -> None:
        """The grace time is over: end what still runs, with an error that the client can read."""
        for task in tuple(self._open):
            if task is not None:
                task.cancel()

    async def handle(self, exchange: Exchange) -> None:
        """One request, from its head to the last byte of its answer. Never raises but when cancelled."""
        surface = error_surface(exchange.path)
        call = Call(exchange, surface, _request_id(exchange), self._clock())
        task = asyncio.current_task()
        self._open.add(task)
        try:
            await self._serve(call)
        except RouterError as error:
            self._refuse(call, error)
        except ConnectionError:
            call.outcome = "client_gone"
        except asyncio.CancelledError:
            if exchange.gone:
                call.outcome = "client_gone"
                raise
            call.outcome = "shutdown"
            self._refuse(call, Draining("the router is shutting down; send the call again", retry_after_s=1.0))
        except Exception as error:  # noqa: BLE001 - the outermost handler: one broken call must not end the server
            log.error("call_failed", request_id=call.request_id, path=exchange.path[:200], exc_info=error)
            call.outcome = "router_error"
            self._refuse(call, RouterError("an internal error of the router; its log has the details"))
        finally:
            self._open.discard(task)
            self._on_end(call.facts(self._clock()))

    # --- read, classify, place

    async def _serve(self, call: Call) -> None:
        exchange = call.exchange
        if self.draining:
            raise Draining("the router is shutting down; send the call to another one", retry_after_s=1.0)
        try:
            route = find(exchange.method, exchange.path)
        except NotFound:
            if self.plan.settings.passthrough is None:
                raise
            await self._pass_through(call, self.plan.settings.passthrough)
            return
        call.surface = route.surface
        if route.kind is Kind.MODELS:
            self._list(call, route)
            return
        body = await exchange.body(self.plan.settings.limits.max_body)
        applicant = self._applicant(call, route, body)
        await self._attempt_until_answered(call, applicant, body)

    def _applicant(self, call: Call, route: Route, body: bytes) -> Applicant:
        """Read and classify: all that is decided before a place is looked for."""
        plan = self.plan
        exchange = call.exchange
        seen = hints(exchange.raw_headers)
        if codings := content_codings(seen.get("content-encoding")):
            body = decode_body(body, codings, plan.settings.limits.max_body)
        features = call.features = read_call(route, body, seen)
        pinned = None
        match route.kind:
            case Kind.GENERATE:
                call.verdict = plan.chain.classify(features)
                pinned = self._fleet.response_ids.recall(features.previous_response_id)
            case Kind.FOLLOW_UP:
                call.verdict = _FOLLOW_UP
                pinned = self._holder(route.response_id)
            case _:
                call.verdict = _UTILITY
        key = affinity_key(features, plan.settings.headers.session) if route.kind is Kind.GENERATE else ""
        call.decided_s = call.placed_s = self._clock()
        return Applicant(
            ask=Ask(
                features=features,
                verdict=call.verdict,
                rules=plan.rules[call.verdict.call_class],
                arrived_s=call.arrived_s,
                affinity_key=key,
            ),
            model=features.model,
            surface=route.surface.name,
            occupies_slot=route.kind is Kind.GENERATE,
            affinity=self._fleet.conversations.recall(key),
            pinned=pinned,
        )

    def _holder(self, response_id: str) -> str | None:
        """The backend that holds a stored response; None where only one backend could."""
        holder = self._fleet.response_ids.recall(response_id)
        if holder is None and len(self._fleet.candidates(None, "openai_responses")) > 1:
            raise NotFound(
                f"no response {response_id[:100]!r} was made through this router (since it started); "
                "send the whole input again"
            )
        return holder

    async def _attempt_until_answered(self, call: Call, applicant: Applicant, body: bytes) -> None:
        while True:
            placed = call.placed = await self._dispatcher.place(applicant)
            call.placed_s = self._clock()
            try:
                await self._attempt(call, applicant, placed, body)
            except _TryAnother as error:
                call.retries += 1
                log.info("trying_another_backend", backend=placed.backend.name, why=str(error), call=call.request_id)
            else:
                return

    # --- attempt

    async def _attempt(self, call: Call, applicant: Applicant, placed: Placed, body: bytes) -> None:
        """One try on one backend; owns the lease."""
        outcome = Outcome.FAILED
        try:
            outcome = await self._exchange_with(call, applicant, placed, body)
        except asyncio.CancelledError:
            outcome = Outcome.IGNORED
            raise
        except ConnectionError:
            outcome = Outcome.IGNORED
            raise
        except BackendUnreachable as error:
            call.outcome = "backend_unreachable"
            self._fleet.refused(placed.backend, error.message)
            applicant.tried.add(placed.backend.name)
            raise _TryAnother(error.message) from error
        except (BackendBroke, BackendTimeout):
            call.outcome = "backend_error"
            raise
        except _TryAnother:
            outcome = Outcome.IGNORED
            raise
        finally:
            now_s = self._clock()
            self._dispatcher.line.lease_ended(now_s)
            placed.lease.close(outcome, now_s)

    async def _exchange_with(self, call: Call, applicant: Applicant, placed: Placed, body: bytes) -> Outcome:
        request = upstream_request(call, placed, body, self.plan.settings.limits.max_body)
        response = await self._upstreams.pool(placed.backend).send(request, self.plan.patience)
        try:
            read_ahead = await self._turned_away(call, applicant, placed, response)
            return await self._deliver(call, placed, response, read_ahead)
        finally:
            response.close()

    async def _turned_away(
        self, call: Call, applicant: Applicant, placed: Placed, response: UpstreamResponse
    ) -> bytes | None:
        """Look at two kinds of refusal that another backend may cure. Returns the body if it was read for that.

        Neither has started a generation: a model that is still loading, a prompt larger than the context.
        """
        if response.status not in (400, 503) or response.length is None or response.length > _SMALL_ANSWER_BYTES:
            return None
        backend = placed.backend
        body = await response.read(_SMALL_ANSWER_BYTES)
        answer = Answer(response.status, body)
        if response.status == 503 and isinstance(backend.engine.ready(answer), Loading):
            self._fleet.loading(backend)
            if self._clock() < call.arrived_s + applicant.ask.rules.max_wait_s:
                raise _TryAnother("model is loading")
        elif response.status == 400 and backend.engine.context_overflow(answer):
            applicant.min_context_tokens = max(applicant.min_context_tokens, backend.context_tokens or 0)
            if any(
                (candidate.backend.context_tokens or 0) > applicant.min_context_tokens
                for candidate in self._fleet.candidates(applicant.model, applicant.surface)
                if candidate.backend.name not in applicant.tried and candidate.backend.health.available(self._clock())
            ):
                applicant.tried.add(backend.name)
                raise _TryAnother("the prompt is larger than its context")
        return body

    # --- deliver

    async def _deliver(
        self, call: Call, placed: Placed, response: UpstreamResponse, read_ahead: bytes | None
    ) -> Outcome:
        exchange = call.exchange
        content_type, codings = _content(response.headers)
        watch = call.watch = watch_for(call.surface, content_type, codings, placed.lease.account, self._clock)
        exchange.start(
            response.status,
            response.reason,
            to_client(response.headers, self._ours(call), stream=response.length is None),
            length=response.length,
        )
        call.status = response.status
        outcome, call.outcome = judge(response.status)
        feed = watch.feed
        write_out = exchange.write

        def write(piece: bytes) -> bool:
            nonlocal feed
            more = write_out(piece)
            try:
                feed(piece)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with our looking, the answer goes on
                feed = _look_away
                self._watch_failed(call, error)
            return more

        try:
            if read_ahead is not None:
                write(read_ahead)
            else:
                await response.relay(write, exchange.drained)
        except (BackendBroke, BackendTimeout):
            call.outcome = "backend_error"
            raise
        exchange.finish()
        return self._delivered(call, placed, outcome)

    def _delivered(self, call: Call, placed: Placed, outcome: Outcome) -> Outcome:
        """Complete: remember what the next call of the conversation needs."""
        assert call.watch is not None
        try:
            call.watch.end()
        except Exception as error:  # noqa: BLE001 - as above
            self._watch_failed(call, error)
        progress = call.watch.progress
        if progress.failed:
            call.outcome = "backend_error"
            return Outcome.IGNORED
        if outcome is Outcome.COMPLETED and placed.lease.occupies_slot:
            backend = placed.backend.name
            self._fleet.response_ids.remember(progress.response_id, backend)
            self._fleet.conversations.remember(affinity_key(call.features, self.plan.settings.headers.session), backend)
        return outcome

    def _watch_failed(self, call: Call, error: Exception) -> None:
        log.error("watch_failed", request_id=call.request_id, surface=call.surface.name, exc_info=error)
        self._on_watch_failure()

    def _ours(self, call: Call) -> list[tuple[bytes, bytes]]:
        """Response headers that are ours, as far as `expose` lets clients see them."""
        ours = [(b"X-Request-Id", call.request_id.encode("latin-1"))]
        expose = self.plan.settings.expose
        if expose == "none":
            return ours
        ours.append((b"X-Twolane-Class", call.verdict.call_class.encode()))
        if expose == "full":
            if call.placed is not None:
                ours.append((b"X-Twolane-Backend", call.placed.backend.name.encode()))
            ours.append((b"X-Twolane-Reason", call.reason.encode("latin-1", "replace")))
            ours.append((b"Server-Timing", call.server_timing(self._clock())))
        return ours

    # --- other answers

    def _refuse(self, call: Call, error: RouterError) -> None:
        """Say no in the shape of the API that was called; inside a stream that has begun, as its last event."""
        exchange = call.exchange
        if exchange.gone:
            return
        if exchange.started:
            if call.watch is not None:
                exchange.write(may_say_in_band(call.watch, call.surface, error))
            exchange.abort()
            return
        call.status = error.status
        if call.outcome == "refused" and error.fault != "client":
            call.outcome = "rejected"
        headers = [_JSON, (b"Server", b"twolane"), *self._ours(call)]
        if error.retry_after_s is not None:
            headers.append((b"Retry-After", b"%d" % max(1, round(error.retry_after_s))))
        if allow := getattr(error, "allow", ()):
            headers.append((b"Allow", ", ".join(allow).encode()))
        _answer(exchange, error.status, headers, call.surface.error_body(error))

    def _list(self, call: Call, route: Route) -> None:
        body = self._listings.answer(route)
        call.status, call.outcome = 200, "completed"
        _answer(call.exchange, 200, [_JSON, (b"Server", b"twolane"), *self._ours(call)], body)

    async def _pass_through(self, call: Call, name: str) -> None:
        """A path that we do not know, for the backend that the operator named."""
        call.verdict = _PASSTHROUGH
        body = await call.exchange.body(self.plan.settings.limits.max_body)
        backend = self._fleet.backend(name)
        now_s = call.decided_s = call.placed_s = self._clock()
        if backend is None or not backend.health.available(now_s):
            raise NoBackend(f"{name}, which serves this path (passthrough), is not up", retry_after_s=2.0)
        ask = Ask(
            features=call.features,
            verdict=call.verdict,
            rules=self.plan.rules[CallClass.MIXED],
            arrived_s=call.arrived_s,
        )
        lease = self._fleet.lease(backend, CallClass.MIXED, now_s, slot=False)
        placed = call.placed = Placed(backend, None, lease, "passthrough")
        try:
            await self._attempt(call, Applicant(ask=ask, model=None, surface="passthrough"), placed, body)
        except _TryAnother as error:
            raise NoBackend(f"{name}, which serves this path (passthrough): {error}", retry_after_s=2.0) from error


def _look_away(piece: bytes) -> None:
    """In place of a watch that failed."""


def _request_id(exchange: Exchange) -> str:
    given = exchange.header("x-request-id")
    return given if given is not None and _REQUEST_ID.fullmatch(given) else token_hex(8)


def _content(headers: RawHeaders) -> tuple[str, tuple[str, ...]]:
    """Content type and content codings of a response."""
    content_type, coding = "", None
    for name, value in headers:
        lower = name.lower()
        if lower == b"content-type":
            content_type = value.decode("latin-1")
        elif lower == b"content-encoding":
            coding = value.decode("latin-1")
    return content_type, content_codings(coding)


def _answer(exchange: Exchange, status: int, headers: RawHeaders, body: bytes) -> None:
    exchange.start(status, _REASONS.get(status, b"Error"), headers, length=len(body))
    exchange.write(body)
    exchange.finish()


_REASONS = {
    200: b"OK",
    400: b"Bad Request",
    401: b"Unauthorized",
    404: b"Not Found",
    405: b"Method Not Allowed",
    413: b"Content Too Large",
    415: b"Unsupported Media Type",
    429: b"Too Many Requests",
    500: b"Internal Server Error",
    502: b"Bad Gateway",
    503: b"Service Unavailable",
    504: b"Gateway Timeout",
}
