"""Whether a router is alive, asked from outside of it, wherever its ports are."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml

from router.app import App
from router.asking import NotReached, asked
from router.health import alive
from router.settings.model import Settings
from router.settings.reaching import admin_port
from tests.certificates import Authority
from tests.router.running import settings_for
from tests.scripted import ScriptedBackend

ROOT = Path(__file__).parents[2]


async def said(folder: Path, backend: ScriptedBackend, **settings: object) -> str:
    """Of a running router with these settings, of which the file says where it listens."""
    app = App(settings_for(backend, **settings))
    listen, admin = await app.start()
    try:
        ports = {"listen": str(listen), "admin": None if admin is None else str(admin)}
        file = folder / "twolane.yaml"
        file.write_text(yaml.safe_dump({**settings, **ports, "expose": "nonsense"}), encoding="utf-8")
        return await asyncio.to_thread(alive, file)
    finally:
        await app.close()


async def test_it_is_found_at_any_address_with_tls_with_a_key_and_without_an_admin_port(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("s")
    pair = Authority(folder).pair("router.example")
    async with ScriptedBackend() as backend:
        assert "the admin port http://127.0.0.1:" in await said(folder, backend)
        assert "https://127.0.0.1:" in await said(folder, backend, tls=pair.settings)
        assert "http://127.0.0.1:" in await said(folder, backend, admin="0.0.0.0:0", admin_key="s3cret")
        assert "the public port http://127.0.0.1:" in await said(folder, backend, admin=None)
        keys = [{"name": "a", "key": "k"}]
        assert "the public port https://127.0.0.1:" in await said(
            folder, backend, admin=None, tls=pair.settings, keys=keys
        )
        assert f"unix:{folder}/a" in await said(folder, backend, admin=f"unix:{folder}/a")


def test_where_nothing_answers_the_command_says_so_and_fails(tmp_path: Path) -> None:
    (tmp_path / "twolane.yaml").write_text("admin: 127.0.0.1:1\n", encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "router", "health"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert ended.returncode == 1
    assert "no router answers at http://127.0.0.1:1 (Connection refused)" in ended.stderr
    assert not [name for name in ("aiohttp", "router.app", "rich.table") if f" {name}\n" in ended.stderr]


async def test_the_certificate_of_the_settings_is_trusted_by_those_who_send_the_key(tmp_path: Path) -> None:
    pair, other = Authority(tmp_path).pair("router.example"), Authority(tmp_path).pair("router.example", stem="other")
    file = tmp_path / "twolane.yaml"

    def settings(tls: dict[str, str], admin: str) -> Settings:
        entry = {"name": "a", "url": "http://127.0.0.1:9"}
        rest = {"listen": "127.0.0.1:0", "admin": admin, "admin_key": "s3cret", "tls": tls, "backends": [entry]}
        file.write_text(yaml.safe_dump(rest), encoding="utf-8")
        return Settings.model_validate(rest)

    app = App(settings(pair.settings, "127.0.0.1:0"))
    _, admin = await app.start()
    try:
        settings(pair.settings, str(admin))
        door = admin_port(None, file, None)
        ask = partial(asked, path="/backends", timeout_s=5.0)
        assert (await asyncio.to_thread(ask, door.url, key=door.key, trusted=door.trusted))[0] == 200
        settings(other.settings, str(admin))
        wrong = admin_port(None, file, None)
        with pytest.raises(NotReached, match="certificate"):
            await asyncio.to_thread(ask, wrong.url, key=wrong.key, trusted=wrong.trusted)
    finally:
        await app.close()
