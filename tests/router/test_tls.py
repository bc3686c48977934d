"""Contexts for both sides, and what is said of certificates that cannot be used."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from router.tls import BadCertificate, client_context, server_context
from tests.certificates import Authority


def test_a_pair_makes_a_context_for_a_port(tmp_path: Path) -> None:
    pair = Authority(tmp_path).pair("localhost")
    context = server_context(pair.cert, pair.key)
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.verify_mode is ssl.CERT_NONE  # clients show keys, not certificates


def test_what_is_wrong_with_a_pair_is_said(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair, other = authority.pair("localhost"), authority.pair("localhost", stem="other")
    with pytest.raises(BadCertificate, match="the key does not belong to the certificate"):
        server_context(pair.cert, other.key)
    with pytest.raises(BadCertificate, match="expected a certificate and a private key in PEM form"):
        server_context(pair.key, pair.cert)
    with pytest.raises(BadCertificate, match="cannot be read: No such file"):
        server_context(tmp_path / "none", pair.key)


def test_a_backend_is_verified_unless_somebody_said_not_to(tmp_path: Path) -> None:
    assert client_context().verify_mode is ssl.CERT_REQUIRED
    assert client_context().check_hostname
    assert client_context(verify=False).verify_mode is ssl.CERT_NONE
    own = client_context(authorities=Authority(tmp_path).file.read_text(encoding="utf-8"))
    assert own.verify_mode is ssl.CERT_REQUIRED
    assert len(own.get_ca_certs()) == 1


def test_a_bundle_may_have_names_in_any_alphabet_between_its_certificates(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
    pems = [Authority(folder).file.read_text(encoding="utf-8") for folder in folders]
    bundle = f"# Főtanúsítvány\n{pems[0]}\n# 根证书\n{pems[1]}"
    assert len(client_context(authorities=bundle).get_ca_certs()) == 2


@pytest.mark.parametrize(
    "text", ["", "no PEM", "ünicode", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"]
)
def test_text_without_certificates_is_no_authority(text: str) -> None:
    with pytest.raises(BadCertificate, match="expected certificates in PEM form"):
        client_context(authorities=text)
