"""A call and its backends: find a place, try, deliver; try another only where that cannot run a generation twice."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Final

import structlog

from router.applicant import Applicant, Placed, may_serve
from router.call import Call, judge
from router.dispatch import Dispatcher
from router.engines.api import Answer, Loading
from router.errors import BackendBroke, BackendTimeout, BackendUnreachable, ModelLoading, NoBackend, OutOfSockets
from router.fleet.fleet import Fleet
from router.fleet.ledger import Outcome
from router.heads import content_codings, to_client
from router.observe.metrics import Metrics
from router.outgoing import upstream_request
from router.pings import Undone, continues, pings, refusal, undoing
from router.refusals import still_loading
from router.retries import RetryBudget
from router.tasks import Clock
from router.upstreams import Upstreams
from router.watch import Watch, awaits_first_token, watch_for
from router.wire.api import Look, UpstreamResponse
from router.wire.coding import decoder
from router.wire.exchange import RawHeaders

log = structlog.get_logger("twolane.attempts")

PASSTHROUGH: Final = "passthrough"
"""In place of an API, for a path that we do not know: one backend is asked, and what it says is the answer."""
_SMALL_ANSWER_BYTES = 64 * 1024
_NO_MORE_RETRIES = "it was not sent to another one, since too many calls were lately (retries); try again later"


class TryAnother(Exception):
    """The backend certainly did not start on the call; the next one may."""


class Attempts:
    """Carries calls to backends and answers back to clients."""

    def __init__(
        self, fleet: Fleet, dispatcher: Dispatcher, upstreams: Upstreams, *, clock: Clock, metrics: Metrics
    ) -> None:
        self._fleet = fleet
        self._dispatcher = dispatcher
        self._upstreams = upstreams
        self._clock = clock
        self._metrics = metrics
        self._budget = RetryBudget()

    async def answer(self, call: Call, applicant: Applicant, body: bytes) -> None:
        """Until a backend has answered. Raises `RouterError` where none did."""
        self._budget.called(self._clock())
        while True:
            with pings(call, self._clock):
                placed = await self._dispatcher.place(applicant)
            call.placed_s = self._clock()
            try:
                await self.attempt(call, applicant, placed, body)
            except TryAnother as error:
                call.retries += 1
                name, why = placed.backend.name, str(error)
                log.info("trying_another_backend", request_id=call.request_id, backend=name, why=why)
            else:
                return

    async def attempt(self, call: Call, applicant: Applicant, placed: Placed, body: bytes) -> None:
        """One try on one backend; ends the lease. Raises `TryAnother`, or the error that the client gets."""
        call.sent(placed)
        outcome, began = Outcome.FAILED, True
        try:
            outcome = await self._in_time(call, applicant, placed, body)
        except BackendUnreachable as error:
            call.outcome = "backend_unreachable"
            began = False
            self._fleet.refused(placed.backend, error.message)
            applicant.tried.add(placed.backend.name)
            if not self._may_try_another(call):
                raise NoBackend(f"{error.message}; {_NO_MORE_RETRIES}", retry_after_s=2.0) from error
            raise TryAnother(error.message) from error
        except (BackendBroke, BackendTimeout):
            call.outcome = "backend_error"
            raise
        except (TryAnother, ModelLoading, OutOfSockets):
            outcome, began = Outcome.IGNORED, False  # the backend said no, or was not asked
            raise
        except (asyncio.CancelledError, ConnectionError):
            outcome = Outcome.IGNORED  # the client left
            raise
        finally:
            now_s = self._clock()
            call.off_backend(complete=outcome is Outcome.COMPLETED)
            if began and placed.lease.occupies_slot:
                self._dispatcher.line.slot_ended(now_s)
            placed.lease.close(outcome, now_s, call.answered())

    async def _in_time(self, call: Call, applicant: Applicant, placed: Placed, body: bytes) -> Outcome:
        """Within `timeouts.first_token`, which neither a head nor a ping nor a role satisfies."""
        limit_s = call.plan.settings.timeouts.first_token
        if limit_s is None or not call.features.stream:
            return await self._exchange_with(call, applicant, placed, body)
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(None)

        def rung() -> None:
            if awaits_first_token(call.watch):
                limit.reschedule(loop.time())

        timer = loop.call_later(limit_s, rung)
        try:
            async with limit:
                return await self._exchange_with(call, applicant, placed, body)
        except TimeoutError as error:
            why = f"the backend sent no token in {limit_s:g} s (timeouts.first_token)"
            raise BackendTimeout(why) from error
        finally:
            timer.cancel()

    async def _exchange_with(self, call: Call, applicant: Applicant, placed: Placed, body: bytes) -> Outcome:
        request = upstream_request(call, placed, body)
        response = await self._upstreams.pool(placed.backend).send(request, call.plan.patience)
        try:
            read_ahead = await self._turned_away(call, applicant, placed, response)
            return await self._deliver(call, placed, response, read_ahead)
        finally:
            response.close()

    async def _turned_away(
        self, call: Call, applicant: Applicant, placed: Placed, response: UpstreamResponse
    ) -> bytes | None:
        """Look at two kinds of refusal that another backend may cure. Returns the body if it was read for that, or to
        see whose fault an error is.

        Neither has started a generation: a model that is still loading, a prompt larger than the context.
        """
        if response.status not in (400, 500, 503) or response.length is None or response.length > _SMALL_ANSWER_BYTES:
            return None
        body = await response.read(_SMALL_ANSWER_BYTES)
        backend, answer = placed.backend, Answer(response.status, _decoded(body, response.headers))
        if response.status == 503 and isinstance(loading := backend.engine.ready(answer), Loading):
            self._fleet.loading(backend, loading)
            if applicant.surface == PASSTHROUGH:
                return body  # no other backend is asked, so its own words are the best answer
            may_wait = self._clock() < call.arrived_s + applicant.ask.rules.max_wait_s
            if may_wait and self._may_try_another(call):
                raise TryAnother("model is loading")
            raise still_loading(loading.said, [backend.name])
        elif response.status == 400 and backend.engine.context_overflow(answer) and self._larger(applicant, placed):
            applicant.min_context_tokens = backend.context_tokens or 0
            applicant.tried.add(backend.name)
            if self._may_try_another(call):
                raise TryAnother("the prompt is larger than its context")
        return body

    def _may_try_another(self, call: Call) -> bool:
        """Whether the retry budget has one left; it is spent then."""
        if self._budget.take(call.plan.settings.retries, self._clock()):
            return True
        self._metrics.retry_denied()
        return False

    def _larger(self, applicant: Applicant, placed: Placed) -> bool:
        """Whether a backend whose context is larger, or may be, was not tried yet and could take the call."""
        return any(
            _may_be_larger(candidate.backend.context_tokens, placed.backend.context_tokens)
            and candidate.backend.name not in applicant.tried
            and may_serve(candidate, applicant)
            for candidate in self._fleet.candidates(applicant.model, applicant.surface)
        )

    async def _deliver(
        self, call: Call, placed: Placed, response: UpstreamResponse, read_ahead: bytes | None
    ) -> Outcome:
        """Pass the answer on as it comes, with the watch beside it."""
        exchange = call.exchange
        content_type, codings = _content(response.headers)
        if exchange.started and not continues(response.status, content_type, codings):
            return await self._say_in_band(call, placed, response, read_ahead)
        lease = placed.lease
        undone = undoing(exchange, codings) if exchange.started else None
        watch = call.watch = watch_for(
            call.surface, content_type, codings, lease.account, lease.first_token, undone=undone is not None
        )
        if lease.running is not None:
            lease.running.count = lambda: watch.progress.tokens
        call.dial_s = response.dial_s
        now_s = call.headed_s = self._clock()
        if not exchange.started:
            exchange.start(
                response.status,
                response.reason,
                to_client(response.headers, call.headers(now_s), stream=response.length is None),
                length=response.length,
            )
        call.status = response.status
        outcome, call.outcome = _judged(placed, response, read_ahead)
        see = watch.see

        def look(pieces: list[bytes], at_s: list[float]) -> float:
            nonlocal see
            try:
                return see(pieces, at_s)
            except Exception as error:  # noqa: BLE001 - whatever is wrong with our looking, the answer goes on
                see = _look_away
                self._watch_failed(call, error)
                return inf

        if read_ahead is not None:
            exchange.write(read_ahead)
            look([read_ahead], [self._clock()])
            exchange.finish()
        else:
            await self._relay(call, placed, response, undone, look)
        return self._delivered(call, placed, outcome)

    async def _say_in_band(
        self, call: Call, placed: Placed, response: UpstreamResponse, read_ahead: bytes | None
    ) -> Outcome:
        """An answer that cannot follow after pings, as an event of the stream that they began."""
        content_type, codings = _content(response.headers)
        body = read_ahead or b""
        if read_ahead is None and response.status != 200:
            body = await response.read(_SMALL_ANSWER_BYTES)
        error = refusal(response.status, content_type, codings, _decoded(body, response.headers))
        call.status = error.status
        _, call.outcome = judge(error.status)
        call.exchange.write(call.surface.error_event(error))
        call.exchange.finish()
        return Outcome.IGNORED if response.status == 200 else _judged(placed, response, body)[0]

    async def _relay(
        self, call: Call, placed: Placed, response: UpstreamResponse, undone: Undone | None, look: Look
    ) -> None:
        """The body, and its end as far as it is one."""
        exchange = call.exchange

        try:
            await response.relay(undone or exchange, look)
        except BackendBroke:
            if call.watch is not None and call.watch.ended:
                exchange.abort()  # only the framing is missing, and not ours to add
                return
            raise
        finally:
            call.stalls = exchange.stalls
        if undone is not None and not self._watched_to_end(call).ended:
            undone.end()
        ends_with_connection = not response.framed and placed.lease.occupies_slot and response.status < 400
        if ends_with_connection and self._watched_to_end(call).cut_off:
            raise BackendBroke("the backend closed the connection before the end of its answer")
        exchange.finish()

    def _watched_to_end(self, call: Call) -> Watch:
        assert call.watch is not None
        try:
            call.watch.end()
        except Exception as error:  # noqa: BLE001 - as above
            self._watch_failed(call, error)
        return call.watch

    def _delivered(self, call: Call, placed: Placed, outcome: Outcome) -> Outcome:
        """Complete: remember what the next call of the conversation needs."""
        progress = self._watched_to_end(call).progress
        if progress.failed:
            call.outcome = "backend_error"
            return Outcome.FAILED if progress.at_fault else Outcome.IGNORED
        if outcome is Outcome.COMPLETED and placed.lease.occupies_slot:
            self._fleet.response_ids.remember(progress.response_id, placed.backend.name)
            self._fleet.conversations.remember(call.affinity_key, placed.backend.name)
        return outcome

    def _watch_failed(self, call: Call, error: Exception) -> None:
        if call.watch is not None:
            call.watch.look_away()
        log.error("watch_failed", request_id=call.request_id, surface=call.surface.name, exc_info=error)
        self._metrics.watch_failed()


def _judged(placed: Placed, response: UpstreamResponse, body: bytes | None) -> tuple[Outcome, str]:
    """`judge`, and for a body that was read: some servers call what is wrong with one call an error of their own."""
    outcome, word = judge(response.status)
    if outcome is Outcome.FAILED and body:
        answer = Answer(response.status, _decoded(body, response.headers))
        outcome = Outcome.IGNORED if placed.backend.engine.blames_call(answer) else outcome
    return outcome, word


def _may_be_larger(context_tokens: int | None, than: int | None) -> bool:
    """None: not known. Of two that are not known, neither is taken for the larger one."""
    return than is not None if context_tokens is None else context_tokens > (than or 0)


def _look_away(pieces: list[bytes], at_s: list[float]) -> float:
    """In place of a watch that failed."""
    return inf


def _decoded(body: bytes, headers: RawHeaders) -> bytes:
    """For our eyes only; empty where it cannot be read."""
    for coding in reversed(_content(headers)[1]):
        undo = decoder(coding)
        body = undo.feed(body) if undo is not None else b""
    return body


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
