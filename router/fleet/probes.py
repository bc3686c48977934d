"""Asks backends what they are and how they are. The reading of the answers is in `router.engines`.

Nothing here decides whether a backend may be used: that is `router.fleet.health`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import aiohttp
import structlog
from pydantic import SecretStr

from router.engines import ENGINES, IDENTITY_PATHS, recognise
from router.engines.api import Answer, Answers, Engine, Identity, Load, Loading, Ready, Sick
from router.settings.backend import Backend
from router.tasks import Clock
from router.wire.dial import ADDRESSES_LIVE_S

log = structlog.get_logger("twolane.probes")

MOST_BYTES = 4 * 2**20
"""Of one answer. A longer one counts as none: half of a scrape would be a wrong figure."""

_LOAD_TIMEOUT_S = 2.0
"""A figure that comes later is of little use, and must not hold up what the health endpoint said."""

_LAST_RESORT = "openai"
_UNKNOWN_KIND = Sick("it answers, but like no kind of server that is known; if it is one, set engine")


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, and whether it came from a Twolane router instead of an inference server."""

    answer: Answer
    from_router: bool


class Asker:
    """Asks one address for paths. Whatever goes wrong on the way is no reply; nothing is raised, kept or logged."""

    def __init__(
        self,
        base_url: str,
        api_key: SecretStr | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        socket_path: str = "",
    ) -> None:
        """`base_url` is what paths are appended to; with a `socket_path` it is asked there.

        Needs a running event loop; close it after use.
        """
        self.base_url = base_url
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key.get_secret_value()}"}
        self._session = aiohttp.ClientSession(
            # A connection that is kept open occupies one of the few threads of a llama.cpp server, and says nothing
            # about whether it still takes new ones.
            connector=aiohttp.UnixConnector(socket_path, limit=0, force_close=True)
            if socket_path
            else aiohttp.TCPConnector(
                limit=0,
                force_close=True,
                ssl=True if tls is None else tls,
                ttl_dns_cache=int(ADDRESSES_LIVE_S),  # like calls, or a backend that moved would stay down for longer
            ),
            timeout=aiohttp.ClientTimeout(total=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "twolane", "Accept-Encoding": "identity"},
            trust_env=False,
        )

    def __repr__(self) -> str:
        return f"<Asker {self.base_url}>"

    async def close(self) -> None:
        await self._session.close()

    async def ask(self, path: str, timeout_s: float) -> Reply | None:
        """None: no HTTP answer within the time, or one that is broken or too long."""
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._session.get(self.base_url + path, headers=self._headers, allow_redirects=False) as response,
            ):
                body = await _bounded(response.content)
                if body is None:
                    return None
                return Reply(Answer(response.status, body), _is_router(response.headers))
        except (aiohttp.ClientError, OSError, TimeoutError, UnicodeError):  # the last: no host can have that name
            return None

    async def ask_all(self, paths: Iterable[str], timeout_s: float) -> dict[str, Reply]:
        """Replies by path, asked all at once; a path without one is missing. Takes no longer than the slowest."""
        asked = tuple(paths)
        replies = await asyncio.gather(*(self.ask(path, timeout_s) for path in asked))
        return {path: reply for path, reply in zip(asked, replies, strict=True) if reply is not None}


async def _bounded(content: aiohttp.StreamReader) -> bytes | None:
    """The whole body; None: it is longer than is read."""
    pieces: list[bytes] = []
    size = 0
    async for piece in content.iter_any():
        size += len(piece)
        if size > MOST_BYTES:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _is_router(headers: Mapping[str, str]) -> bool:
    named = headers.get("Server", "").lower().startswith("twolane")
    return named or any(name.lower().startswith("x-twolane") for name in headers)


