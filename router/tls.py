"""TLS of both sides: what certificates prove, and to whom. Reads files where it is asked to, keeps nothing."""

from __future__ import annotations

import os
import ssl

_OLDEST = ssl.TLSVersion.TLSv1_2


class BadCertificate(ValueError):
    """A certificate or key that cannot be used. The message says what to do and quotes nothing of the file."""


def server_context(cert: str | os.PathLike[str], key: str | os.PathLike[str]) -> ssl.SSLContext:
    """For a port of the router: a certificate with its chain, and its key, both PEM. Raises `BadCertificate`."""
    context = _server_context()
    try:
        context.load_cert_chain(cert, key, password=_no_password)
    except ssl.SSLError as error:
        raise BadCertificate(_why_not(error)) from None
    except OSError as error:
        raise BadCertificate(f"cannot be read: {error.strerror}") from None
    return context


def client_context(*, authorities: str | None = None, verify: bool = True) -> ssl.SSLContext:
    """For calls to a backend. `authorities`: PEM certificates that count in place of those of the system.

    Raises `BadCertificate` where there is none among them.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = _OLDEST
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authorities is None:
        context.load_default_certs()
    else:
        try:
            # Bundles have names between the certificates, in all alphabets.
            context.load_verify_locations(cadata=authorities.encode("ascii", "replace").decode())
        except (ssl.SSLError, ValueError):  # ValueError: no text at all
            raise BadCertificate("expected certificates in PEM form (-----BEGIN CERTIFICATE-----)") from None
    return context


class ServerTls:
    """What the ports of the router show to their clients; may be replaced while they listen."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.current = context
        """For handshakes from now on; connections that stand are not touched."""
        self.front = _server_context()
        """For listeners. It has no certificate: the current context takes over as soon as a client has said hello."""
        self.front.sni_callback = self._take_over

    def _take_over(self, connection: ssl.SSLObject, name: str | None, front: ssl.SSLContext) -> None:
        connection.context = self.current


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _OLDEST
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_password() -> str:
    # Without this, OpenSSL would ask the terminal.
    raise BadCertificate("the private key is encrypted; give one without a passphrase")


def _why_not(error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the key does not belong to the certificate; give a pair"
    return "expected a certificate and a private key in PEM form (-----BEGIN ...)"
