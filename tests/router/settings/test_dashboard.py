"""What the dashboard keeps, as people write it."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.settings.load import parse
from router.settings.model import Settings
from router.settings.problems import SettingsError
from router.settings.shown import redacted

BACKENDS = "backends: [{name: a, url: http://b}]\n"


def read(folder: Path, text: str) -> Settings:
    return parse(BACKENDS + text, str(folder / "f.yaml"), {})


def test_without_a_word_nothing_is_written() -> None:
    assert read(Path(), "").dashboard.history is None


def test_the_file_lies_beside_the_settings_and_is_shown_as_a_path(tmp_path: Path) -> None:
    found = read(tmp_path, "dashboard: {history: h.sqlite, max_size: 1MiB}")
    assert found.dashboard.history == tmp_path / "h.sqlite"
    assert found.dashboard.max_size == 2**20
    assert redacted(found)["dashboard"]["history"] == str(tmp_path / "h.sqlite")


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0..."])
def test_a_file_that_may_be_one_is_taken(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "h").write_bytes(content)
    assert read(tmp_path, "dashboard: {history: h}").dashboard.history is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dashboard: {history: settings.yaml}", "holds something that is no history"),
        ("dashboard: {history: gone/h}", "there is no such folder"),
        ("dashboard: {history: .}", "is not a plain file"),
        ("dashboard: {history: 5}", "expected the path of a file"),
        ("dashboard: {max_size: 5}", "expected a size"),
    ],
)
def test_a_file_of_something_else_is_never_written_to(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "settings.yaml").write_text("listen: 127.0.0.1:0")
    with pytest.raises(SettingsError, match=said):
        read(tmp_path, text)
