"""Where the admin port of a running router is: every way to say it means the same to every command."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.asking import NotReached
from router.settings.reaching import Door, admin_port
from tests.router.settings.reading import BACKENDS


@pytest.mark.parametrize(
    ("said", "url"),
    [
        ("127.0.0.1:9", "http://127.0.0.1:9"),
        ("[::1]:9", "http://[::1]:9"),
        ("box.example:9", "http://box.example:9"),
        ("http://127.0.0.1:9/", "http://127.0.0.1:9"),
        ("https://box.example", "https://box.example"),
        ("unix:/run/a.sock", "unix:/run/a.sock"),
        ("0.0.0.0:9", "http://127.0.0.1:9"),
    ],
)
def test_an_address_is_taken_as_the_settings_have_it_or_as_a_url(said: str, url: str) -> None:
    assert admin_port(said, None, "k") == Door(url, "k")


@pytest.mark.parametrize(
    "said", ["foo", "", "ftp://a:1", "http://", "http://user:pass@a:1", "unix:a", "a:99999", "a:0"]
)
def test_what_is_no_address_is_refused_in_a_sentence(said: str) -> None:
    with pytest.raises(NotReached, match=r"expected the address|any free one"):
        admin_port(said, None, None)


def test_a_file_says_where_it_is_and_its_key_and_the_command_line_counts_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert admin_port(None, None, None) == Door("http://127.0.0.1:8081")
    file = tmp_path / "twolane.yaml"
    file.write_text(BACKENDS + "admin: '[::]:9'\nadmin_key: k\n", encoding="utf-8")
    assert admin_port(None, None, None) == admin_port(None, file, None) == Door("http://[::1]:9", "k")
    assert admin_port(None, file, "other") == Door("http://[::1]:9", "other")
    assert admin_port("127.0.0.1:7", file, None) == Door("http://127.0.0.1:7", "k")
    for text, why in (
        ("admin: null\n", "no admin port"),
        ("admin: 127.0.0.1:0\n", "port 0"),
        ("x: 1\n", "twolane.yaml:2"),
    ):
        file.write_text(BACKENDS + text, encoding="utf-8")
        with pytest.raises(NotReached, match=why):
            admin_port(None, None, None)
