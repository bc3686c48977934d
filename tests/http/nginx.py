"""A real nginx in front of a port, set up as in the benchmark and with our limits."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers import PEERS, Missing, Place
from bench.servers.process import ServerProcess, free_port
from tests.http.observed import PATIENCE_MS

VERSION = "1.22"
"""What it does differs from version to version, and so does what is listed."""

_LIMITS = (
    "  large_client_header_buffers 64 64k;\n"  # ours: limits.max_header, and 256 KiB a head
    "  client_max_body_size 100m;\n"
    "  proxy_buffer_size 64k;\n"
    "  proxy_buffers 8 64k;\n"
    "  proxy_busy_buffers_size 128k;\n"
)
_PATIENCE = f"proxy_read_timeout {PATIENCE_MS}ms;"


@contextmanager
def nginx(backend_port: int, folder: Path) -> Iterator[int]:
    """Runs until the block ends; gives its port. Raises `Missing` where there is none, or another one."""
    place = Place(backend=f"http://127.0.0.1:{backend_port}", port=free_port(), side_port=0, folder=folder)
    launch = next(peer for peer in PEERS if peer.name == "nginx").launch(place)
    if not launch.settings["version"].startswith(f"{VERSION}."):
        raise Missing(f"differences are listed for nginx {VERSION}, and this is {launch.settings['version']}")
    path = folder / "nginx.conf"
    config = path.read_text().replace("  access_log off;\n", "  access_log off;\n" + _LIMITS)
    config = config.replace("proxy_read_timeout 3600s;", _PATIENCE)
    if os.geteuid() == 0:
        config = "user root;\n" + config  # or its worker may not enter the folder of the test
    path.write_text(config)
    with ServerProcess(launch.command, log=folder / "log") as process:
        process.wait_until(lambda: _accepts(place.port), timeout_s=20.0, what="a connection")
        yield place.port


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
