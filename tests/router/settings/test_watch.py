"""The settings file changed: written, replaced, swapped; and when it did not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from router.settings.load import digest
from router.settings.watch import changes
from router.tasks import Tasks

SETTLE_S = 0.02
WITHIN_S = 5.0


class Changes:
    """Counts what a watch says."""

    def __init__(self) -> None:
        self._said: asyncio.Queue[None] = asyncio.Queue()

    async def follow(self, path: Path, since: str | None, look_every_s: float) -> None:
        async for _ in changes(path, since=since, settle_s=SETTLE_S, look_every_s=look_every_s):
            self._said.put_nowait(None)

    async def one(self, within_s: float = WITHIN_S) -> None:
        await asyncio.wait_for(self._said.get(), within_s)

    def none_left(self) -> bool:
        return self._said.empty()


@asynccontextmanager
async def watching(path: Path, *, since: str | None = None, look_every_s: float = 0.2) -> AsyncIterator[Changes]:
    """What a watch says that knows the content of now, or that of `since`."""
    said = Changes()
    begun = since if since is not None else digest(path.read_bytes())
    tasks = Tasks()
    tasks.spawn(said.follow(path, begun, look_every_s), name="watch")
    try:
        yield said
    finally:
        await tasks.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "twolane.yaml"
    path.write_text("one", encoding="utf-8")
    return path


async def test_each_new_content_is_told(file: Path) -> None:
    async with watching(file) as said:
        for content in ("two", "three", "one"):
            file.write_text(content, encoding="utf-8")
            await said.one()
        assert said.none_left()


async def test_a_file_renamed_over_it_is_told(file: Path) -> None:
    async with watching(file) as said:
        for content in ("two", "three"):
            fresh = file.with_suffix(".new")
            fresh.write_text(content, encoding="utf-8")
            fresh.rename(file)
            await said.one()


async def test_a_file_that_was_moved_away_and_written_anew_is_told_when_it_is_back(file: Path) -> None:
    async with watching(file) as said:
        file.rename(file.with_suffix(".yaml~"))
        file.write_text("two", encoding="utf-8")
        await said.one()
        assert said.none_left()


async def test_the_same_content_written_again_is_no_change(file: Path) -> None:
    async with watching(file) as said:
        file.write_text("one", encoding="utf-8")
        fresh = file.with_suffix(".new")
        fresh.write_text("one", encoding="utf-8")
        fresh.rename(file)
        file.with_name("other.yaml").write_text("x", encoding="utf-8")
        file.write_text("two", encoding="utf-8")
        await said.one()
        assert said.none_left()


async def test_a_file_that_is_gone_has_not_changed(file: Path) -> None:
    async with watching(file) as said:
        file.unlink()
        file.write_text("one", encoding="utf-8")
        file.unlink()
        file.write_text("two", encoding="utf-8")
        await said.one()
        assert said.none_left()


async def test_an_empty_file_is_being_written_and_has_not_changed_yet(file: Path) -> None:
    async with watching(file, look_every_s=0.05) as said:
        file.write_bytes(b"")
        with pytest.raises(TimeoutError):
            await said.one(within_s=0.2)  # several looks
        file.write_text("two", encoding="utf-8")
        await said.one()


async def test_a_swapped_link_as_in_a_config_map_is_told(tmp_path: Path) -> None:
    for name, content in (("..1", "one"), ("..2", "two"), ("..3", "three")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "twolane.yaml").write_text(content, encoding="utf-8")
    (tmp_path / "..data").symlink_to("..1")
    file = tmp_path / "twolane.yaml"
    file.symlink_to("..data/twolane.yaml")
    async with watching(file) as said:
        for name in ("..2", "..3"):
            (tmp_path / "..tmp").symlink_to(name)
            os.replace(tmp_path / "..tmp", tmp_path / "..data")
            await said.one()
        assert said.none_left()


async def test_a_change_of_the_file_behind_a_link_is_told(tmp_path: Path) -> None:
    real = tmp_path / "real" / "settings.yaml"
    real.parent.mkdir()
    real.write_text("one", encoding="utf-8")
    (tmp_path / "here").mkdir()
    link = tmp_path / "here" / "twolane.yaml"
    link.symlink_to(real)
    async with watching(link) as said:
        real.write_text("two", encoding="utf-8")
        await said.one()


async def test_a_change_before_the_watch_began_is_told(file: Path) -> None:
    async with watching(file, since=digest(b"zero")) as said:
        await said.one()
        assert said.none_left()


async def test_a_folder_that_is_replaced_does_not_end_the_watch(tmp_path: Path) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    file = folder / "twolane.yaml"
    file.write_text("one", encoding="utf-8")
    async with watching(file, look_every_s=0.05) as said:
        folder.rename(tmp_path / "old")
        folder.mkdir()
        file.write_text("two", encoding="utf-8")
        await said.one()
        file.write_text("three", encoding="utf-8")
        await said.one()


async def test_a_file_that_does_not_exist_yet_can_be_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "later" / "twolane.yaml"
    async with watching(file, since=digest(b"zero"), look_every_s=0.05) as said:
        file.parent.mkdir()
        file.write_text("one", encoding="utf-8")
        await said.one()


async def test_what_is_no_file_for_a_while_neither_holds_up_nor_ends_the_watch(file: Path) -> None:
    async with watching(file) as said:
        file.unlink()
        os.mkfifo(file)  # whoever opens it would wait for its other end
        await asyncio.sleep(0.3)
        file.unlink()
        file.symlink_to(file)  # a circle
        await asyncio.sleep(0.3)
        assert said.none_left()
        file.unlink()
        file.write_text("two", encoding="utf-8")
        await said.one()
