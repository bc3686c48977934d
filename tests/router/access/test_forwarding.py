"""What backends are told of the client's address."""

from __future__ import annotations

import pytest

from router.access.forwarding import Forwarding
from router.wire.exchange import RawHeaders

CLAIMS: RawHeaders = [
    (b"X-Forwarded-For", b"1.2.3.4"),
    (b"x-forwarded-proto", b"https"),
    (b"X-Forwarded-Host", b"chat.example"),
    (b"Forwarded", b"for=1.2.3.4"),
    (b"Accept", b"*/*"),
]


def test_what_strangers_claim_is_dropped_and_what_the_router_sees_is_told() -> None:
    assert Forwarding(()).fields(CLAIMS, "10.0.0.7", tls=False) == [
        (b"X-Forwarded-For", b"10.0.0.7"),
        (b"X-Forwarded-Proto", b"http"),
    ]


def test_what_a_trusted_proxy_says_passes_and_its_own_address_comes_behind() -> None:
    assert Forwarding(["10.0.0.0/8"]).fields(CLAIMS, "10.0.0.7", tls=False) == [
        (b"x-forwarded-proto", b"https"),
        (b"X-Forwarded-Host", b"chat.example"),
        (b"Forwarded", b"for=1.2.3.4"),
        (b"X-Forwarded-For", b"1.2.3.4, 10.0.0.7"),
    ]


def test_a_proxy_that_says_nothing_is_told_of_like_a_client() -> None:
    assert Forwarding(["10.0.0.0/8"]).fields([], "10.0.0.7", tls=True) == [
        (b"X-Forwarded-For", b"10.0.0.7"),
        (b"X-Forwarded-Proto", b"https"),
    ]


def test_repeated_lists_become_one() -> None:
    lists: RawHeaders = [(b"X-Forwarded-For", b"1.1.1.1"), (b"x-forwarded-for", b"2.2.2.2")]
    assert (b"X-Forwarded-For", b"1.1.1.1, 2.2.2.2, ::1") in Forwarding(["::1"]).fields(lists, "::1", tls=False)


@pytest.mark.parametrize(
    ("trusted", "peer", "is_trusted"),
    [
        (["10.0.0.0/8"], "10.255.0.1", True),
        (["10.0.0.0/8"], "11.0.0.1", False),
        (["127.0.0.1"], "127.0.0.1", True),
        (["fd00::/8"], "fd12::1", True),
        (["fd00::/8"], "10.0.0.1", False),
        (["unix"], "", True),
        (["10.0.0.0/8"], "", False),
        ([], "127.0.0.1", False),
        (["fe80::/10"], "fe80::1%eth0", True),
    ],
)
def test_a_peer_is_trusted_by_its_network(trusted: list[str], peer: str, is_trusted: bool) -> None:
    assert Forwarding(trusted).trusts(peer) is is_trusted


def test_a_unix_socket_has_no_address_to_tell() -> None:
    assert Forwarding(()).fields(CLAIMS, "", tls=False) == [(b"X-Forwarded-Proto", b"http")]
    assert (b"X-Forwarded-For", b"1.2.3.4") in Forwarding(["unix"]).fields(CLAIMS, "", tls=False)
