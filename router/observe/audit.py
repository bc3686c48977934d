"""Audit: who changed what, and which keys are used. A logger of its own, `twolane.audit`, whatever `log.level` shows.

Entries are few: changes are made by people, and of a key there is one at its first call and then one an hour with what
it did since. Wrong keys are told at once and then once a minute, with their number.
"""

from __future__ import annotations

import logging
from typing import Any, Final

import structlog

from router.observe.facts import CallFacts
from router.observe.few import Few

NAME: Final = "twolane.audit"
KEY_EVERY_S: Final = 3600.0
DENIED_EVERY_S: Final = 60.0

log: Any = structlog.wrap_logger(
    None,
    wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET),
    logger_factory_args=(NAME,),
)


class Audit:
    """`shown`: entries are written (`log.audit`)."""

    def __init__(self, *, shown: bool) -> None:
        self.shown = shown
        self._names = Few()
        self._keys: dict[str, _Use] = {}
        self._denied = _Use()

    def tell(self, event: str, **fields: Any) -> None:
        """Something was changed by somebody."""
        if self.shown:
            log.info(event, logger=NAME, **fields)

    def call_ended(self, facts: CallFacts, now_s: float) -> None:
        """Of calls that showed a key, or should have."""
        if facts.key:
            name = self._names.of(facts.key, now_s)
            use = self._keys.get(name)
            if use is None:
                use = self._keys[name] = _Use()
            use.add(facts)
            if use.due(now_s, KEY_EVERY_S):
                self._key_used(name, use, now_s)
        elif facts.outcome == "denied":
            self._denied.add(facts)
            if self._denied.due(now_s, DENIED_EVERY_S):
                self.tell("key_denied", request_id=facts.request_id, calls=self._denied.taken(now_s)["calls"])

    def close(self, now_s: float) -> None:
        """Tell what was not told yet."""
        for name, use in self._keys.items():
            if use.calls:
                self._key_used(name, use, now_s)
        if self._denied.calls:
            self.tell("key_denied", calls=self._denied.taken(now_s)["calls"])

    def _key_used(self, name: str, use: _Use, now_s: float) -> None:
        self.tell("key_used", key=name, **use.taken(now_s))


class _Use:
    """What was done since it was told last."""

    __slots__ = ("_told_s", "calls", "tokens_in", "tokens_out")

    def __init__(self) -> None:
        self.calls = self.tokens_in = self.tokens_out = 0
        self._told_s: float | None = None

    def add(self, facts: CallFacts) -> None:
        self.calls += 1
        self.tokens_in += facts.prompt_tokens or 0
        self.tokens_out += facts.output_tokens or 0

    def due(self, now_s: float, every_s: float) -> bool:
        return self._told_s is None or now_s - self._told_s >= every_s

    def taken(self, now_s: float) -> dict[str, int]:
        done = {"calls": self.calls, "tokens_in": self.tokens_in, "tokens_out": self.tokens_out}
        self.calls = self.tokens_in = self.tokens_out = 0
        self._told_s = now_s
        return done
