"""Certificates for tests: an authority of their own, and pairs of certificate and key as files."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme


@dataclass(frozen=True)
class Pair:
    """Two PEM files."""

    cert: Path
    key: Path

    @property
    def settings(self) -> dict[str, str]:
        """As `tls:` has them."""
        return {"cert": str(self.cert), "key": str(self.key)}

    def context(self) -> ssl.SSLContext:
        """For a server of the test's own."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.cert, self.key)
        return context


class Authority:
    """Signs certificates and puts them into a folder."""

    def __init__(self, folder: Path) -> None:
        self._ca = trustme.CA()
        self._folder = folder
        self.file = folder / "authority.pem"
        self._ca.cert_pem.write_to_path(self.file)

    def pair(self, *names: str, stem: str = "router") -> Pair:
        """A certificate for these names or addresses; one that is there already is replaced."""
        made = self._ca.issue_cert(*names)
        pair = Pair(self._folder / f"{stem}.pem", self._folder / f"{stem}.key")
        draft = self._folder / "draft"
        draft.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
        draft.replace(pair.cert)
        draft.write_bytes(made.private_key_pem.bytes())
        draft.replace(pair.key)
        return pair

    def trusted(self) -> ssl.SSLContext:
        """For a client that trusts this authority alone."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._ca.configure_trust(context)
        return context
