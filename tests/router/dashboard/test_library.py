"""The chart library: fetched at the build, checked, and never needed."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from router.dashboard.library import VERSION, NotFetched, fetch


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A registry of the test's own; returns the folder in which it looks for uPlot."""
    folder = tmp_path / "registry" / "uplot" / "-"
    folder.mkdir(parents=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "registry")))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", f"http://127.0.0.1:{server.server_address[1]}/")
    yield folder
    server.shutdown()
    thread.join()
    server.server_close()


def test_another_content_than_the_published_one_is_refused(registry: Path, tmp_path: Path) -> None:
    with tarfile.open(registry / f"uplot-{VERSION}.tgz", "w:gz") as archive:
        member = tarfile.TarInfo("package/dist/uPlot.iife.min.js")
        member.size = 5
        archive.addfile(member, io.BytesIO(b"evil!"))
    with pytest.raises(NotFetched, match="SHA-512"):
        fetch(tmp_path / "library")
    assert not (tmp_path / "library").exists()


def test_without_a_registry_it_says_so_and_a_command_ends_with_an_error(registry: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFetched, match="gave no uPlot"):
        fetch(tmp_path / "library")


def test_what_is_there_is_not_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:1")
    for name in ("uplot.js", "uplot.css", "uplot.license"):
        (tmp_path / name).write_text("there")
    fetch(tmp_path)


def test_finding_it_imports_nothing_of_the_router_that_a_build_would_not_have() -> None:
    program = (
        "import sys; import router.dashboard.library;"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in ('aiohttp', 'orjson', 'pydantic')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
