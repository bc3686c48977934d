"""Files that the settings name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from router.settings.files import MOST_BYTES, FilePath, NamedFile


class Holder(BaseModel):
    file: FilePath


def held(path: str | Path, folder: Path | None = None) -> NamedFile:
    context = {"in_file": True, "folder": folder} if folder is not None else None
    return Holder.model_validate({"file": str(path)}, context=context).file


def test_a_file_is_read_when_the_settings_are_read(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("s3cret\r\n", encoding="utf-8")
    found = held(path)
    path.write_text("another", encoding="utf-8")
    assert found.line == "s3cret"
    assert found.digest != held(path).digest


def test_a_path_begins_at_the_folder_of_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k", encoding="utf-8")
    assert held("key", tmp_path).path == tmp_path / "key"
    assert held(tmp_path / "key", Path("/elsewhere")).path == tmp_path / "key"


def test_what_was_read_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("s3cret", encoding="utf-8")
    holder = Holder(file=held(tmp_path / "key"))
    assert "s3cret" not in repr(holder) + str(holder) + str(holder.model_dump()) + holder.model_dump_json()
    assert holder.model_dump(mode="json") == {"file": str(tmp_path / "key")}


def test_what_is_compared_differs_with_the_content(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("one", encoding="utf-8")
    before = Holder(file=held(path)).model_dump()
    path.write_text("two", encoding="utf-8")
    assert Holder(file=held(path)).model_dump() != before


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (None, "cannot be read: No such file"),
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"x" * (MOST_BYTES + 1), "larger"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, content: bytes | None, advice: str) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValidationError, match=advice):
        held(path)


def test_a_folder_a_pipe_and_a_device_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null", "/dev/zero"):
        with pytest.raises(ValidationError, match="not a plain file"):
            held(path)
    with pytest.raises(ValidationError, match="is not a plain file"):
        held(tmp_path)


@pytest.mark.parametrize("value", ["", "a\0b", 5, None, ["a"], {"path": "/etc/hostname"}])
def test_other_values_are_no_path(value: object) -> None:
    with pytest.raises(ValidationError):
        Holder.model_validate({"file": value}, context={"in_file": True})
