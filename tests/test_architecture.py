"""The rules of the house that a machine can check: who imports whom, what is pure, how long a file may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TOP = ("classifiers", "policies", "router", "bench")
"""Lowest first: a package may import those before it."""

FLOORS: tuple[tuple[str, ...], ...] = (
    ("asking", "bucket", "errors", "files", "garbage", "models", "tasks", "tls"),
    ("settings", "engines", "observe", "wire"),
    ("surfaces", "fleet", "access", "arrivals", "pipelines"),
    (
        "line",
        "applicant",
        "waiting",
        "turnover",
        "refusals",
        "remaining",
        "retries",
        "dispatch",
        "upstreams",
        "watch",
        "heads",
        "plan",
        "listing",
        "ports",
        "intake",
    ),
    ("call", "outgoing", "attempts", "pings", "gateway", "explain"),
    ("simulate", "dashboard"),
    ("replay",),
    ("admin", "reload"),
    ("app", "top", "learning", "health"),
    ("commands",),
    ("__main__",),
)
"""Inside `router`, lowest first. Parts of one floor do not import each other where the floor is listed in APART."""

APART = (1, 2)
MAX_LINES = 400

PURE = ("classifiers", "policies")
IMPURE_MODULES = {
    "aiohttp",
    "asyncio",
    "datetime",
    "logging",
    "numpy.random",
    "os",
    "pathlib",
    "prometheus_client",
    "random",
    "secrets",
    "socket",
    "structlog",
    "subprocess",
    "sys",
    "threading",
    "time",
    "uuid",
}
IMPURE_CALLS = {"open", "print", "input", "exec", "eval"}
READS_ITS_OWN_DATA: set[str] = set()
"""Pure modules that may read a file which ships beside them."""


def modules(package: str) -> Iterator[tuple[str, Path, ast.Module]]:
    for path in sorted((ROOT / package).rglob("*.py")):
        yield ".".join(path.relative_to(ROOT).with_suffix("").parts), path, ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, "imports are absolute"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def floor_of(module: str) -> int | None:
    part = module.split(".")[1] if module.startswith("router.") else None
    for number, floor in enumerate(FLOORS):
        if part in floor:
            return number
    return None


@pytest.mark.parametrize("package", TOP)
def test_packages_import_only_those_below_them(package: str) -> None:
    above = TOP[TOP.index(package) + 1 :]
    wrong = [
        f"{name} imports {target}"
        for name, _, tree in modules(package)
        for target in imported(tree)
        if target.split(".")[0] in above or target.split(".")[0] == "tests"
    ]
    assert not wrong


def test_every_part_of_the_router_stands_on_a_floor() -> None:
    parts = {name.split(".")[1] for name, _, _ in modules("router")} - {"__init__"}
    assert parts == {part for floor in FLOORS for part in floor}


def test_the_router_imports_only_downward() -> None:
    wrong = []
    for name, _, tree in modules("router"):
        own = floor_of(name)
        for target in imported(tree):
            other = floor_of(target)
            if own is None or other is None or target.split(".")[1] == name.split(".")[1]:
                continue
            if other > own or (other == own and own in APART):
                wrong.append(f"{name} imports {target}")
    assert not wrong


@pytest.mark.parametrize("package", PURE)
def test_deciding_is_pure(package: str) -> None:
    wrong = []
    for name, _, tree in modules(package):
        if name in READS_ITS_OWN_DATA or name.endswith(".training"):
            continue
        allowed = {"importlib.metadata"} if name == "policies.__init__" else set()
        for target in imported(tree):
            if (target in IMPURE_MODULES or target.split(".")[0] in IMPURE_MODULES) and target not in allowed:
                wrong.append(f"{name} imports {target}")
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
                wrong.append(f"{name}:{node.lineno} calls {node.func.id}")
            if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.Global):
                wrong.append(f"{name}:{node.lineno} is not plain synchronous code")
    assert not wrong


@pytest.mark.parametrize("package", TOP)
def test_no_file_holds_more_than_one_idea_can_fill(package: str) -> None:
    long = {
        name: count
        for name, path, _ in modules(package)
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > MAX_LINES
    }
    assert not long


@pytest.mark.parametrize("package", [*TOP, "tests"])
def test_every_module_says_what_it_is_for(package: str) -> None:
    silent = [
        name for name, path, tree in modules(package) if path.name != "__init__.py" and not ast.get_docstring(tree)
    ]
    assert not silent


@pytest.mark.parametrize("package", TOP[:3])
def test_nothing_keeps_state_in_module_globals(package: str) -> None:
    wrong = [
        f"{name}:{node.lineno}"
        for name, _, tree in modules(package)
        for node in ast.walk(tree)
        if isinstance(node, ast.Global)
    ]
    assert not wrong


def test_serving_never_imports_what_only_training_or_tests_need() -> None:
    program = (
        "import sys, router.commands;"
        "print([name for name in ('sklearn', 'numpy', 'scipy', 'pytest', 'requests', 'bench') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_list_of_the_build_names_every_package() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    packages = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for package in TOP[:3]
        for path in (ROOT / package).rglob("__init__.py")
    }
    missing = [package for package in packages if f'"{package}"' not in text]
    assert not missing
