"""What only shows when two places of a file are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from urllib.parse import urlsplit

from classifiers.api import CallClass
from policies.api import Lane
from router.settings.fields import UNIX, Address
from router.settings.problems import Path


def repeated_names(names: Sequence[object]) -> Iterator[tuple[Path, str]]:
    """Names that two backends share; what is no text is passed over."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if isinstance(name, str) and name in seen:
            yield ("backends", index, "name"), f"a second backend called {name}; names must differ"
        elif isinstance(name, str):
            seen.add(name)


def dangling_names(
    names: Sequence[str], models: Mapping[str, Mapping[str, object]], passthrough: str | None
) -> Iterator[tuple[Path, str]]:
    """Mentions of backends that do not exist."""
    known = dict.fromkeys(names)
    nobody = f"no backend has this name (known: {', '.join(islice(known, 12))}{', ...' if len(known) > 12 else ''})"
    for public, per_backend in models.items():
        yield from ((("models", public, name), nobody) for name in per_backend if name not in known)
    if passthrough is not None and passthrough not in known:
        yield ("passthrough",), f"{nobody}; write null for none"


def unserved_classes(
    lanes: Mapping[CallClass, Sequence[Lane]], present: Sequence[Lane | None]
) -> Iterator[tuple[Path, str]]:
    """Classes whose calls would wait in vain, since no backend is in a lane of theirs; `present`: that of each backend,
    None where it is for the server to say, and then nothing is known."""
    if None in present:
        return
    there = " and ".join(lane for lane in Lane if lane in present)
    for call_class, wanted in lanes.items():
        if not set(wanted) & set(present):
            yield (
                ("classes", call_class, "lanes"),
                f"no backend is in the lane {' or '.join(wanted)}, so nothing could serve these calls; add the lane "
                f"{there}, where there are backends",
            )


def circles(listen: Address, admin: Address | None, urls: Sequence[str]) -> Iterator[tuple[Path, str]]:
    """Places where the router would call itself."""
    if admin is not None and (admin.port or admin.path) and admin == listen:
        yield ("admin",), "the same address as listen; give one of them another"
    for key, address in (("listen", listen), ("admin", admin)):
        for index, url in enumerate(urls):
            if address is not None and is_address_of(url, address):
                yield ("backends", index, "url"), f"this is {key}, the router's own address; move one of them"


_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_WILDCARD = ("0.0.0.0", "::")


def is_address_of(url: str, address: Address) -> bool:
    """Whether a call to `url` would reach a listener on `address` of this machine, as far as their text tells."""
    if address.path:
        return url == f"{UNIX}{address.path}"
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:  # no URL at all; that is for others to say
        return False
    host = parts.hostname
    here = host in (*_LOOPBACK, *_WILDCARD)
    same_host = host == address.host or (here and (address.host in _WILDCARD or host == "localhost"))
    return port == address.port and same_host
