"""Files that the router writes: never one over the other, over its settings, or over what these are made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.settings.load import load
from router.settings.problems import SettingsError
from tests.router.settings.reading import BACKENDS

FILES = "decisions: {{file: {log}}}\ndashboard: {{history: {history}}}\n"


def problem(folder: Path, text: str) -> str:
    path = folder / "twolane.yaml"
    path.write_text(BACKENDS + text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load(path, {})
    return str(caught.value).removeprefix(f"{folder}/")


@pytest.mark.parametrize("history", ["d", "./d", "inner/../d", "inner/up/d"])
def test_two_outputs_in_one_file_are_refused_however_its_path_is_written(tmp_path: Path, history: str) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "up").symlink_to(tmp_path)
    assert problem(tmp_path, FILES.format(log="d", history=history)) == (
        "twolane.yaml:3:13: dashboard.history: is written for decisions.file already, and would be written over; "
        "give the path of another file"
    )


def test_the_salt_beside_the_decision_log_is_written_as_well(tmp_path: Path) -> None:
    said = problem(tmp_path, FILES.format(log="d", history="d.salt"))
    assert "dashboard.history: is written for decisions.file already" in said


@pytest.mark.parametrize("text", [BACKENDS, '{"backends": [{"name": "a", "url": "http://b"}], '])
@pytest.mark.parametrize("output", ['"decisions": {"file": "f"}', '"dashboard": {"history": "f"}'])
def test_the_settings_file_is_no_output(tmp_path: Path, text: str, output: str) -> None:
    (tmp_path / "f").symlink_to("f.yaml")
    path = tmp_path / "f.yaml"
    for name in ("f.yaml", "f"):
        path.write_text((text + output + "}" * text.startswith("{")).replace('"f"', f'"{name}"'), encoding="utf-8")
        with pytest.raises(SettingsError, match=r"f\.yaml:\d:\d+: [a-z.]+: (holds something that|is not a plain file)"):
            load(path, {})


def test_a_file_that_the_settings_name_is_no_output(tmp_path: Path) -> None:
    (tmp_path / "key").write_text('{"format":1}', encoding="utf-8")
    said = problem(tmp_path, "keys: [{name: a, key_file: key}]\ndecisions: {file: key}\n")
    assert said.startswith("twolane.yaml:3:13: decisions.file: is read by these settings, and would be written over;")


def test_files_of_their_own_are_taken(tmp_path: Path) -> None:
    path = tmp_path / "twolane.yaml"
    path.write_text(BACKENDS + FILES.format(log="d", history="h"), encoding="utf-8")
    assert load(path, {}).settings.dashboard.history == tmp_path / "h"
