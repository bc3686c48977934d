"""Keys, certificates, origins and open doors, as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from classifiers.api import CallClass
from policies.api import Lane
from router.settings.diff import changed, restart_needed
from router.settings.load import SettingsError, load, redacted
from router.settings.security import ClientKey
from tests.certificates import Authority
from tests.router.settings.reading import BACKENDS, only, settings, whole


def test_a_key_has_a_name_and_may_do_everything_unless_it_is_told() -> None:
    (key,) = settings("keys: [{name: editor, key: '${K}'}]", K="s3cret").keys
    assert (key.name, key.secret) == ("editor", "s3cret")
    assert key.classes == tuple(CallClass)
    assert key.lanes == (Lane.LATENCY, Lane.THROUGHPUT)
    assert (key.calls_per_minute, key.tokens_per_minute, key.parallel) == (None, None, None)


def test_a_key_can_be_held_to_classes_lanes_and_rates() -> None:
    (key,) = settings(
        "keys: [{name: n, key: k, classes: batch, lanes: throughput, calls_per_minute: 60, tokens_per_minute: 9000,"
        " parallel: 2}]"
    ).keys
    assert key.classes == (CallClass.THROUGHPUT,)
    assert key.lanes == (Lane.THROUGHPUT,)
    assert (key.calls_per_minute, key.tokens_per_minute, key.parallel) == (60, 9000, 2)


def test_a_key_may_stand_in_a_file_beside_the_settings(tmp_path: Path) -> None:
    (tmp_path / "nightly.key").write_text("from-the-file\n", encoding="utf-8")
    path = tmp_path / "twolane.yaml"
    path.write_text(BACKENDS + "keys: [{name: nightly, key_file: nightly.key}]\n", encoding="utf-8")
    loaded = load(path, {})
    assert loaded.settings.keys[0].secret == "from-the-file"
    (tmp_path / "nightly.key").write_text("another\n", encoding="utf-8")
    assert load(path, {}).digest != loaded.digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("keys: [{key: k}]", "2:8: keys[0].name: is missing. Who has the key"),
        ("keys: [{name: a}]", "2:8: keys[0].key: is missing; give it, or a key_file"),
        ("keys: [{name: a, key: k, key_file: /etc/passwd}]", "2:26: keys[0].key_file: stands beside key; remove one"),
        ("keys: [{name: a, key: '${UNSET}'}]", "2:23: keys[0].key: the environment variable UNSET is not set"),
        ("keys: [{name: a, key: '${EMPTY}'}]", "2:23: keys[0].key: expected text that is not empty"),
        ("keys: [{name: a, key: 12}]", "2:23: keys[0].key: expected text; put a number, true or false in quotes"),
        ("keys: [{name: a, key: 'a b'}]", "2:23: keys[0].key: contains a space"),
        ("keys: [{name: a, key_file: /nowhere/k}]", "2:28: keys[0].key_file: cannot be read: No such file"),
        ("keys: [{name: a, key_file: /etc}]", "2:28: keys[0].key_file: is not a plain file"),
        ("keys: [{name: a, key_file: /etc/passwd}]", "2:18: keys[0].key_file: expected one line with the key in it"),
        ("keys: [{name: a, key: k, classes: fast}]", "2:35: keys[0].classes[0]: expected ttft, mixed or throughput"),
        ("keys: [{name: a, key: k, classes: []}]", "2:35: keys[0].classes: expected at least 1 item in the list"),
        ("keys: [{name: a, key: k, parallel: 0}]", "2:36: keys[0].parallel: expected at least 1"),
        ("keys: [{name: a, key: k, rpm: 5}]", "2:26: keys[0].rpm: unknown key; did you mean calls_per_minute?"),
        ("keys: [{name: a, key: k}, {name: a, key: l}]", "2:28: keys[1].name: a second key called a"),
        ("keys: [{name: a, key: k}, {name: b, key: k}]", "2:28: keys[1].name: has the same key as a"),
        ("keys: {a: k}", "2:7: keys: expected a list"),
        (
            "keys: [{name: a, key: k, lanes: latency}]\nclasses: {throughput: {lanes: throughput, keep_free: {}}}",
            "2:26: keys[0].lanes: calls of class throughput use only the lane throughput (classes.throughput.lanes)",
        ),
        ("listen: 0.0.0.0:80", "2:1: listen: others than this machine can reach this address, and no keys are set"),
        ("listen: '[::]:80'", "2:1: listen: others than this machine can reach this address"),
        ("listen: 192.168.1.5:80", "2:1: listen: others than this machine can reach this address"),
        ("listen: gpu-box:80", "2:1: listen: others than this machine can reach this address"),
        ("admin: 0.0.0.0:80\ninsecure: true", "2:1: admin: others than this machine can reach this address: add an"),
        ("listen: unix:run/x", "2:9: listen: expected the absolute path of a socket"),
        (f"listen: unix:/{'x' * 107}", "2:9: listen: expected a path of at most 107 bytes"),
        ("admin: unix:/a\nlisten: unix:/a", "2:1: admin: the same address as listen"),
        ("socket_mode: rw", "2:14: socket_mode: expected three octal digits"),
        ("socket_mode: 888", "2:14: socket_mode: expected three octal digits"),
        ("cors: {origins: [http://h/x]}", "2:18: cors.origins[0]: expected an origin as browsers send it"),
        ("cors: {origins: '*'}", "2:17: cors.origins: expected a list"),
        ("trusted_proxies: [10.0.0.1/8]", "2:19: trusted_proxies[0]: expected a network such as 10.0.0.0/8"),
        ("trusted_proxies: [nginx]", "2:19: trusted_proxies[0]: expected a network such as 10.0.0.0/8"),
        ("tls: {cert: /nowhere}", "2:13: tls.cert: cannot be read: No such file"),
        (
            "tls: {cert: /etc/passwd, key: /etc/passwd}",
            "2:7: tls.cert: expected a certificate and a private key in PEM",
        ),
    ],
)
def test_a_problem_says_line_key_and_what_to_do(text: str, message: str) -> None:
    if text.startswith("tls: {cert: /nowhere"):
        text = text.replace("}", ", key: /etc/passwd}")
    assert message in only(text, EMPTY="")


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("url: 'http://h', ca_file: /etc/passwd", "backends[0].ca_file: only an https:// server has a certificate"),
        ("url: 'unix:/a', insecure_skip_verify: true", "insecure_skip_verify: only an https:// server"),
        ("url: 'https://h', ca_file: /etc/passwd", "ca_file: expected certificates in PEM form"),
        ("url: 'https://h', ca_file: /etc/passwd, insecure_skip_verify: true", "a ca_file says what to verify"),
        ("url: 'unix:run/a'", "backends[0].url: expected the absolute path of a socket"),
    ],
)
def test_a_backend_says_what_it_verifies(backend: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message.replace("[", r"\[")):
        whole(f"backends: [{{name: a, {backend}}}]")


@pytest.mark.parametrize(
    "text",
    [
        "listen: 0.0.0.0:80\nkeys: [{name: a, key: k}]",
        "listen: 0.0.0.0:80\ninsecure: true",
        "listen: 127.0.0.5:80",
        "listen: '[::1]:80'",
        "listen: localhost:80",
        "listen: unix:/run/twolane.sock\nadmin: unix:/run/admin.sock",
        "admin: 0.0.0.0:81\nadmin_key: k",
        "admin: null\ninsecure: true\nlisten: '[::]:80'",
    ],
)
def test_a_port_is_local_or_has_a_key_or_somebody_said_so(text: str) -> None:
    assert settings(text).backends


def test_sockets_origins_and_networks_are_understood() -> None:
    found = settings(
        "listen: unix:/run/t.sock\nsocket_mode: 666\ncors: {origins: ['HTTP://LocalHost:5173', '*']}\n"
        "trusted_proxies: [10.0.0.0/8, 'fd00::/8', 127.0.0.1, unix]\n"
    )
    assert (found.listen.path, str(found.listen), found.socket_mode) == ("/run/t.sock", "unix:/run/t.sock", "666")
    assert found.cors.origins == ("http://localhost:5173", "*")
    assert found.trusted_proxies == ("10.0.0.0/8", "fd00::/8", "127.0.0.1/32", "unix")


def test_a_certificate_and_its_key_are_checked_together(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair, other = authority.pair("localhost"), authority.pair("localhost", stem="other")
    assert settings(f"tls: {{cert: {pair.cert}, key: {pair.key}}}").tls is not None
    message = only(f"tls:\n  cert: {pair.cert}\n  key: {other.key}\n")
    assert "f.yaml:3:9: tls.cert: the key does not belong to the certificate" in message or "3:3: tls.cert" in message
    assert whole(f"backends: [{{name: a, url: 'https://h', ca_file: {authority.file}}}]").backends[0].ca_file


def test_a_key_with_a_passphrase_is_refused_and_the_terminal_is_not_asked(tmp_path: Path) -> None:
    pair = Authority(tmp_path).pair("localhost")
    pair.key.write_text(
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGjMF8GCSqGSIb3DQEFDTBSMDEGCSqGSIb3DQEFDDAkBBB0cHJpdmF0ZQ==\n"
        "-----END ENCRYPTED PRIVATE KEY-----\n",
        encoding="utf-8",
    )
    assert "tls.cert:" in only(f"tls: {{cert: {pair.cert}, key: {pair.key}}}")


def test_no_key_is_shown(tmp_path: Path) -> None:
    (tmp_path / "k").write_text("file-s3cret", encoding="utf-8")
    found = settings(
        f"keys: [{{name: a, key: plain-s3cret}}, {{name: b, key_file: {tmp_path}/k}}]\nadmin_key: admin-s3cret\n"
    )
    shown = redacted(found)
    assert "s3cret" not in f"{shown}{found!r}{found}{found.model_dump_json()}"
    assert shown["keys"][1]["key_file"] == f"{tmp_path}/k"


def test_keys_and_origins_change_while_it_runs_but_not_sockets(tmp_path: Path) -> None:
    pair = Authority(tmp_path).pair("localhost")
    before = settings("keys: [{name: a, key: one}]")
    assert changed(before, settings("keys: [{name: a, key: two}]")) == ("keys[0].key",)
    assert restart_needed(before, settings("keys: []\ncors: {origins: ['*']}\ntrusted_proxies: [unix]")) == ()
    with_tls = settings(f"tls: {{cert: {pair.cert}, key: {pair.key}}}")
    assert restart_needed(settings(""), with_tls) == ("tls",)
    Authority(tmp_path).pair("localhost")
    renewed = settings(f"tls: {{cert: {pair.cert}, key: {pair.key}}}")
    assert changed(with_tls, renewed) == ("tls.cert", "tls.key")
    assert restart_needed(with_tls, renewed) == ()


def test_code_gives_keys_as_text() -> None:
    assert ClientKey.model_validate({"name": "a", "key": "k"}).secret == "k"
