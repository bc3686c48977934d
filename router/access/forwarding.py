"""What backends are told of the client's address: `X-Forwarded-For` and `X-Forwarded-Proto`. Pure.

From a trusted proxy these headers and their relatives pass, and its own address is added behind. What anybody else
writes there is a claim that nobody has checked: it is dropped, and the address that the router sees takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from router.wire.exchange import RawHeaders

FORWARDED = frozenset(
    {
        b"forwarded",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-port",
        b"x-forwarded-prefix",
        b"x-forwarded-proto",
        b"x-forwarded-server",
        b"x-real-ip",
    }
)
"""Lower-case names."""

_KEPT_PEERS = 4096
_LONGEST_ADDRESS = 64

Fields = list[tuple[bytes, bytes]]


class Forwarding:
    """`trusted`: networks in CIDR form, and `unix` for whoever is at the other end of a unix socket."""

    def __init__(self, trusted: Sequence[str]) -> None:
        self._networks = tuple(ip_network(text) for text in trusted if text != "unix")
        self._trusts_sockets = "unix" in trusted
        self._trusts = lru_cache(_KEPT_PEERS)(partial(_is_in, self._networks))

    def trusts(self, peer: str) -> bool:
        """`peer`: the address of the other end of the connection; empty: a unix socket."""
        if not peer:
            return self._trusts_sockets
        return bool(self._networks) and self._trusts(peer)

    def fields(self, headers: RawHeaders, peer: str, *, tls: bool) -> Fields:
        """Fields for a backend, in place of all those in `FORWARDED` that came."""
        if not self.trusts(peer):
            return _seen(peer, tls=tls)
        passed = [field for field in headers if field[0].lower() in FORWARDED]
        told = {name.lower() for name, _ in passed}
        if peer:
            chain = [value for name, value in passed if name.lower() == b"x-forwarded-for"]
            passed = [field for field in passed if field[0].lower() != b"x-forwarded-for"]
            passed.append((b"X-Forwarded-For", b", ".join((*chain, peer.encode("ascii")))))
        if b"x-forwarded-proto" not in told:
            passed.append((b"X-Forwarded-Proto", b"https" if tls else b"http"))
        return passed

    def client(self, headers: RawHeaders, peer: str) -> str:
        """Address of whoever called, as far as trusted proxies vouch for it; else that of the other end."""
        if not self.trusts(peer):
            return peer
        named = [value for name, value in headers if name.lower() == b"x-forwarded-for"]
        for hop in reversed(b",".join(named).decode("latin-1").split(",")):
            address = hop.strip()
            if address and not self._vouched(address):
                return address[:_LONGEST_ADDRESS]
        return peer

    def _vouched(self, address: str) -> bool:
        """Whether it is one of the trusted proxies; what is no address stands for somebody else."""
        try:
            return bool(self._networks) and self._trusts(address)
        except ValueError:
            return False


def _seen(peer: str, *, tls: bool) -> Fields:
    scheme = (b"X-Forwarded-Proto", b"https" if tls else b"http")
    return [(b"X-Forwarded-For", peer.encode("ascii")), scheme] if peer else [scheme]


def _is_in(networks: Sequence[IPv4Network | IPv6Network], peer: str) -> bool:
    address = ip_address(peer)
    return any(address in network for network in networks)
