"""A step of the build: the chart library comes beside the page. Imported by setuptools alone.

In an environment without the npm registry the build goes on, and the page has no charts.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from setuptools.command.build_py import build_py


def _beside(name: str) -> ModuleType:
    """A module of this folder, by its path: while a package is built it cannot be imported by its name."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


library = _beside("library")


class BuildPy(build_py):  # type: ignore[misc] # setuptools of the build has types, that of a venv may not
    """As setuptools does it, and the library. In an editable install it comes into the work tree, which ignores it."""

    def run(self) -> None:
        super().run()
        folder = library.FOLDER if self.editable_mode else Path(self.build_lib, "router", "dashboard", "library")
        try:
            library.fetch(folder)
        except library.NotFetched as problem:
            sys.stderr.write(f"the dashboard will have no charts: {problem}\n")
