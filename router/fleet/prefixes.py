"""How much of a prompt each backend is likely to have in its cache: sent there before, not pushed out since, and as
far as the engine's own reports bear it out.

    cached tokens = prompt tokens x (trust x share that it should hold + late trust x share that it should have dropped)

Both trusts are learned per backend from what engines report (`cached_tokens`, llama.cpp's `cache_n`), by tokens, over
about the last ten reports: a vLLM without prefix caching comes to 0 within a few calls, a llama.cpp that keeps old
prompts in main memory is found to have what it should have dropped. Where an engine never reports, its kind decides.

Where the text shares nothing, or cannot be compared, but the caller names the conversation, the prompt before of that
conversation stands in: half of it at first, and then as much as reports bear out.

Memory is bounded: `_MOST_BLOCKS` for all backends together, of about 150 bytes each, and never less than
`_LEAST_BLOCKS` for each of them; slots hold their last prompts and some 32 more. Hashes only, no text.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from classifiers.api import Features
from classifiers.blocks import Blocks
from classifiers.hints import BY_OPENING
from router.engines.api import Identity, Load
from router.fleet.backend import Backend
from router.fleet.caches import NO_MATCH, Cache, Match, Slots, Store
from router.fleet.fleet import Fleet

_MOST_BLOCKS: Final = 32_768
_LEAST_BLOCKS: Final = 4_096
_STORE_TOKENS: Final = 200_000
"""Of a batching engine that does not say how much fits."""
_SLOTS: Final = 4
"""Of an engine with slots that does not say how many."""
_CONVERSATIONS: Final = 20_000

_DECAY: Final = 0.9
_PRIOR_TOKENS: Final = 500.0
"""That a first belief weighs against reports."""


class Trust:
    """Share of what was predicted that was really cached."""

    __slots__ = ("_predicted", "_prior_0_1", "_real")

    def __init__(self, prior_0_1: float) -> None:
        self._prior_0_1 = prior_0_1
        self._predicted = self._real = 0.0

    @property
    def share_0_1(self) -> float:
        return (self._prior_0_1 * _PRIOR_TOKENS + self._real) / (_PRIOR_TOKENS + self._predicted)

    def learn(self, predicted_tokens: float, real_tokens: float) -> None:
        """`real_tokens` beyond what was predicted say nothing about it."""
        self._predicted = _DECAY * self._predicted + predicted_tokens
        self._real = _DECAY * self._real + min(max(real_tokens, 0.0), predicted_tokens)


class _Known:
    """What is remembered of one backend, as long as it is the same server."""

    __slots__ = (
        "_most_blocks",
        "_slots",
        "_tokens",
        "backend",
        "cache",
        "engine",
        "identity",
        "late",
        "load",
        "outages",
        "trust",
        "word",
    )

    cache: Cache

    def __init__(self, backend: Backend, most_blocks: int) -> None:
        self.backend = backend
        self.identity = backend.identity
        self.engine = backend.engine
        self.load: Load | None = None
        self.trust = Trust(1.0)
        self.late = Trust(0.0)
        self.word = Trust(0.5)
        self._slots = _slots(backend)
        self._most_blocks = most_blocks
        self._tokens = _STORE_TOKENS
        self._forget()

    @property
    def same(self) -> bool:
        """Nothing has happened to the server since this was last asked."""
        backend = self.backend
        return (
            self.load is backend.foreign.load
            and self.outages == backend.health.outages
            and self.identity is backend.identity
            and self.engine is backend.engine
        )

    def is_of(self, backend: Backend) -> bool:
        return self.backend is backend and self.engine is backend.engine and _goes_on(self.identity, backend.identity)

    def catch_up(self) -> None:
        """Forget what it forgot, and hear what it says of the size of its cache."""
        if self.outages != self.backend.health.outages:
            self._forget()
        self.identity = self.backend.identity
        self.load = self.backend.foreign.load
        tokens = self.load.cache_tokens if self.load is not None else None
        if tokens is not None and tokens != self._tokens:
            self._tokens = tokens
            self.cache.resize(tokens)

    def _forget(self) -> None:
        """It was down or loading, so its cache is empty; what its engine does with caches is the same."""
        self.outages = self.backend.health.outages
        self.cache = Slots(self._slots) if self._slots is not None else Store(self._tokens, self._most_blocks)


class _Said(NamedTuple):
    """An answer, and what it is true for."""

    known: _Known
    cache: Cache
    version: int
    match: Match
    tokens: int

    @property
    def still(self) -> bool:
        """Nothing has happened since."""
        known, cache = self.known, self.cache
        return cache is known.cache and self.version == cache.version and known.same


class Prefix(Mapping[str, int]):
    """One prompt; tokens at its head that each backend is likely to have, at the moment at which it is asked.

    Told when the call is sent to a backend, and how it ended.
    """

    __slots__ = ("_asked", "_prefixes", "_sent", "blocks", "key", "prompt_tokens")

    def __init__(self, prefixes: Prefixes, blocks: Blocks, prompt_tokens: int) -> None:
        self._prefixes = prefixes
        self._asked: dict[str, _Said] = {}
        self._sent: _Sent | None = None
        self.blocks = blocks
        self.prompt_tokens = prompt_tokens
        self.key = ""
        """Of its conversation, if that is known."""

    def __getitem__(self, backend: str) -> int:
        return self.get(backend)

    def get(self, backend: str, default: object = 0) -> int:
        """0 for a backend that is not there, whatever the default."""
        said = self._asked.get(backend)
        if said is not None:  # asked several times for each decision, so `still` is written out
            known, cache, version, _, tokens = said
            if cache is known.cache and version == cache.version and known.same:
                return tokens
        return self._prefixes.cached_tokens(self, backend, self._asked)

    def __iter__(self) -> Iterator[str]:
        return iter(self._prefixes.backends())

    def __len__(self) -> int:
        return len(self._prefixes.backends())

    def sent(self, backend: str) -> None:
        """It goes there."""
        self._sent = self._prefixes.send(self, backend, self._asked.get(backend))
        self._asked = {}  # while the call runs, caches that are forgotten meanwhile are not to be kept by it

    def turned_away(self) -> None:
        """The backend to which it was sent did not begin on it."""
        sent, self._sent = self._sent, None
        if sent is not None:
            sent.cache.turned_away(sent.ticket)

    def ended(
        self, *, prompt_tokens: int | None, cached_tokens: int | None, output_tokens: int | None, complete: bool
    ) -> None:
        """As the engine reports it; None: it did not say. Nothing happens where it was sent nowhere."""
        sent, self._sent = self._sent, None
        if sent is None:
            return
        sent.cache.ended(sent.ticket, output_tokens or 0 if complete else 0)
        if complete and cached_tokens is not None:
            sent.learn(prompt_tokens or self.prompt_tokens, cached_tokens)


class _Sent:
    """Where a prompt was sent, and what was expected of it there."""

    __slots__ = ("by_word_tokens", "cache", "known", "match", "ticket")

    def __init__(self, known: _Known, match: Match, by_word_tokens: int, ticket: object) -> None:
        self.known = known
        self.cache = known.cache
        self.match = match
        self.by_word_tokens = by_word_tokens
        self.ticket = ticket

    def learn(self, prompt_tokens: int, cached_tokens: int) -> None:
        held = self.match.held_0_1 * prompt_tokens
        late = self.match.faded_0_1 * prompt_tokens - held
        if held:
            self.known.trust.learn(held, cached_tokens)
        if late:
            self.known.late.learn(late, cached_tokens - held)
        if self.by_word_tokens:
            self.known.word.learn(self.by_word_tokens, cached_tokens)


class Prefixes:
    """What all backends are likely to have cached."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._known: dict[str, _Known] = {}
        self._conversations: OrderedDict[str, tuple[str, int]] = OrderedDict()
        """By key: the backend that had the last prompt, and its tokens."""

    def of(self, features: Features, blocks: Blocks) -> Prefix:
        return Prefix(self, blocks, features.prompt_tokens)

    def backends(self) -> list[str]:
        return [backend.name for backend in self._fleet.backends()]

    def trust(self, backend: str) -> tuple[float, float]:
        """Shares of what it should hold, and of what it should have dropped, that it is expected to have."""
        known = self._of(backend)
        return (known.trust.share_0_1, known.late.share_0_1) if known is not None else (0.0, 0.0)

    def cached_tokens(self, prefix: Prefix, backend: str, asked: dict[str, _Said]) -> int:
        """0 for a backend that is not there. The answer is noted in `asked`."""
        known = self._of(backend)
        if known is None:
            return 0
        if not prefix.blocks.hashes:
            return self._of_conversation(prefix, known)
        cache = known.cache
        match, tokens = cache.match(prefix.blocks, prefix.prompt_tokens), 0
        if match is not NO_MATCH:
            late_0_1 = match.faded_0_1 - match.held_0_1
            share = known.trust.share_0_1 * match.held_0_1 + known.late.share_0_1 * late_0_1
            # One token at least is always computed anew.
            tokens = max(0, min(round(share * prefix.prompt_tokens), prefix.prompt_tokens - 1))
        if not (match.held_0_1 and prefix.blocks.whole):
            tokens = max(tokens, self._of_conversation(prefix, known))
        asked[backend] = _Said(known, cache, cache.version, match, tokens)
        return tokens

    def _of_conversation(self, prefix: Prefix, known: _Known) -> int:
        """Where the text does not tell: the prompt before of the same conversation, if it was there."""
        trust = known.word if prefix.blocks.whole else known.trust
        return round(trust.share_0_1 * self._last_tokens(prefix, known))

    def _last_tokens(self, prefix: Prefix, known: _Known) -> int:
        """That this prompt may share with the one before of its conversation; 0 where that was sent elsewhere."""
        name, tokens = self._conversations.get(prefix.key) or ("", 0)
        return max(0, min(tokens, prefix.prompt_tokens - 1)) if name == known.backend.name else 0

    def send(self, prefix: Prefix, backend: str, said: _Said | None) -> _Sent | None:
        """`said`: what was found when it was asked for there last."""
        known = self._of(backend)
        if known is None:
            return None
        blocks = prefix.blocks
        match = NO_MATCH
        if blocks.hashes:
            match = said.match if said is not None and said.still else known.cache.match(blocks, prefix.prompt_tokens)
        by_word = self._last_tokens(prefix, known) if blocks.whole and not match.held_0_1 else 0
        self._remember(prefix, backend)
        if not blocks.hashes:
            return None
        return _Sent(known, match, by_word, known.cache.sent(blocks, prefix.prompt_tokens))

    def _remember(self, prefix: Prefix, backend: str) -> None:
        """A conversation that is known by its beginning alone is known better by its blocks."""
        key = prefix.key
        if not key or (prefix.blocks.whole and key.startswith(BY_OPENING)):
            return
        self._conversations[key] = (backend, prefix.prompt_tokens)
        self._conversations.move_to_end(key)
        if len(self._conversations) > _CONVERSATIONS:
            self._conversations.popitem(last=False)

    def _of(self, name: str) -> _Known | None:
        """Up to date with what the server is; None: there is no such backend (any more)."""
        backend, known = self._fleet.backend(name), self._known.get(name)
        if backend is not None and known is not None and known.backend is backend and known.same:
            return known
        return self._renewed(name, backend, known)

    def _renewed(self, name: str, backend: Backend | None, known: _Known | None) -> _Known | None:
        if backend is None:
            self._known.pop(name, None)
            return None
        if known is None or not known.is_of(backend):
            there = self.backends()
            self._known = {each: kept for each, kept in self._known.items() if each in there}
            known = self._known[name] = _Known(backend, self._blocks_each())
        known.catch_up()
        return known

    def _blocks_each(self) -> int:
        return max(_LEAST_BLOCKS, _MOST_BLOCKS // max(4, len(self._fleet.backends())))


def _goes_on(before: Identity | None, now: Identity | None) -> bool:
    """Whether it may be the same process: it may have got more models, or less context for each."""
    if before is None or now is None:
        return before is now
    same = (before.engine, before.version, before.slots) == (now.engine, now.version, now.slots)
    return same and set(before.models or ()) <= set(now.models or ())


def _slots(backend: Backend) -> int | None:
    """Prompts that it keeps, one in each slot; None: it keeps blocks of all."""
    if not backend.engine.caches_by_slot:
        return None
    said = backend.identity.slots if backend.identity is not None else None
    return said or backend.engine.default_slots or _SLOTS
