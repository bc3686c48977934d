"""What is shipped: the wheel, the container image, and that the page people read first tells the truth about both."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SHIPPED = ("classifiers", "policies", "router")
BUILD_TOOLS = ("gcc", "g++", "build-essential", "make", "cargo", "apt-get", "curl", "git")

LIBRARY = {f"router/dashboard/library/{name}" for name in ("uplot.js", "uplot.css", "uplot.license")}
"""Of the page: fetched by the build, so it is in the wheel and not in the repository."""

Step = tuple[str, str]
"""Instruction and its arguments."""


def dockerfile() -> list[Step]:
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def stages() -> list[list[Step]]:
    found: list[list[Step]] = []
    for step in dockerfile():
        if step[0] == "FROM":
            found.append([])
        found[-1].append(step)
    return found


def arguments(stage: list[Step], word: str) -> list[str]:
    return [rest for instruction, rest in stage if instruction == word]


class TestImage:
    def test_one_stage_builds_and_another_is_shipped(self) -> None:
        build, final = stages()
        assert build[0][1].endswith(" AS build")
        assert final[0][1] == build[0][1].removesuffix(" AS build"), "the same interpreter in both"
        assert re.fullmatch(r"python:3\.\d+-slim", final[0][1])

    def test_it_is_installed_as_the_page_says(self) -> None:
        build, _ = stages()
        (step,) = (line for line in arguments(build, "RUN") if "pip install" in line)
        assert step.replace(" --no-cache-dir", "") == "pip install ."
        assert re.search(r"^pip install \.$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)

    def test_all_that_is_shipped_is_copied_and_let_through(self) -> None:
        build, _ = stages()
        copied = {source for line in arguments(build, "COPY") for source in line.split()[:-1]}
        assert copied == {*SHIPPED, "pyproject.toml", "README.md"}
        allowed = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
        assert allowed == copied

    def test_the_final_stage_builds_nothing_and_runs_as_nobody_in_particular(self) -> None:
        _, final = stages()
        assert arguments(final, "RUN") == []
        assert not [tool for tool in BUILD_TOOLS for line in final if re.search(rf"(?<!\S){tool}(?!\S)", line[1])]
        (user,) = arguments(final, "USER")
        assert user.split(":")[0].isdigit()
        assert user.split(":")[0] != "0"

    def test_it_starts_without_a_shell_so_that_signals_arrive(self) -> None:
        _, final = stages()
        (entry,), (command,) = arguments(final, "ENTRYPOINT"), arguments(final, "CMD")
        assert json.loads(entry) == ["twolane"]
        assert json.loads(command)[0] == "serve"

    def test_its_health_is_checked_with_what_is_inside(self) -> None:
        _, final = stages()
        (check,) = arguments(final, "HEALTHCHECK")
        command = json.loads(check[check.index("CMD ") + 4 :])
        (serve,) = arguments(final, "CMD")
        assert command == ["twolane", "health", *json.loads(serve)[1:]], "of the file that is served"


def test_all_packages_are_listed_for_the_wheel() -> None:
    listed = set(PYPROJECT["tool"]["setuptools"]["packages"])
    found = {
        ".".join(path.parent.relative_to(ROOT).parts) for name in SHIPPED for path in (ROOT / name).rglob("__init__.py")
    }
    assert listed == found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a copy: what an earlier build left in the work tree would get into this one
    for name in SHIPPED:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "library"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--wheel-dir", str(folder), str(source)]
    subprocess.run(command, check=True, timeout=300)
    (found,) = folder.glob("*.whl")
    return found


@pytest.mark.slow
@pytest.mark.timeout(600)
class TestWheel:
    def test_it_holds_all_code_and_data_and_nothing_else(self, wheel: Path) -> None:
        names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
        expected = {
            str(path.relative_to(ROOT))
            for name in SHIPPED
            for path in (ROOT / name).rglob("*")
            if path.is_file() and not {"__pycache__", "library"} & set(path.parts)
        }
        assert names == expected | LIBRARY
        assert {f"{name}/py.typed" for name in SHIPPED} <= names

    def test_it_runs_in_an_environment_of_its_own(self, wheel: Path, tmp_path: Path) -> None:
        venv.create(tmp_path / "venv", with_pip=True)
        binaries = tmp_path / "venv" / "bin"
        command = [str(binaries / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check", str(wheel)]
        subprocess.run(command, check=True, timeout=300)
        said = subprocess.run(
            [binaries / "twolane", "version"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert said.stdout.strip() == f"twolane {PYPROJECT['project']['version']}"
        schema = subprocess.run([binaries / "twolane", "schema"], cwd=tmp_path, capture_output=True, check=True)
        assert "backends" in json.loads(schema.stdout)["properties"]
