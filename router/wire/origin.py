"""Where a backend listens: the part of its URL that a connection needs."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Scheme, host and port, or a unix socket. `host` has no brackets, also for IPv6."""

    tls: bool
    host: str
    port: int
    path: str = ""
    """Of a unix socket; what is asked over it is asked of localhost."""

    @classmethod
    def of(cls, url: str) -> Origin:
        """Raises `ValueError` for anything but `http://host[:port]`, `https://host[:port]` and `unix:/path`.

        The path of a URL is ignored.
        """
        if url.startswith("unix:/"):
            return cls(tls=False, host="localhost", port=_DEFAULT_PORTS["http"], path=url.removeprefix("unix:"))
        parts = urlsplit(url)
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
            raise ValueError(f"expected http://host:port, https://host:port or unix:/path, got {url!r}")
        return cls(
            tls=parts.scheme == "https",
            host=parts.hostname.encode("idna").decode("ascii"),
            port=parts.port or _DEFAULT_PORTS[parts.scheme],
        )

    @property
    def authority(self) -> str:
        """As the `Host` field wants it: brackets around IPv6, no port where it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS["https" if self.tls else "http"] else f"{host}:{self.port}"

    def __str__(self) -> str:
        if self.path:
            return f"unix:{self.path}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"
