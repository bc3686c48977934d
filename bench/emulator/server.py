"""The emulated servers' protocol: one call at a time on a connection; raw, because many share a core."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from bench.emulator import figures
from bench.emulator.dialects import Dialect, Pattern, response
from bench.emulator.driver import Driver
from bench.emulator.reading import Asked, Unreadable, answer_text, blocks, read, words
from bench.servers.requests import RequestProtocol
from router.simulate.engine import SimulatedEngine
from router.simulate.sequence import Sequence

CONTROL = b"/emulator"
"""What only a benchmark calls: `{"speed": 0.5, "sequences": 2, "frozen": true}` changes the server while it runs."""

CALLS = {b"/v1/chat/completions": True, b"/chat/completions": True, b"/v1/completions": False}
"""Path, and whether it is a chat."""


class Emulator:
    """One emulated server: what all its connections share."""

    def __init__(self, engine: SimulatedEngine, dialect: Dialect, *, model: str, closes_streams: bool = False) -> None:
        """`closes_streams`: hang up after each stream without having said so, as llama.cpp does."""
        self._totals = figures.Totals()
        self.driver = Driver(engine, self._totals.add)
        self.dialect = dialect
        self.model = model
        self.closes_streams = closes_streams
        self._calls = 0
        self._frozen: dict[bytes, bytes] | None = None
        head = dialect.head
        known = figures.models(dialect.name, model, engine.spec.context_tokens)

        def ok(body: bytes) -> bytes:
            return response("200 OK", head, body)

        self._fixed: Mapping[bytes, bytes] = {
            "llamacpp": {
                b"/health": ok(b'{"status":"ok"}'),
                b"/v1/health": ok(b'{"status":"ok"}'),
                b"/v1/models": ok(known),
                b"/models": ok(known),
                b"/props": ok(figures.llamacpp_props(engine, model)),
            },
            "vllm": {
                b"/health": ok(b""),
                b"/ping": ok(b""),
                b"/v1/models": ok(known),
                b"/version": ok(b'{"version":"0.32.0"}'),
                b"/load": ok(b'{"server_load":0}'),
            },
        }[dialect.name]
        self._not_found = response("404 Not Found", head, b'{"detail":"Not Found"}')

    def next_number(self) -> int:
        self._calls += 1
        return self._calls

    def control(self, body: bytes) -> bytes:
        """Be slower or faster, have other slots, or say from now on what was said the first time."""
        wanted = orjson.loads(body)
        driver = self.driver
        if (speed := wanted.get("speed")) is not None:
            driver.engine.change_speed(speed, driver.now_s())
        if (sequences := wanted.get("sequences")) is not None:
            driver.engine.resize(sequences, driver.now_s())
        if (frozen := wanted.get("frozen")) is not None:
            self._frozen = {} if frozen else None
        driver.catch_up()
        return response("200 OK", self.dialect.head, b"{}")

    def get(self, target: bytes) -> bytes:
        if self._frozen is None:
            return self._get(target)
        return self._frozen.setdefault(target, self._get(target))

    def _get(self, target: bytes) -> bytes:
        path, _, query = target.partition(b"?")
        if path == b"/metrics":
            return response("200 OK", self.dialect.head, self._metrics(), "text/plain; version=0.0.4")
        if path == b"/slots" and self.dialect.name == "llamacpp":
            slots = figures.llamacpp_slots(self._current())
            if b"fail_on_no_slot=1" in query and all(slot["is_processing"] for slot in slots):
                error = {"error": {"code": 503, "message": "no slot available", "type": "unavailable_error"}}
                return response("503 Service Unavailable", self.dialect.head, orjson.dumps(error))
            return response("200 OK", self.dialect.head, orjson.dumps(slots))
        return self._fixed.get(path, self._not_found)

    def _current(self) -> SimulatedEngine:
        self.driver.catch_up()
        return self.driver.engine

    def _metrics(self) -> bytes:
        engine = self._current()
        if self.dialect.name == "vllm":
            return figures.vllm_metrics(self._totals, engine.load(), engine, self.model)
        return figures.llamacpp_metrics(self._totals, engine.load())


class Connection(RequestProtocol):
    """One client; also the listener of its call."""

    def __init__(self, emulator: Emulator) -> None:
        super().__init__()
        self._emulator = emulator
        self._call: Sequence | None = None
        self._asked: Asked
        self._number = 0
        self._sent = 0
        self._pattern: Pattern
        self._words = words(0, 0)
        self.follows = False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._call is not None:
            self._emulator.driver.leave(self._call, self)
            self._call = None

    def requested(self, target: bytes, body: bytes) -> None:
        chat = CALLS.get(target.partition(b"?")[0])
        if target == CONTROL:
            self._transport.write(self._emulator.control(body))
        elif chat is None:
            self._transport.write(self._emulator.get(target))
        else:
            self._transport.write(self._begin(body, chat))

    def _begin(self, body: bytes, chat: bool) -> bytes:
        """What is said at once: a refusal, or the head of a stream."""
        dialect, engine = self._emulator.dialect, self._emulator.driver.engine
        try:
            asked = read(body, chat=chat)
        except Unreadable as error:
            return dialect.refusal(error.reason)
        if dialect.name == "vllm":
            if asked.model != self._emulator.model:
                return dialect.refusal("model", model=asked.model)
            if asked.priority and not engine.spec.by_priority:
                return dialect.refusal("priority")
        if asked.prompt_tokens >= engine.spec.context_tokens:
            return dialect.refusal("context", tokens=asked.prompt_tokens, limit=engine.spec.context_tokens)
        self._submit(asked)
        return dialect.stream_head() if asked.stream else b""

    def _submit(self, asked: Asked) -> None:
        size = self._emulator.driver.engine.spec.block_tokens
        prompt = blocks(asked.text, size)
        answer = "" if asked.tool else answer_text(asked.seed, asked.output_tokens)
        self._asked, self._number, self._sent = asked, self._emulator.next_number(), 0
        self._words = words(asked.seed, asked.output_tokens)
        self._pattern = self._emulator.dialect.token(asked, self._number)
        self.follows = asked.stream
        self._call = self._emulator.driver.submit(
            self,
            prompt_tokens=asked.prompt_tokens,
            output_tokens=asked.output_tokens,
            blocks=prompt,
            full_blocks=blocks(asked.text + answer, size),
            priority=asked.priority,
        )

    # --- as a listener

    def tokens(self, count: int) -> None:
        if not self.follows or count <= self._sent:
            return
        first = b"" if self._sent else self._emulator.dialect.role(self._asked, self._number)
        token, some = self._pattern, self._words
        self._transport.write(first + b"".join([token.with_token(next(some)) for _ in range(count - self._sent)]))
        self._sent = count

    def ended(self, done: Sequence) -> None:
        asked, dialect = self._asked, self._emulator.dialect
        self._call = None
        if not asked.stream:
            text = answer_text(asked.seed, asked.output_tokens)
            self._transport.write(dialect.whole(asked, self._number, done, text))
            return
        self._transport.write(dialect.end(asked, self._number, done))
        if self._emulator.closes_streams:
            self._transport.close()
