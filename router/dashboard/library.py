"""The chart library of the page: uPlot, from the npm registry, put beside the page when the router is built.

`pip install` of the source and `make` do that (see `build.py`); a wheel has it inside. The repository has not.
Where it is missing, the page works without charts and says so; `python -m router.dashboard.library` fetches it.

uPlot, since it draws thousands of points in milliseconds from a file of 50 kB, without dependencies. No package on PyPI
that carries a current chart library of that size does without numpy, pandas or a web framework.
"""

from __future__ import annotations

import io
import os
import sys
import tarfile
import urllib.request
from base64 import b64encode
from hashlib import sha512
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "library"
VERSION: Final = "1.6.32"
_SHA512: Final = "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw=="
"""Of the package, as the registry publishes it: another content is refused."""
_REGISTRY: Final = "https://registry.npmjs.org"
_MEMBERS: Final = {
    "package/dist/uPlot.iife.min.js": "uplot.js",
    "package/dist/uPlot.min.css": "uplot.css",
    "package/LICENSE": "uplot.license",
}
_TIMEOUT_S: Final = 20.0


class NotFetched(Exception):
    """The library could not be had; says why."""


def fetch(folder: Path = FOLDER) -> None:
    """Put the files there, if they are not. Raises `NotFetched`. `NPM_CONFIG_REGISTRY` names another registry."""
    if all((folder / name).is_file() for name in _MEMBERS.values()):
        return
    registry = os.environ.get("NPM_CONFIG_REGISTRY", _REGISTRY).rstrip("/")
    try:
        with urllib.request.urlopen(f"{registry}/uplot/-/uplot-{VERSION}.tgz", timeout=_TIMEOUT_S) as answer:
            package = answer.read()
    except (OSError, ValueError) as error:
        raise NotFetched(f"{registry} gave no uPlot {VERSION}: {error}") from error
    if b64encode(sha512(package).digest()).decode() != _SHA512:
        raise NotFetched(f"what {registry} gave is not uPlot {VERSION}: its SHA-512 is another")
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        for member, name in _MEMBERS.items():
            file = archive.extractfile(member)
            if file is None:
                raise NotFetched(f"uPlot {VERSION} has no {member}")
            (folder / name).write_bytes(file.read())


if __name__ == "__main__":
    try:
        fetch()
    except NotFetched as problem:
        sys.exit(str(problem))
