"""`twolane train` and `twolane eval` as people type them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner, Result

from bench.servers.process import ROOT
from router import models
from router.commands import cli
from tests.router import opinions
from tests.router.learning.makers import line, tagged, traffic, write

needs_sklearn = pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="training needs scikit-learn")


def run(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def builtin(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model in place of the one that comes with the router; it takes everything for a hop."""
    path = opinions.write(tmp_path_factory.mktemp("models") / "builtin.json", "mixed", 1.0)
    monkeypatch.setattr(models, "BUILTIN_FILE", path)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write(tmp_path / "d.jsonl", traffic(300))


@needs_sklearn
def test_train_writes_a_model_and_tells_how_good_it_is(tmp_path: Path, log: Path) -> None:
    (tmp_path / "d.jsonl.1").write_bytes(b'{"format": 1, "cut o\n')
    done = run("train", "--from", log, "--out", tmp_path / "own.json")
    assert done.exit_code == 0, done.output
    for words in (
        "300 calls in the log",
        "1 lines passed over: not a whole line of JSON",
        "on clients it had not seen",
        "Calibration",
        "macro accuracy",
        "│ builtin ",
        "│ new without them, last calls ",
        f"classify: {{shadow: {tmp_path / 'own.json'}}}",
    ):
        assert words in done.output
    text = (tmp_path / "own.json").read_bytes()
    assert orjson.loads(text)["trained"]["tags"] == 300
    assert all(len(line) < 500 for line in text.splitlines()), "a person can read it, and see what changed"
    assert not list(tmp_path.glob(".*draft"))
    told = run("eval", tmp_path / "own.json", "--from", log)
    assert told.exit_code == 0, told.output
    assert "model own-" in told.output
    assert "macro accuracy" in told.output


@needs_sklearn
def test_a_log_whose_newest_part_has_just_been_set_aside_is_learned_from(tmp_path: Path, log: Path) -> None:
    log.rename(tmp_path / "d.jsonl.1")
    done = run("train", "--from", log, "--out", tmp_path / "own.json")
    assert done.exit_code == 0, done.output
    assert "300 calls in the log" in done.output


@needs_sklearn
def test_a_model_is_overwritten_only_when_asked(tmp_path: Path, log: Path) -> None:
    out = tmp_path / "own.json"
    out.write_text("mine", encoding="utf-8")
    done = run("train", "--from", log, "--out", out)
    assert done.exit_code == 2
    assert "exists already and is left alone" in done.output
    assert out.read_text(encoding="utf-8") == "mine"
    assert run("train", "--from", log, "--out", out, "--force").exit_code == 0
    assert out.read_text(encoding="utf-8") != "mine"


@needs_sklearn
def test_too_little_to_learn_from_writes_nothing(tmp_path: Path) -> None:
    log = write(tmp_path / "d.jsonl", [tagged("ttft", float(number)) for number in range(30)])
    done = run("train", "--from", log, "--out", tmp_path / "own.json")
    assert done.exit_code == 1
    assert "not trained: the log has 30 tagged calls" in done.output
    assert not (tmp_path / "own.json").exists()


def test_without_scikit_learn_it_says_how_to_get_it(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "sklearn" else find(name))
    done = run("train", "--from", log, "--out", tmp_path / "own.json")
    assert done.exit_code == 2
    assert "pip install 'twolane[train]'" in done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train", "--out", "own.json"), "Missing option"),
        (("train", "--from", "gone", "--out", "own.json"), "gone: cannot be read: No such file"),
        (("train", "--from", "gone", "--out", "own.json", "--kind", "forest"), "expected linear or trees"),
        (("eval", "gone.json"), "gone.json: cannot be read: No such file"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert done.exit_code == 2
    assert words in done.output
    assert "Traceback" not in done.output
    assert list(tmp_path.iterdir()) == []


def test_eval_of_something_else_says_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text('{"format": 1}', encoding="utf-8")
    done = run("eval", tmp_path / "m.json")
    assert done.exit_code == 2
    assert "m.json: classes: it is missing" in done.output


def test_eval_measures_by_tags_alone_and_needs_some(tmp_path: Path) -> None:
    model = opinions.write(tmp_path / "m.json", "ttft")
    calls: list[dict[str, Any]] = [tagged("ttft"), tagged("mixed", 1.0), line(2.0, stream=True)]
    done = run("eval", model, "--from", write(tmp_path / "d", calls))
    assert done.exit_code == 0, done.output
    row = next(each for each in done.output.splitlines() if each.startswith("│ this"))
    assert [cell.strip() for cell in row.strip("│").split("│")][:4] == ["this", "2", "0.500", "0.500"]
    none = run("eval", model, "--from", write(tmp_path / "e", [line()]))
    assert none.exit_code == 1
    assert "no call in the log was tagged" in none.output


@needs_sklearn
def test_a_builtin_model_that_is_broken_stops_training_and_no_evaluation(
    tmp_path: Path, log: Path, builtin: Path
) -> None:
    builtin.write_text("{}", encoding="utf-8")
    done = run("train", "--from", log, "--out", tmp_path / "own.json")
    assert (done.exit_code, list(tmp_path.glob("own*"))) == (2, [])
    assert "the model that comes with the router cannot be used: format: it is missing" in done.output
    told = run("eval", opinions.write(tmp_path / "m.json", "ttft"), "--from", log)
    assert told.exit_code == 0
    assert "note: The model that comes with the router cannot be used" in told.output


def test_eval_of_the_builtin_model_says_what_it_is() -> None:
    assert "model always mixed" in run("eval", "builtin").output


def test_eval_needs_no_scikit_learn(tmp_path: Path, log: Path) -> None:
    program = (
        "import sys; from router.commands import cli; cli(sys.argv[1:], standalone_mode=False);"
        "print([name for name in ('sklearn', 'numpy', 'scipy') if name in sys.modules])"
    )
    command = [
        sys.executable,
        "-c",
        program,
        "eval",
        str(opinions.write(tmp_path / "m.json", "ttft")),
        "--from",
        str(log),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"
