"""What of a backend's URL a connection needs."""

from __future__ import annotations

import pytest

from router.wire.origin import Origin


@pytest.mark.parametrize(
    ("url", "host", "port", "authority"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1", 8000, "127.0.0.1:8000"),
        ("http://rack:8000/v1/", "rack", 8000, "rack:8000"),
        ("http://rack", "rack", 80, "rack"),
        ("http://rack:443", "rack", 443, "rack:443"),
        ("http://[::1]:8080", "::1", 8080, "[::1]:8080"),
        ("http://[::1]", "::1", 80, "[::1]"),
        ("http://Bücher.example:8000", "xn--bcher-kva.example", 8000, "xn--bcher-kva.example:8000"),
    ],
)
def test_host_and_port_as_connections_and_the_host_field_want_them(
    url: str, host: str, port: int, authority: str
) -> None:
    origin = Origin.of(url)
    assert (origin.host, origin.port, origin.authority, origin.tls) == (host, port, authority, False)


def test_https_has_its_own_port() -> None:
    origin = Origin.of("https://rack")
    assert (origin.tls, origin.port, origin.authority) == (True, 443, "rack")
    assert Origin.of("https://rack:80").authority == "rack:80"


@pytest.mark.parametrize("url", ["rack:8000", "ftp://rack", "http://", "unix:run/rack", "http://rack:99999"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Origin.of(url)


def test_a_unix_socket_is_asked_as_localhost() -> None:
    origin = Origin.of("unix:/run/rack.sock")
    assert (origin.path, origin.authority, origin.tls) == ("/run/rack.sock", "localhost", False)
    assert str(origin) == "unix:/run/rack.sock"


def test_it_reads_as_host_and_port() -> None:
    assert str(Origin.of("http://[::1]")) == "[::1]:80"
