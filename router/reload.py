"""Settings taken over while the router runs: when their file changes, on SIGHUP, or when the admin port says so.

One after the other in the order in which that is asked for, and each all or nothing. What takes long (reading, models,
policies, comparing) happens in a thread, so that streams go on meanwhile; only the taking over is a turn of the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from policies import PolicyError
from router.observe.audit import Audit
from router.observe.metrics import Metrics
from router.plan import Plan
from router.ports import certificate
from router.settings.diff import restart_needed
from router.settings.load import load
from router.settings.model import Settings
from router.settings.problems import SettingsError
from router.settings.watch import changes
from router.tls import BadCertificate

log = structlog.get_logger("twolane.app")


class Prepared(NamedTuple):
    """What a file asks for, ready to be taken over."""

    plan: Plan
    shown: ssl.SSLContext | None
    """The certificate of both ports."""
    keys: tuple[str, ...]
    """That differ and hold until the router is started again."""


class Reloads:
    """`settings`: those in effect. `take_over` must not wait for anything, so that no call sees half of it."""

    def __init__(
        self,
        path: Path | None,
        digest: str | None,
        *,
        settings: Callable[[], Settings],
        take_over: Callable[[Prepared], None],
        metrics: Metrics,
        audit: Audit,
    ) -> None:
        """`path`: the settings file, None where there is none; `digest`: see `App`."""
        self._path = path
        self._digest = digest
        self._settings = settings
        self._take_over = take_over
        self._metrics = metrics
        self._audit = audit
        self._one_by_one = asyncio.Lock()
        self._closed = False

    @property
    def has_file(self) -> bool:
        return self._path is not None

    def close(self) -> None:
        """Nothing is taken over from now on, not even what is being read."""
        self._closed = True

    async def follow(self) -> None:
        """Take over each change of the file, and of the files that it names. Needs a file."""
        assert self._path is not None
        files = changes(self._path, since=self._digest, beside=self._named_files)
        async with contextlib.aclosing(files) as events:
            async for _ in events:
                await self.reload(by="settings file")

    def _named_files(self) -> list[Path]:
        return [file.path for file in self._settings().named_files()]

    async def reload(self, *, by: str = "admin port") -> dict[str, Any]:
        """Read the file again. Running calls are untouched; where anything is wrong, nothing changes."""
        async with self._one_by_one:
            problems = await self._problems()
            document = {"reloaded": not problems, "problems": problems}
            self._audit.tell("settings_reload", by=by, **document)
        return document

    async def _problems(self) -> list[str]:
        """That kept the file from being taken over; empty: it is in effect."""
        if self._path is None:
            return ["the router was started without a settings file"]
        try:
            problems = await self._tried(self._path)
        except Exception as error:  # whatever it was, the next change of the file may mend it
            log.error("reload_failed", exc_info=error)
            problems = ["an internal error of the router; its log has the details"]
        self._metrics.reloaded(ok=not problems)
        if problems:
            log.error("reload_refused", problems=problems)
        else:
            log.info("reloaded", backends=[backend.name for backend in self._settings().backends])
        return problems

    async def _tried(self, path: Path) -> list[str]:
        try:
            prepared = await asyncio.to_thread(_prepared, path, self._settings())
        except SettingsError as error:
            return [str(problem) for problem in error.problems]
        except PolicyError as error:  # it could be built when the file was checked
            return [f"policy.{error}"]
        except BadCertificate as error:  # it was replaced in the very moment
            return [f"tls: {error}"]
        if prepared.keys:
            return [f"{key} cannot change while the router runs; restart it" for key in prepared.keys]
        if self._closed:
            return ["the router is shutting down"]
        self._take_over(prepared)
        return []


def _prepared(path: Path, now: Settings) -> Prepared:
    """Raises `SettingsError`, `PolicyError` or `BadCertificate`. Runs in a thread."""
    settings = load(path).settings
    return Prepared(Plan.of(settings), certificate(settings), restart_needed(now, settings))
