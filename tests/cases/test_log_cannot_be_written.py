"""Standard error is on a disk that is full: the router starts, serves and ends as if somebody read what it says."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bench.servers.process import ROOT, answers, free_port
from tests.rawclient import RawClient
from tests.scripted import ScriptedBackend, echo


@pytest.mark.parametrize("unbuffered", ["", "1"])
async def test_answers_are_whole_though_no_line_can_be_written(unbuffered: str, tmp_path: Path) -> None:
    async with ScriptedBackend(echo) as backend:
        await serve_without_log(backend, tmp_path, unbuffered)


async def serve_without_log(backend: ScriptedBackend, folder: Path, unbuffered: str) -> None:
    listen, admin = free_port(), free_port()
    settings = {
        "listen": f"127.0.0.1:{listen}",
        "admin": f"127.0.0.1:{admin}",
        "log": {"calls": True, "format": "json"},
        "backends": [{"name": "b0", "url": backend.url, "engine": "openai", "lane": "latency"}],
    }
    file = folder / "twolane.yaml"
    file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    with open("/dev/full", "wb") as full:
        process = subprocess.Popen(
            [sys.executable, "-m", "router", "serve", "-c", str(file)],
            stderr=full,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered},
        )
    try:
        while await asyncio.to_thread(answers, f"http://127.0.0.1:{admin}/ready") != 200:
            assert process.poll() is None, "it has ended"
            await asyncio.sleep(0.05)
        async with await RawClient.connect(listen) as client:
            for _ in range(40):  # more than are told of at once
                await client.post(
                    "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
                )
                answer = await client.answer()
                assert answer.status == 200
    finally:
        process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(process.wait, 20)
    assert code == 0
