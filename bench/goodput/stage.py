"""A fresh fleet of emulated servers and a router in front of it, for one workload."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
import uvloop

from bench.goodput.routers import Place, Router
from bench.goodput.send import Outcome, send
from bench.mixes.plan import MODEL, PATH, Workload
from bench.peers import Launch
from bench.servers.process import ServerProcess, answers, free_port, post_status

START_LIMIT_S = 180.0
SETTLE_S = 2.0
"""Between the first answer through a router and the workload: health checks and load monitors have run once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Words for the emulated servers: options of `python -m bench.emulator`."""

    desk: Sequence[str] = ()
    rack: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    launch: Launch
    outcomes: Sequence[Outcome]


def run(router: Router, workload: Workload, fleet: Fleet) -> Ran:
    """Raises `bench.peers.Missing` or `ServerFailed`."""
    with TemporaryDirectory(prefix="twolane-goodput-") as name, ExitStack() as stack:
        folder = Path(name)
        desk = stack.enter_context(emulator("llamacpp", fleet.desk, folder / "desk.log"))
        rack = stack.enter_context(emulator("vllm", fleet.rack, folder / "rack.log"))
        return run_before(desk, rack, router, workload, folder)


def run_before(desk: str, rack: str, router: Router, workload: Workload, folder: Path) -> Ran:
    """The router in front of these two servers. Raises as `run`."""
    with standing(desk, rack, router, folder) as (place, launch):
        servers = {"latency": _port(desk), "throughput": _port(rack)}
        outcomes = uvloop.run(send(workload, place.port, router.label, servers=servers))
    return Ran(launch=launch, outcomes=outcomes)


@contextmanager
def standing(desk: str, rack: str, router: Router, folder: Path) -> Iterator[tuple[Place, Launch]]:
    """The router as it stands and answers; it ends with the block."""
    place = Place(desk=desk, rack=rack, port=free_port(), side_port=free_port(), folder=folder)
    launch = router.launch(place)
    process = ServerProcess(launch.command, log=folder / "router.log", env=router.env)
    try:
        process.wait_until(lambda: _answers(place.port), timeout_s=START_LIMIT_S, what="an answer through it")
        time.sleep(SETTLE_S)
        yield place, launch
    finally:
        process.kill()


@contextmanager
def emulator(engine: str, options: Sequence[str], log: Path) -> Iterator[str]:
    """URL of an emulated server."""
    port = free_port()
    command = [sys.executable, "-m", "bench.emulator", "--engine", engine, "--port", str(port), *options]
    with ServerProcess(command, log=log) as process:
        url = f"http://127.0.0.1:{port}"
        process.wait_until(lambda: answers(f"{url}/health") == 200, timeout_s=START_LIMIT_S, what="a healthy server")
        yield url


def _port(url: str) -> int:
    return int(url.rpartition(":")[2])


def _answers(port: int) -> bool:
    """Whether two small calls in a row get through, which most routers send to different servers."""
    return all(_status(port) == 200 for _ in range(2))


def _status(port: int) -> int | None:
    call = {"model": MODEL, "messages": [{"role": "user", "content": "ready?"}], "seed": 1, "max_tokens": 1}
    return post_status(port, PATH, orjson.dumps(call), timeout_s=5.0, headers={"Authorization": "Bearer sk-ready"})
