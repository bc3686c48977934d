"""The two real inference servers of tests, demo and benchmark: llama.cpp and vLLM."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.servers.process import ROOT, ServerProcess, answers, free_port, open_directly

LLAMACPP_START_S = 60.0
VLLM_START_S = 240.0
"""It takes 20 s on two idle cores, and several times that beside a compiler."""

_VLLM_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB; the default is half of the machine
    "VLLM_ENABLE_RESPONSES_API_STORE": "1",  # else a response cannot be fetched or continued by its id
}


class EngineServer:
    """A running inference server. `url` has no path; `name` is what it calls its model first."""

    def __init__(self, process: ServerProcess, *, url: str, name: str) -> None:
        self.process = process
        self.url = url
        self.name = name

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def get(self, path: str) -> Any:
        """JSON, or text where it is none."""
        with open_directly(self.url + path, timeout_s=10) as response:
            body = response.read().decode()
        return json.loads(body) if body.startswith(("{", "[")) else body

    def stop(self) -> None:
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()


class LlamaCppServer(EngineServer):
    """llama.cpp with a fixed number of slots."""

    def __init__(
        self,
        model: Path,
        *,
        port: int = 0,
        slots: int = 2,
        ctx: int = 4096,
        alias: str = "",
        threads: int = 1,
        threads_http: int = 64,
        extra: Sequence[str] = (),
        log: Path | None = None,
        wait: bool = True,
    ) -> None:
        """Returns when it serves, or at once with `wait=False` (which needs a `port`)."""
        name = alias or model.stem
        command = [sys.executable, "-m", "bench.servers.llamacpp", str(model), "--alias", name, "--port", str(port)]
        numbers = {"slots": slots, "ctx": ctx, "threads": threads, "threads-http": threads_http}
        for option, number in numbers.items():
            command += [f"--{option}", str(number)]
        process = ServerProcess([*command, *extra], log=log or _log("llamacpp"))
        super().__init__(process, url=f"http://127.0.0.1:{port}", name=name)
        self.slots = slots
        if wait:
            with process.stopped_on_failure():
                process.wait_until(self._listens, timeout_s=LLAMACPP_START_S, what="listening llama.cpp")

    def _listens(self) -> bool:
        found = re.search(r"^listening (http://\S+)$", self.process.output(), re.MULTILINE)
        if found:
            self.url = found[1]
        return found is not None

    def busy_slots(self) -> int:
        return sum(slot["is_processing"] for slot in self.get("/slots"))


class VllmServer(EngineServer):
    """vLLM on the CPU, from an environment of its own (`vllm_python`)."""

    def __init__(
        self,
        model: Path,
        *,
        port: int = 0,
        alias: str = "",
        max_seqs: int = 8,
        ctx: int = 4096,
        extra: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        log: Path | None = None,
        python: Path | None = None,
        start_s: float = VLLM_START_S,
    ) -> None:
        """Returns when it serves, 20 s or more later; raises `ServerFailed` where that takes longer than `start_s`."""
        name = alias or model.name
        port = port or free_port()
        module = [str(python or vllm_python()), "-m", "vllm.entrypoints.openai.api_server"]
        command = [
            *module,
            "--model",
            str(model),
            "--served-model-name",
            name,
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ]
        command += ["--dtype", quick_dtype(), "--max-model-len", str(ctx), "--max-num-seqs", str(max_seqs)]
        command += ["--enforce-eager", "--enable-prompt-tokens-details", "--enable-server-load-tracking"]
        command += ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
        environment = {**_VLLM_ENVIRONMENT, **(env or {})}
        process = ServerProcess([*command, *extra], log=log or _log("vllm"), env=environment)
        super().__init__(process, url=f"http://127.0.0.1:{port}", name=name)
        with process.stopped_on_failure():
            process.wait_until(lambda: answers(f"{self.url}/health") == 200, timeout_s=start_s, what="answering vLLM")

    def metric(self, name: str) -> float:
        """Sum over all labels of one metric."""
        lines = re.findall(rf"^vllm:{name}(?:\{{.*\}})? (\S+)$", self.get("/metrics"), re.MULTILINE)
        return sum(map(float, lines))


def vllm_python() -> Path:
    """Interpreter of the vLLM environment: `TWOLANE_VLLM_PYTHON`, or what `make check-vllm` installs."""
    return Path(os.environ.get("TWOLANE_VLLM_PYTHON") or ROOT / ".venv-vllm" / "bin" / "python")


def quick_dtype(processor: Path = Path("/proc/cpuinfo")) -> str:
    """Numbers that this processor has instructions for. Without them bf16 is emulated, ten times as slow on prompts."""
    return "bfloat16" if processor.is_file() and "bf16" in processor.read_text() else "float32"


def _log(kind: str) -> Path:
    handle, name = tempfile.mkstemp(prefix=f"twolane-{kind}-", suffix=".log")
    os.close(handle)
    return Path(name)
