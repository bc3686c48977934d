"""A step of the build: the chart library comes beside the page. Imported by setuptools alone.

In an environment without the npm registry the build goes on, and the page has no charts.
"""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools.command.build_py import build_py

from router.dashboard.library import FOLDER, NotFetched, fetch


class BuildPy(build_py):  # type: ignore[misc] # setuptools of the build has types, that of a venv may not
    """As setuptools does it, and the library. In an editable install it comes into the work tree, which ignores it."""

    def run(self) -> None:
        super().run()
        folder = FOLDER if self.editable_mode else Path(self.build_lib, "router", "dashboard", "library")
        try:
            fetch(folder)
        except NotFetched as problem:
            sys.stderr.write(f"the dashboard will have no charts: {problem}\n")
