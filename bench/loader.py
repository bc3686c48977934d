"""The load process as the measuring side sees it: ask for a job, get its result."""

from __future__ import annotations

import json
import subprocess
import sys
from types import TracebackType
from typing import Any, Self

from bench.load import Calls, FirstTokens, Idle, LoadError, Tokens
from bench.servers.process import ROOT


class Loader:
    """`python -m bench.load`, one job at a time. Every job raises `LoadError` with the reason where it failed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.load"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def calls(self, **arguments: Any) -> Calls:
        return Calls(**self._ask("calls", arguments))

    def tokens(self, **arguments: Any) -> Tokens:
        return Tokens(**self._ask("tokens", arguments))

    def first_tokens(self, **arguments: Any) -> FirstTokens:
        return FirstTokens(**self._ask("first_tokens", arguments))

    def idle(self, **arguments: Any) -> Idle:
        return Idle(**self._ask("idle", arguments))

    def _ask(self, job: str, arguments: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"job": job, **arguments}), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise LoadError(f"the load process ended with code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise LoadError(answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._process:  # closes the pipes, which ends it, and waits
            pass
