"""The files of the page, and the chart library beside them, as they go to browsers. They hold no figures and no secret.

Nothing inline and nothing from elsewhere: the policy below makes browsers refuse both, whatever a figure may hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from router.dashboard.library import FOLDER as LIBRARY

PAGE: Final = Path(__file__).parent / "page"
_TYPES: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """One file."""

    body: bytes
    content_type: str
    etag: str


@cache
def assets() -> dict[str, Asset]:
    """By name. Read once; the router is started anew to see others."""
    files = [path for folder in (PAGE, LIBRARY) if folder.is_dir() for path in sorted(folder.iterdir())]
    return {path.name: _asset(path) for path in files if path.suffix in _TYPES}


def _asset(path: Path) -> Asset:
    body = path.read_bytes()
    return Asset(body, _TYPES[path.suffix], f'"{sha256(body).hexdigest()[:20]}"')
