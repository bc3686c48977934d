"""Which model judges, and where decisions are written down."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from router import models
from router.settings.diff import changed, restart_needed
from router.settings.load import SettingsError, load, parse, redacted
from router.settings.model import Settings
from tests.router.settings.reading import BACKENDS, only, settings


def in_folder(folder: Path, text: str) -> Settings:
    return parse(BACKENDS + text, str(folder / "twolane.yaml"), {})


def problem_in(folder: Path, text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        in_folder(folder, text)
    (found,) = caught.value.problems
    return str(found).replace(str(folder), "")


def test_without_a_word_the_model_that_comes_with_the_router_judges_and_nothing_is_written() -> None:
    found = settings("")
    assert found.classify.model.use == "builtin"
    assert found.classify.shadow is None
    assert found.decisions.file is None
    assert (found.decisions.max_size, found.decisions.keep, found.decisions.text_hashes) == (64 * 2**20, 7, False)
    assert list(found.named_files()) == []


@pytest.mark.parametrize("word", ["builtin", "off"])
def test_words_stand_for_themselves(word: str) -> None:
    found = settings(f"classify: {{model: {word}, shadow: {word}}}").classify
    assert found.shadow is not None
    assert (found.model.use, found.shadow.use) == (word, word)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("classify: {model: null}", "f.yaml:2:19: classify.model: expected builtin, off, or the path of a model"),
        ("classify: {model: true}", "f.yaml:2:19: classify.model: expected builtin, off, or the path of a model"),
        ("classify: {model: {use: builtin}}", "f.yaml:2:19: classify.model: expected builtin, off, or the path"),
        ("classify: {min_confidence: 1.5}", "f.yaml:2:28: classify.min_confidence: expected at most 1"),
        ("classify: {min_confidence: -0.1}", "f.yaml:2:28: classify.min_confidence: expected at least 0"),
        ("classify: {min_confidance: 0.5}", "did you mean min_confidence?"),
        ("decisions: {max_size: 5}", "f.yaml:2:23: decisions.max_size: expected a size"),
        ("decisions: {keep: -1}", "f.yaml:2:19: decisions.keep: expected at least 0"),
        ("decisions: {text_hashes: 1}", "f.yaml:2:26: decisions.text_hashes: expected true or false"),
        ("decisions: {file: 5}", "f.yaml:2:19: decisions.file: expected the path of a file"),
        ("decisions: log.jsonl", "f.yaml:2:12: decisions: expected a mapping with keys such as file"),
        ("text_hashes: true", "it belongs under decisions"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, message: str) -> None:
    assert message in only(text)


def test_a_model_that_is_not_there_is_a_problem_of_its_line(tmp_path: Path) -> None:
    said = problem_in(tmp_path, "classify:\n  shadow: gone.json\n")
    assert said == "/twolane.yaml:3:11: classify.shadow: cannot be read: No such file or directory"


def test_a_builtin_model_that_is_broken_is_told_where_it_would_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "builtin.json").write_text("{}", encoding="utf-8")
    monkeypatch.setattr(models, "BUILTIN_FILE", tmp_path / "builtin.json")
    for text in ("", "classify: {shadow: builtin, model: off}", "classify: {model: builtin}"):
        assert "the model that comes with this version cannot be used (format: it is missing" in only(text)
    assert settings("classify: {model: off}").classify.model.use == "off"


def test_the_log_lies_beside_the_settings_file_and_is_not_made_by_reading_them(tmp_path: Path) -> None:
    found = in_folder(tmp_path, "decisions: {file: d.jsonl}")
    assert found.decisions.file == tmp_path / "d.jsonl"
    assert list(tmp_path.iterdir()) == []
    assert redacted(found)["decisions"]["file"] == str(tmp_path / "d.jsonl")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing/d.jsonl", "there is no such folder"),
        ("folder", "is not a plain file"),
        ("link", "is not a plain file"),
        ("twolane.yaml", "holds something that is no decision log"),
        ("other.json", "holds something that is no decision log"),
    ],
)
def test_a_place_where_no_log_can_be_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "d.jsonl")
    (tmp_path / "other.json").write_text('{"users": [], "format": 2}\n', encoding="utf-8")
    (tmp_path / "twolane.yaml").write_text("listen: 127.0.0.1:1\n", encoding="utf-8")
    said = problem_in(tmp_path, f"decisions: {{file: {name}}}")
    assert said.startswith("/twolane.yaml:2:19: decisions.file: ")
    assert message in said


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert "nothing can be written in this folder" in problem_in(tmp_path, "decisions: {file: d.jsonl}")
    finally:
        tmp_path.chmod(0o700)


def test_a_log_that_exists_is_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text('{"format": 1}\n', encoding="utf-8")
    assert in_folder(tmp_path, "decisions: {file: d.jsonl}").decisions.file is not None


def test_all_of_it_can_change_while_the_router_runs(tmp_path: Path) -> None:
    old = in_folder(tmp_path, "")
    new = in_folder(tmp_path, "classify: {model: off, min_confidence: 0.7}\ndecisions: {file: d.jsonl, keep: 1}")
    assert set(changed(old, new)) == {
        "classify.model",
        "classify.min_confidence",
        "decisions.file",
        "decisions.keep",
    }
    assert restart_needed(old, new) == ()


def test_load_says_which_file_belongs_to_the_settings(tmp_path: Path) -> None:
    (tmp_path / "twolane.yaml").write_text(BACKENDS + "classify: {model: off}\n", encoding="utf-8")
    assert list(load(tmp_path / "twolane.yaml", {}).settings.named_files()) == []
