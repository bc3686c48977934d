"""The life of a call, top to bottom.

    admit      whose key, and what is left of its limits (before the body is read)
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
from collections.abc import Callable
from secrets import token_hex

import structlog

from classifiers.api import CallClass, Source, Verdict
from policies.api import Ask
from router.access.cors import Cors
from router.access.hosts import Hosts
from router.access.keys import Access
from router.applicant import Applicant, Placed
from router.attempts import PASSTHROUGH, Attempts, TryAnother
from router.call import Call
from router.errors import (
    Draining,
    Forbidden,
    MethodNotAllowed,
    NoBackend,
    NotFound,
    PlainHttpOnly,
    RouterError,
)
from router.fleet.fleet import Fleet
from router.heads import hints, request_codings
from router.intake import Intake, Judged
from router.listing import Listings
from router.observe.facts import CallFacts, JudgedCall
from router.observe.metrics import Metrics
from router.observe.trace_context import Begin
from router.plan import Plan
from router.surfaces import Kind, Route, error_surface, find, read_call
from router.tasks import Clock
from router.watch import may_say_in_band
from router.wire.coding import decode_body
from router.wire.exchange import Exchange, RawHeaders
from router.wire.refusal import REASONS

log = structlog.get_logger("twolane.gateway")

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_JSON = (b"Content-Type", b"application/json")
_TEXT = (b"Content-Type", b"text/plain; charset=utf-8")
_SERVER = (b"Server", b"twolane")
_NO_WEBSOCKET = (
    'WebSocket is not spoken here; call over HTTP (POST /v1/responses or /v1/chat/completions with "stream": true), '
    "or connect to a server that has this API without the router in between"
)


def _plainly(reason: str) -> Judged:
    """A call that asks for no generation."""
    verdict = Verdict(call_class=CallClass.MIXED, confidence=1.0, source=Source.BUILTIN, reasons=(reason,))
    return Judged(verdict, presence=None, lengths=None)


_UTILITY = _plainly("needs_no_slot")
_FOLLOW_UP = _plainly("stored_response")
_PASSTHROUGH = Verdict(call_class=CallClass.MIXED, confidence=1.0, source=Source.RULE, reasons=("passthrough",))


class Gateway:
    """Serves every request of the public port."""

    def __init__(
        self,
        plan: Plan,
        fleet: Fleet,
        attempts: Attempts,
        listings: Listings,
        access: Access,
        intake: Intake,
        *,
        clock: Clock,
        metrics: Metrics,
        on_end: Callable[[CallFacts, JudgedCall | None], None],
    ) -> None:
        self.plan = plan
        self.draining = False
        self.begin_trace: Begin | None = None
        """None: calls are not traced."""
        self.hosts = Hosts(plan.settings)
        self._fleet = fleet
        self._attempts = attempts
        self._listings = listings
        self._access = access
        self._intake = intake
        self._clock = clock
        self._metrics = metrics
        self._on_end = on_end
        self._request_ids = _RequestIds()
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
        call = Call(exchange, self.plan, self._request_ids.of(exchange), self._clock())
        if self.begin_trace is not None:
            call.trace = self.begin_trace(exchange.header("traceparent"), call.arrived_s)
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
        except Exception as error:
            log.error("call_failed", request_id=call.request_id, path=exchange.path[:200], exc_info=error)
            call.outcome = "router_error"
            self._refuse(call, RouterError("an internal error of the router; its log has the details"))
        finally:
            self._open.discard(task)
            del task  # it keeps the exception that cancelled it, which keeps this frame
            self._ended(call)

    def _ended(self, call: Call) -> None:
        now_s = self._clock()
        if call.visit is not None:
            call.visit.leave()
            call.visit.settle(call.tokens_taken(), now_s)
        call.leave(now_s)
        call.hop_ended(self._intake, now_s)
        if call.generates:
            self._intake.ended(
                call.plan,
                call.client,
                call.features,
                prompt_tokens=call.reported_prompt_tokens,
                output_tokens=call.output_tokens,
                complete=call.outcome == "completed",
            )
        self._on_end(call.facts(now_s), call.judged_as())

    # --- admit, read, classify, place

    async def _serve(self, call: Call) -> None:
        exchange = call.exchange
        if call.plan.cors is not None and self._preflight(call, call.plan.cors):
            return
        try:
            route = find(exchange.method, exchange.path)
        except (NotFound, MethodNotAllowed) as error:
            call.surface = error_surface(exchange.path)
            passthrough = call.plan.settings.passthrough
            if passthrough is None and self._tell_health(call):
                return
            self.hosts.check(exchange.header("host"))
            call.visit = self._access.identify(exchange.raw_headers)  # strangers do not learn what exists
            if _asks_for_websocket(exchange):
                raise PlainHttpOnly(_NO_WEBSOCKET) from error
            if passthrough is not None and isinstance(error, NotFound):
                await self._pass_through(call, passthrough)
                return
            if not self._show_front_page(call):
                raise
            return
        call.surface, call.target = route.surface, route.target
        self.hosts.check(exchange.header("host"))
        call.visit = self._access.identify(exchange.raw_headers)
        self._refuse_while_draining()
        if route.kind is Kind.MODELS:
            self._list(call, route)
            return
        if call.visit is not None:
            call.visit.enter(call.arrived_s)
        body = self._decoded(call, await exchange.body(call.plan.settings.limits.max_body))
        applicant = self._applicant(call, route, body)
        await self._attempts.answer(call, applicant, body)

    def _decoded(self, call: Call, body: bytes) -> bytes:
        """Backends get it like this as well: clients compress, and servers of models do not know how to undo it."""
        exchange = call.exchange
        if not body or exchange.header("content-encoding") is None:
            return body
        codings = request_codings(exchange.raw_headers)
        call.decoded = True
        return decode_body(body, codings, call.plan.settings.limits.max_body)

    def _applicant(self, call: Call, route: Route, body: bytes) -> Applicant:
        """Read and classify: all that is decided before a place is looked for."""
        plan = call.plan
        seen = hints(call.exchange.raw_headers)
        features = call.features = read_call(route, body, seen)
        self._fleet.token_rates.correct(features)
        if call.visit is not None:
            call.visit.expect(features.prompt_tokens, call.arrived_s)
        pinned = None
        match route.kind:
            case Kind.GENERATE:
                judged = self._intake.judge(plan, call.client, features, self._clock())
                call.judged_generating(judged)
                if plan.chain.ignored(features):
                    self._metrics.hint_ignored()
                pinned = self._fleet.response_ids.recall(features.previous_response_id)
            case Kind.FOLLOW_UP:
                judged = _FOLLOW_UP
                pinned = self._holder(route.response_id)
            case _:
                judged = _UTILITY
        rules = plan.rules
        if call.visit is not None:
            grant = plan.grants[call.visit.name]
            judged, rules = judged._replace(verdict=grant.held(judged.verdict)), grant.rules
        call.verdict = judged.verdict
        ask = self._intake.ask(plan, call.client, features, judged, rules[call.verdict.call_class], call.arrived_s)
        call.affinity_key = ask.affinity_key if route.kind is Kind.GENERATE else ""
        call.decided_s = call.placed_s = self._clock()
        return Applicant(
            ask=ask,
            model=features.model,
            surface=route.surface.name,
            occupies_slot=route.kind is Kind.GENERATE,
            keeps_model=self._intake.keeps_model(plan, judged),
            pinned=pinned if pinned is not None and self._fleet.backend(pinned) is not None else None,
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

    # --- other answers

    def _refuse(self, call: Call, error: RouterError) -> None:
        """Say no in the shape of the API that was called; inside a stream that has begun, as its last event."""
        exchange = call.exchange
        if exchange.gone:
            return
        if exchange.started and call.watch is not None:
            exchange.write(may_say_in_band(call.watch, call.surface, error))
            exchange.abort()
            return
        call.status = error.status
        if call.outcome == "refused":
            call.outcome = error.outcome
        if exchange.started:  # by pings
            exchange.write(call.surface.error_event(error))
            exchange.finish()
            return
        headers = [_JSON, _SERVER, *call.headers(self._clock()), *error.headers()]
        _answer(exchange, error.status, headers, call.surface.error_body(error))

    def _preflight(self, call: Call, cors: Cors) -> bool:
        """Answer a browser that asks what it may send; it has no key to show at that point. False: it is a call."""
        call.cors = cors.headers(call.exchange.header("origin"))
        fields = cors.preflight(call.exchange)
        if fields is None:
            return False
        call.status, call.outcome = 204, "completed"
        _answer(call.exchange, 204, [_SERVER, *call.headers(self._clock()), *fields], b"")
        return True

    def _list(self, call: Call, route: Route) -> None:
        self._tell(call, _JSON, self._listings.answer(route))

    def _refuse_while_draining(self) -> None:
        if self.draining:
            raise Draining("the router is shutting down; send the call to another one", retry_after_s=1.0)

    def _tell_health(self, call: Call) -> bool:
        """For who balances load between routers, and has no key: it serves, or it is shutting down. False: it was not
        asked for. Whether backends are up is on the admin port.
        """
        if call.exchange.path != "/health" or call.exchange.method not in ("GET", "HEAD"):
            return False
        self._refuse_while_draining()
        self._tell(call, _JSON, b'{"status":"ok"}')
        return True

    def _show_front_page(self, call: Call) -> bool:
        """False: it was not asked for, or there is none."""
        page = self._listings.front_page
        if not page or call.exchange.path != "/" or call.exchange.method not in ("GET", "HEAD"):
            return False
        self._tell(call, _TEXT, page)
        return True

    def _tell(self, call: Call, content_type: tuple[bytes, bytes], body: bytes) -> None:
        call.status, call.outcome = 200, "completed"
        _answer(call.exchange, 200, [content_type, _SERVER, *call.headers(self._clock())], body)

    async def _pass_through(self, call: Call, name: str) -> None:
        """A path that we do not know, for the backend that the operator named."""
        call.verdict = _PASSTHROUGH
        if call.visit is not None:
            call.visit.enter(call.arrived_s)
        body = await call.exchange.body(call.plan.settings.limits.max_body)
        backend = self._fleet.backend(name)
        now_s = call.decided_s = call.placed_s = self._clock()
        if backend is None or not backend.health.available(now_s):
            raise NoBackend(f"{name}, which serves this path (passthrough), is not up", retry_after_s=2.0)
        if call.visit is not None and backend.lane not in call.plan.grants[call.visit.name].lanes:
            raise Forbidden(
                f"this key may not use the {backend.lane} lane, and {name}, which serves this path, is in it"
            )
        ask = Ask(
            features=call.features,
            verdict=call.verdict,
            rules=call.plan.rules[CallClass.MIXED],
            arrived_s=call.arrived_s,
        )
        lease = self._fleet.lease(backend, CallClass.MIXED, now_s, slot=False)
        placed = Placed(backend, None, lease, "passthrough")
        try:
            await self._attempts.attempt(call, Applicant(ask=ask, model=None, surface=PASSTHROUGH), placed, body)
        except TryAnother as error:
            raise NoBackend(f"{name}, which serves this path (passthrough): {error}", retry_after_s=2.0) from error


def _asks_for_websocket(exchange: Exchange) -> bool:
    """Whether it is a handshake as in RFC 6455, 4.1. It could not be passed on: `Upgrade` is for one hop."""
    return exchange.method == "GET" and "websocket" in (exchange.header("upgrade") or "").lower()


class _RequestIds:
    """The caller's own id where it is a plain one; else a random prefix per process and a count, which costs no
    system call."""

    def __init__(self) -> None:
        self._prefix = token_hex(6)
        self._made = 0

    def of(self, exchange: Exchange) -> str:
        given = exchange.header("x-request-id")
        if given is not None and _REQUEST_ID.fullmatch(given):
            return given
        self._made += 1
        return f"{self._prefix}-{self._made:x}"


def _answer(exchange: Exchange, status: int, headers: RawHeaders, body: bytes) -> None:
    exchange.start(status, REASONS.get(status, b"Error"), headers, length=len(body))
    exchange.write(body)
    exchange.finish()
