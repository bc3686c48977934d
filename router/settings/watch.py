"""Says that the settings file has changed: by writing, by renaming another file over it, or by a swapped link.

Events of the file system only say when to look; what counts is the content. Looking now and then as well covers file
systems that send no events, folders that were replaced, and machines that have run out of watches.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path

from watchfiles import awatch
from watchfiles._rust_notify import WatchfilesRustInternalError

from router.settings.files import plain_content
from router.settings.load import digest

Folders = tuple[Path, ...]


async def changes(
    path: Path,
    *,
    since: str | None = None,
    beside: Callable[[], Sequence[Path]] = tuple,
    settle_s: float = 0.1,
    look_every_s: float = 1.0,
) -> AsyncGenerator[None, None]:
    """Yield once per change of the content, when writes have been quiet for `settle_s`.

    `beside` says which files belong to it as well; it is asked again after each change, and another answer counts as
    a change. `since` is the digest of the content that is in use (`Loaded.digest`); without it the content of now
    counts. A file that is gone or empty is being written and has not changed yet. To end the watch, close the
    generator (`aclosing`) or cancel its task.
    """
    seen = since
    while True:
        paths = (path, *beside())
        now, folders = await asyncio.to_thread(_look, paths)
        if now is not None and now != seen:
            first, seen = seen is None, now
            if not first:
                yield
        async with aclosing(_stirrings(folders, settle_s, look_every_s)) as stirrings:
            async for _ in stirrings:
                content, where = await asyncio.to_thread(_look, paths)
                # While it is being written the watch goes on: what happens between two watches goes unseen for a while.
                if where != folders or content not in (None, seen):
                    break


def _look(paths: Sequence[Path]) -> tuple[str | None, Folders]:
    """The digest of the files, None while one cannot be read; and the folders where a change of them would show.

    These are that of a path itself and that of the file it leads to: a link may be swapped, or its target be edited.
    """
    folders = dict.fromkeys(folder for path in paths for folder in (path.absolute().parent, _leads_to(path).parent))
    contents = [_content(path) for path in paths]
    found = digest(*contents) if all(contents) else None
    return found, tuple(folder for folder in folders if folder.is_dir())


def _leads_to(path: Path) -> Path:
    """Unlike `resolve` it raises nothing where links go in a circle."""
    return Path(os.path.realpath(path))


def _content(path: Path) -> bytes:
    try:
        return plain_content(path)
    except OSError:
        return b""


async def _stirrings(folders: Folders, settle_s: float, look_every_s: float) -> AsyncGenerator[None, None]:
    """Yield whenever something happened in the folders, and every `look_every_s` anyway."""
    try:
        watching = awatch(
            *folders,
            watch_filter=None,
            debounce=int(10_000 * settle_s),
            step=int(1000 * settle_s),
            rust_timeout=int(1000 * look_every_s),
            yield_on_timeout=True,
            recursive=False,
        )
        async with aclosing(watching) as events:
            async for _ in events:
                yield
    except (OSError, WatchfilesRustInternalError):  # no watches left, or a folder went away just now
        await asyncio.sleep(look_every_s)
        yield
