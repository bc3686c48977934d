"""Where a measurement takes place: the scripted backend, the load process, and fresh processes of the peers on cores
of their own."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.bodies import PATH, chat_body
from bench.loader import Loader
from bench.peers import Launch, Peer, Place
from bench.servers.process import ServerFailed, ServerProcess, free_port, post_status
from router.files import raise_limit

START_LIMIT_S = 60.0
POLL_S = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A peer that has answered. `start_s`: from the start of its process to the first 200 through it."""

    name: str
    launch: Launch
    port: int
    pid: int
    start_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    folder: Path
    backend_port: int
    loader: Loader
    cores: frozenset[int]
    """Of the measured processes; the backend and the load process have the others."""
    files: int
    """Open files that each process may have."""

    @contextmanager
    def started(self, peer: Peer) -> Iterator[Running]:
        """A fresh process of that peer. Raises `bench.peers.Missing` or `ServerFailed`."""
        folder = Path(tempfile.mkdtemp(prefix=f"{peer.name}-", dir=self.folder))
        backend = f"http://127.0.0.1:{self.backend_port}"
        place = Place(backend=backend, port=free_port(), side_port=free_port(), folder=folder)
        launch = peer.launch(place)
        began_s = time.perf_counter()
        with pinned_to(self.cores), ServerProcess(launch.command, log=folder / "log") as process:
            _wait_for_answer(process, place.port, until_s=began_s + START_LIMIT_S)
            start_s = time.perf_counter() - began_s
            try:
                yield Running(name=peer.name, launch=launch, port=place.port, pid=process.pid, start_s=start_s)
            finally:
                process.kill()  # there is nothing to save, and a polite end takes some of them five seconds


@contextmanager
def stage() -> Iterator[Stage]:
    open_files = raise_limit()
    cores = sorted(os.sched_getaffinity(0))
    tools, measured = (cores[:-1], cores[-1:]) if len(cores) > 1 else (cores, cores)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="twolane-bench-")))
        stack.enter_context(pinned_to(frozenset(tools)))
        port = free_port()
        command = [sys.executable, "-m", "bench.scripted_backend", "--port", str(port)]
        backend = stack.enter_context(ServerProcess(command, log=folder / "backend.log"))
        _wait_for_answer(backend, port, until_s=time.perf_counter() + START_LIMIT_S)
        loader = stack.enter_context(Loader())
        yield Stage(folder=folder, backend_port=port, loader=loader, cores=frozenset(measured), files=open_files)


@contextmanager
def pinned_to(cores: frozenset[int]) -> Iterator[None]:
    """Processes that are started inside run on these cores, and so does this one."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _wait_for_answer(process: ServerProcess, port: int, *, until_s: float) -> None:
    while (status := _status(port)) != 200:
        if process.returncode is not None:
            raise ServerFailed(f"ended with code {process.returncode}\n{process.tail(5)}")
        if time.perf_counter() > until_s:
            raise ServerFailed(f"no answer after {START_LIMIT_S:g} s (last status: {status})\n{process.tail(5)}")
        time.sleep(POLL_S)


def _status(port: int) -> int | None:
    return post_status(port, PATH, chat_body(512, stream=False, max_tokens=1), timeout_s=1.0)