def loading_kind(answers: Answers) -> tuple[Engine, Loading] | None:
    """The kind of a server that says that it is loading its model, and how it says so."""
    for engine in ENGINES.values():
        answer = answers.get(engine.health_path)
        if answer is not None and isinstance(said := engine.ready(answer), Loading):
            return engine, said
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What one check found."""

    readiness: Ready | Loading | Sick | None
    """None: no answer."""
    load: Load | None
    """None: the server did not say."""
    at_s: float
    """When it began."""
    took_s: float


@dataclass(frozen=True, slots=True)
class _Scrape:
    load: Load | None
    complaints: tuple[str, ...] = ()
    refused: bool = False
    """Every path was answered, and none with a figure."""


class Prober:
    """Asks one backend. One question at a time: the next begins when the one before has ended."""

    def __init__(self, backend: Backend, *, clock: Clock, timeout_s: float = 5.0) -> None:
        """`timeout_s` is for each path; several are asked at once. Needs a running event loop; close it after use."""
        self.identity: Identity | None = None
        """As last recognised; outlives an outage."""
        self._name = backend.name
        self._asker = Asker(backend.base_url, backend.api_key, tls=backend.tls(), socket_path=backend.socket_path)
        self._clock = clock
        self._timeout_s = timeout_s
        self._configured: Engine | None = None if backend.engine == "auto" else ENGINES[backend.engine]
        self._likely: Engine | None = self._configured
        self._turn = asyncio.Lock()
        self._load_path: str | None = None
        self._no_load = False
        self._complained = False

    def __repr__(self) -> str:
        return f"<Prober of {self._name} at {self._asker.base_url}>"

    async def close(self) -> None:
        await self._asker.close()

    @property
    def engine(self) -> Engine | None:
        """The kind of server: as configured, else as recognised, else None."""
        if self._configured is not None:
            return self._configured
        return None if self.identity is None else ENGINES[self.identity.engine]

    async def identify(self) -> Identity | Loading | None:
        """Find out what the server is. None: no answer, or none that is known."""
        async with self._turn:
            return (await self._identify())[0]

    async def check(self) -> Probe:
        """Ask for health and load at once. A server of unknown kind is identified first; see `identity` then."""
        async with self._turn:
            began_s = self._clock()
            readiness, load = await self._check()
            return Probe(readiness=readiness, load=load, at_s=began_s, took_s=self._clock() - began_s)

    async def _identify(self) -> tuple[Identity | Loading | None, bool]:
        """What it is, and whether it answered at all."""
        self._no_load = False
        found: Identity | Loading | None = None
        answers: Answers = {}
        if self._likely is not None:
            answers = await self._answers(self._likely.identity_paths)
            found = self._read(self._likely, answers)
        if self._configured is None and found is None and (self._likely is None or answers):
            # Only now: what is no path of that kind fills the log of a server that was recognised before.
            answers = await self._answers(IDENTITY_PATHS)
            found = self._read(None, answers)
        if isinstance(found, Identity):
            self.identity = found = _completed(found, self.identity, answers)
        return found, bool(answers)

    def _read(self, kind: Engine | None, answers: Answers) -> Identity | Loading | None:
        """What the answers say; where the paths of one kind were asked, only if it is still of that kind."""
        loading = loading_kind(answers)
        if loading is not None:
            kind, said = loading
            self._likely = self._configured or kind
            return said
        if self._configured is not None:
            return _as_configured(self._configured, answers)
        found = recognise(answers) if kind is None else kind.recognise(answers)
        if not answers:
            return None  # it is slow; to ask for the paths of other kinds would make it slower
        # The last resort recognises too much to be asked alone: it may only be that a better path was slow.
        self._likely = None if found is None or found.engine == _LAST_RESORT else ENGINES[found.engine]
        return found

    async def _answers(self, paths: Iterable[str]) -> Answers:
        replies = await self._asker.ask_all(paths, self._timeout_s)
        return {path: reply.answer for path, reply in replies.items()}

    async def _check(self) -> tuple[Ready | Loading | Sick | None, Load | None]:
        engine = self.engine
        if engine is None:
            found, answered = await self._identify()
            match found:
                case Identity():
                    engine = ENGINES[found.engine]
                case Loading():
                    return found, None
                case None:
                    return _UNKNOWN_KIND if answered else None, None
        health, scrape = await asyncio.gather(
            self._asker.ask(engine.health_path, self._timeout_s), self._scrape(engine)
        )
        readiness = None if health is None else engine.ready(health.answer)
        if isinstance(readiness, Ready) and scrape.load is None:
            self._no_load = scrape.refused
            self._complain(scrape)
        return readiness, scrape.load

    async def _scrape(self, engine: Engine) -> _Scrape:
        """The load by the path that last told it, else by the first that does."""
        if self._no_load:
            return _Scrape(None, refused=True)
        models = None if self.identity is None else self.identity.models
        complaints: list[str] = []
        for path in sorted(engine.load_paths, key=lambda path: path != self._load_path):
            reply = await self._asker.ask(path, min(self._timeout_s, _LOAD_TIMEOUT_S))
            if reply is None:
                # The others wait for the same busy loop inside the server.
                return _Scrape(None, (*complaints, f"{path}: no answer"))
            load = engine.load({path: reply.answer}, models)
            if load is not None:
                self._load_path = path
                return _Scrape(load)
            complaints.append(f"{path}: HTTP {reply.answer.status} without figures")
        return _Scrape(None, tuple(complaints), refused=True)

    def _complain(self, scrape: _Scrape) -> None:
        """Once: missing figures are normal, and the router's own counts do without them."""
        if not self._complained and scrape.complaints:
            self._complained = True
            log.info("metrics_missing", backend=self._name, said=scrape.complaints, effect="only own calls are counted")


def _as_configured(engine: Engine, answers: Answers) -> Identity | None:
    """The operator's word on the kind stands, whatever a gateway in front does to the answers."""
    found = engine.recognise(answers) or recognise(answers)
    if found is not None:
        return replace(found, engine=engine.name)
    if any(answer.status == 200 for answer in answers.values()):
        return Identity(engine=engine.name)
    return None


def _completed(found: Identity, before: Identity | None, answers: Answers) -> Identity:
    """With what a path said earlier that gave no answer now: a busy server may be slow to tell its slots."""
    engine = ENGINES[found.engine]
    if before is None or before.engine != found.engine or all(path in answers for path in engine.identity_paths):
        return found
    return Identity(
        engine=found.engine,
        version=found.version or before.version,
        slots=before.slots if found.slots is None else found.slots,
        context_tokens=before.context_tokens if found.context_tokens is None else found.context_tokens,
        models=before.models if found.models is None else found.models,
    )
