"""The router itself as a child process, from settings given as a dictionary."""

from __future__ import annotations

import json
import re
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from prometheus_client.parser import text_string_to_metric_families

from bench.servers.process import ROOT, ServerProcess, answers, open_directly

START_S = 20.0


class RouterProcess:
    """`python -m router serve`, ready when the constructor returns. `url` and `admin` have no path."""

    def __init__(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        urls: Sequence[str] = (),
        folder: Path | None = None,
        env: Mapping[str, str] | None = None,
        wait: bool = True,
    ) -> None:
        """From `settings` (ports 0 where they name none), or from `urls`, or from what the router finds by itself.

        `wait=False`: return when it listens, though no backend may be usable yet.
        """
        self.folder = folder or Path(tempfile.mkdtemp(prefix="twolane-router-"))
        self.file = self.folder / "twolane.yaml"
        command = [sys.executable, "-m", "router", "serve", *urls]
        if settings is not None:
            self.write({"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", **settings})
            command += ["-c", str(self.file)]
        self.process = ServerProcess(
            command, log=self.folder / "router.log", env={"PYTHONPATH": str(ROOT), **(env or {})}, cwd=self.folder
        )
        self.url = self.admin = ""
        with self.process.stopped_on_failure():
            self.process.wait_until(self._listens, timeout_s=START_S, what="listening router")
            if wait:
                self.process.wait_until(self.ready, timeout_s=START_S, what="usable backend")

    def write(self, settings: Mapping[str, Any]) -> None:
        """Replace the settings file. A running router takes it over by itself or on SIGHUP."""
        draft = self.file.with_suffix(".draft")
        draft.write_text(yaml.safe_dump(dict(settings), sort_keys=False), encoding="utf-8")
        draft.replace(self.file)

    def _listens(self) -> bool:
        said = self.process.output()
        listen = re.search(r"serves on (http://\S+)", said)
        admin = re.search(r"admin and metrics on (http://\S+)", said)
        if listen and admin:
            self.url, self.admin = listen[1], admin[1]
        return bool(self.url)

    def ready(self) -> bool:
        return answers(f"{self.admin}/ready") == 200

    def backends(self) -> dict[str, dict[str, Any]]:
        """What the admin port says about each backend, by name."""
        return {row["name"]: row for row in self.ask_admin("GET", "/backends")["backends"]}

    def metric(self, name: str) -> float:
        """Sum over all labels of one metric."""
        with open_directly(f"{self.admin}/metrics", timeout_s=10) as response:
            families = text_string_to_metric_families(response.read().decode())
        return sum(sample.value for family in families for sample in family.samples if sample.name == name)

    def ask_admin(self, method: str, path: str, body: object = None) -> Any:
        """JSON of the admin port; also of its error answers."""
        request = urllib.request.Request(
            self.admin + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with open_directly(request, timeout_s=10) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as error:
            with error:
                return json.loads(error.read())

    def stop(self) -> None:
        self.process.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
