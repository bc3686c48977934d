"""A server as a child process: its log, its readiness, its end."""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[2]
"""The work tree; commands run there, so that `python -m bench...` works without an installation."""

_LEASH = Path(__file__).with_name("leash.py")
_POLL_S = 0.02
_handed_out: set[int] = set()


class ServerFailed(Exception):
    """A server did not start or ended early. The message holds the command and the end of its log."""


def free_port() -> int:
    """A loopback port that nobody listens on.

    Taken from below the range that the kernel gives to outgoing connections, and never twice in one process, so that
    hardly anybody can take it between this check and the server's own bind.
    """
    for _ in range(200):
        port = random.randint(20_000, 32_000)
        if port not in _handed_out and is_free(port):
            _handed_out.add(port)
            return port
    raise ServerFailed("no free port between 20000 and 32000")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # a closed listener's old connections are no hindrance
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def open_directly(request: str | urllib.request.Request, *, timeout_s: float) -> http.client.HTTPResponse:
    """`urlopen` that no proxy of the environment gets to see."""
    response: http.client.HTTPResponse = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
        request, timeout=timeout_s
    )
    return response


def answers(url: str, *, timeout_s: float = 2.0) -> int | None:
    """Status of a GET, None while nobody answers."""
    try:
        with open_directly(url, timeout_s=timeout_s) as response:
            return response.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return None


def post_status(
    port: int, path: str, body: bytes, *, timeout_s: float, headers: Mapping[str, str] | None = None
) -> int | None:
    """Status of one small call on the loopback address, None while nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


class ServerProcess:
    """One command on a leash: it ends with `stop`, and also when this process dies in any way."""

    def __init__(
        self, command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None, cwd: Path = ROOT
    ) -> None:
        self.command = tuple(command)
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as sink:
            self._leash = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_LEASH), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
                cwd=cwd,
                start_new_session=True,
            )
        assert self._leash.stdout is not None
        line = self._leash.stdout.readline()
        if not line:
            self._let_go()
            raise ServerFailed(f"could not run {command[0]}\n{self.tail()}")
        self.pid = int(line)

    @property
    def returncode(self) -> int | None:
        """Exit code, None while it runs; 128+N where signal N ended it."""
        return self._leash.poll()

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def tail(self, lines: int = 25) -> str:
        return "\n".join(self.output().splitlines()[-lines:])

    def wait_until(self, ready: Callable[[], bool], *, timeout_s: float, what: str) -> None:
        """Return when `ready()` holds. Raises `ServerFailed` when the process ends or the time is over."""
        deadline_s = time.monotonic() + timeout_s
        while not ready():
            if (code := self.returncode) is not None:
                raise ServerFailed(f"ended with code {code} before {what}: {' '.join(self.command)}\n{self.tail()}")
            if time.monotonic() > deadline_s:
                raise ServerFailed(f"no {what} after {timeout_s:g} s: {' '.join(self.command)}\n{self.tail()}")
            time.sleep(_POLL_S)

    @contextlib.contextmanager
    def stopped_on_failure(self) -> Iterator[None]:
        """For a constructor that waits: whoever calls it has no name yet for what would be left running."""
        try:
            yield
        except BaseException:
            self.stop(grace_s=0)
            raise

    def signal(self, number: int) -> None:
        """To the server itself, not to its helpers. Nothing happens if it has ended."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it ended, and the leash is about to
                os.kill(self.pid, number)

    def wait(self, timeout_s: float | None) -> int:
        """Exit code. Raises `ServerFailed` if it still runs after `timeout_s` (None: no limit)."""
        try:
            return self._leash.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise ServerFailed(
                f"still running after {timeout_s:g} s: {' '.join(self.command)}\n{self.tail()}"
            ) from None

    def kill(self) -> None:
        """As a crash would end it: at once, connections reset."""
        self.signal(signal.SIGKILL)
        self.stop()

    def stop(self, *, grace_s: float = 5.0) -> None:
        """SIGTERM, after `grace_s` SIGKILL to the whole group. Returns when all is gone; may be called again."""
        if self._leash.poll() is None:
            self.signal(signal.SIGTERM)
            try:
                self._leash.wait(grace_s)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)
        self._let_go()

    def _let_go(self) -> None:
        for pipe in (self._leash.stdin, self._leash.stdout):
            if pipe is not None:
                pipe.close()
        self._leash.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
