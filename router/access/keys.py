"""Whose call is it, and may this one come in now? Asked once per call, before its body is read.

A presented key is hashed and compared with every key there is, in constant time each, so that the time of the answer
tells neither how much of a key was right nor whose it was. Keys are kept as hashes only.

State is one bucket per limit and one counter per key. The clock is an argument; nothing here waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from hmac import compare_digest

from router.bucket import Bucket
from router.errors import RateLimited, Unauthorized
from router.settings.security import ClientKey
from router.wire.exchange import RawHeaders

_CARRIERS = frozenset({b"authorization", b"x-api-key", b"api-key"})
_MOST_CREDENTIALS = 4
"""Of one request; some clients send the same key in two headers."""
_SOON_S = 1.0
"""When to try again where only the end of another call makes room."""

Fields = list[tuple[bytes, bytes]]


class Access:
    """All keys. Without any, everybody may call."""

    def __init__(self, keys: Sequence[ClientKey], now_s: float) -> None:
        self._guests: tuple[Guest, ...] = ()
        self.configure(keys, now_s)

    def configure(self, keys: Sequence[ClientKey], now_s: float) -> None:
        """After a reload. A key that keeps its name keeps its counts; running calls go on."""
        before = {guest.name: guest for guest in self._guests}
        self._guests = tuple(before.get(key.name) or Guest(key.name) for key in keys)
        for guest, key in zip(self._guests, keys, strict=True):
            guest.configure(key, now_s)

    def identify(self, headers: RawHeaders) -> Visit | None:
        """None: no keys are configured. Raises `Unauthorized`, always with the same words."""
        if not self._guests:
            return None
        for credential in _credentials(headers):
            digest = sha256(credential).digest()
            known = None
            for guest in self._guests:
                if compare_digest(guest.digest, digest):
                    known = guest
            if known is not None:
                return Visit(known)
        raise Unauthorized("the API key is missing or wrong; send it as Authorization: Bearer KEY, or as x-api-key")


class Guest:
    """One key: its hash, its limits, and what is used up of them."""

    __slots__ = ("calls", "digest", "name", "open", "parallel", "tokens")

    def __init__(self, name: str) -> None:
        self.name = name
        self.digest = b""
        self.open = 0
        self.parallel: int | None = None
        self.calls: Bucket | None = None
        self.tokens: Bucket | None = None

    def __repr__(self) -> str:
        return f"<Guest {self.name}: {self.open} open>"

    def configure(self, key: ClientKey, now_s: float) -> None:
        self.digest = sha256(key.secret.encode()).digest()
        self.parallel = key.parallel
        self.calls = _resized(self.calls, key.calls_per_minute, now_s)
        self.tokens = _resized(self.tokens, key.tokens_per_minute, now_s)


def _resized(bucket: Bucket | None, per_minute: int | None, now_s: float) -> Bucket | None:
    if per_minute is None:
        return None
    if bucket is None:
        return Bucket(per_minute, now_s)
    if bucket.capacity != per_minute:
        bucket.resize(per_minute, now_s)
    return bucket


class Visit:
    """One call of one key: `enter`, `expect`, `leave`, `settle`."""

    __slots__ = ("_charged", "_entered", "_guest")

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._entered = False
        self._charged = 0
        """Tokens taken so far."""

    @property
    def name(self) -> str:
        return self._guest.name

    def enter(self, now_s: float) -> None:
        """Count the call. Raises `RateLimited`; it is not counted then."""
        guest = self._guest
        if guest.parallel is not None and guest.open >= guest.parallel:
            raise RateLimited(
                f"{guest.open} calls of this key are open, and it may have {guest.parallel} at once; "
                "wait for one of them to end",
                retry_after_s=_SOON_S,
            )
        for bucket, units in ((guest.tokens, "tokens"), (guest.calls, "calls")):
            if bucket is not None and (wait_s := bucket.wait_s(now_s)) > 0:
                raise RateLimited(
                    f"this key has used up its {bucket.capacity:.0f} {units} per minute; try again in {wait_s:.3g} s",
                    retry_after_s=wait_s,
                )
        if guest.calls is not None:
            guest.calls.take(1, now_s)
        guest.open += 1
        self._entered = True

    def expect(self, tokens: int, now_s: float) -> None:
        """An estimate of the prompt, taken before it is sent, so that many calls at once cannot all pass."""
        self._charge(tokens, now_s)

    def leave(self) -> None:
        """The call is over, or never came in."""
        if self._entered:
            self._entered = False
            self._guest.open -= 1

    def settle(self, tokens: int | None, now_s: float) -> None:
        """What the call took in the end, in place of what was expected. None: not known, the estimate stands."""
        if tokens is not None:
            self._charge(tokens, now_s)

    def _charge(self, tokens: int, now_s: float) -> None:
        bucket = self._guest.tokens
        if bucket is not None:
            bucket.take(tokens - self._charged, now_s)
            self._charged = tokens

    def headers(self, now_s: float) -> Fields:
        """What is left of the limits, in the headers that OpenAI's clients know."""
        found: Fields = []
        if self._guest.calls is not None:
            found += _told(b"requests", self._guest.calls, now_s)
        if self._guest.tokens is not None:
            found += _told(b"tokens", self._guest.tokens, now_s)
        return found


def _told(units: bytes, bucket: Bucket, now_s: float) -> Fields:
    return [
        (b"X-RateLimit-Limit-" + units, b"%d" % bucket.capacity),
        (b"X-RateLimit-Remaining-" + units, b"%d" % max(0, bucket.level(now_s))),
        (b"X-RateLimit-Reset-" + units, b"%.3fs" % bucket.full_in_s(now_s)),
    ]


def _credentials(headers: RawHeaders) -> Iterator[bytes]:
    """Keys as they are presented, in the order of the headers."""
    found = 0
    for name, value in headers:
        lower = name.lower()
        if lower not in _CARRIERS:
            continue
        if lower == b"authorization":
            scheme, _, value = value.partition(b" ")
            if scheme.lower() != b"bearer":
                continue
        yield value.strip()
        found += 1
        if found == _MOST_CREDENTIALS:
            return
