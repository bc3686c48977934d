"""Which inference servers run on this machine, and settings that would fit them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from router.engines import ENGINES, IDENTITY_PATHS, recognise
from router.engines.api import Identity
from router.engines.openai import owners
from router.fleet.probes import Asker, loading_kind

USUAL_PORTS = (8080, 8000, 8081, 30000, 11434, 1234, 5000, 10240)
USUAL_HOSTS = ("127.0.0.1", "::1")

_FIRST_PATH = "/v1/models"
_LISTEN_PORTS = range(8080, 60_000, 8)
"""Where the router may listen, and its admin port above; the first pair that no server holds is suggested."""
_NAMES_SHOWN = 5
_TITLES = {
    "llamacpp": "llama.cpp",
    "vllm": "vLLM",
    "sglang": "SGLang",
    "ollama": "Ollama",
    "lmstudio": "LM Studio",
    "openai": "OpenAI-compatible server",
}


@dataclass(frozen=True, slots=True)
class Found:
    """An inference server that answered."""

    url: str
    identity: Identity
    loading: bool = False
    """It is loading its model, and has not said more than its kind."""


async def discover(
    ports: Sequence[int] = USUAL_PORTS, hosts: Sequence[str] = USUAL_HOSTS, *, timeout_s: float = 2.0
) -> list[Found]:
    """All that answer on these ports, asked at once, in the order of `ports`; takes up to twice `timeout_s`.

    What answers HTTP but is no inference server is left out, and so is a Twolane router. A server that listens on
    several of `hosts` is listed once, by the first.
    """
    found = await asyncio.gather(*(_look(_url(host, port), timeout_s) for port in ports for host in hosts))
    kept: dict[tuple[int | None, Identity], Found] = {}
    for one in found:
        if one is not None:
            kept.setdefault((urlsplit(one.url).port, one.identity), one)
    return list(kept.values())


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _look(url: str, timeout_s: float) -> Found | None:
    asker = Asker(url)
    try:
        # One path first: most ports are closed, and what is no inference server should not be pestered with a dozen.
        first = await asker.ask(_FIRST_PATH, timeout_s)
        if first is None or first.from_router or "twolane" in owners({_FIRST_PATH: first.answer}):
            return None
        replies = await asker.ask_all((path for path in IDENTITY_PATHS if path != _FIRST_PATH), timeout_s)
    finally:
        await asker.close()
    answers = {_FIRST_PATH: first.answer} | {path: reply.answer for path, reply in replies.items()}
    loading = loading_kind(answers)
    if loading is not None:
        kind, _ = loading
        return Found(url, Identity(engine=kind.name), loading=True)
    identity = recognise(answers)
    return None if identity is None else Found(url, identity)


def suggest_yaml(found: Sequence[Found]) -> str:
    """A commented settings file for these servers, which the settings loader accepts as it is."""
    taken = {urlsplit(one.url).port for one in found}
    listen = next(port for port in _LISTEN_PORTS if taken.isdisjoint((port, port + 1)))
    names = _backend_names(found)
    backends = [_backend(name, one) for name, one in zip(names, found, strict=True)] or [_NOTHING_FOUND]
    parts = [
        _HEAD.format(listen=listen, admin=listen + 1),
        "backends:\n" + "\n".join(backends),
        _lanes_hint(found),
        _models_hint(names, found),
        _TAIL,
    ]
    return "\n".join(part for part in parts if part)


_HEAD = """\
# Settings of Twolane, written from what answered on this machine. Edit freely: `twolane check FILE` says what is wrong
# and where; a running router takes over a changed file by itself. Durations read 500ms, 2s, 10m.

listen: 127.0.0.1:{listen}    # clients connect here: base URL http://127.0.0.1:{listen}/v1
admin: 127.0.0.1:{admin}     # metrics, state of the backends, explain, reload
"""

_NOTHING_FOUND = """\
  # No inference server answered on the usual ports. Put the address of yours here.
  - name: my-server
    url: http://127.0.0.1:8000
"""

_TAIL = """\
# What calls of each class are promised; these are the defaults.
# classes:
#   ttft:       {slo: {ttft: 500ms, tpot: 50ms}, lanes: [latency, throughput], max_wait: 30s}
#   mixed:      {slo: {complete: 6s}, lanes: any, max_wait: 2m}
#   throughput: {lanes: [throughput, latency], keep_free: {latency: 1}, max_wait: 10m}
"""


def _backend_names(found: Sequence[Found]) -> list[str]:
    """`llamacpp-8080`; a second one of that name gets `-2`."""
    names: list[str] = []
    for one in found:
        plain = f"{one.identity.engine}-{urlsplit(one.url).port}"
        same = sum(1 for name in names if name == plain or name.startswith(f"{plain}-"))
        names.append(plain if not same else f"{plain}-{same + 1}")
    return names


def _backend(name: str, one: Found) -> str:
    lines = [
        f"  # {_described(one)}",
        f"  - name: {name}",
        f'    url: "{one.url}"',
        f"    lane: {ENGINES[one.identity.engine].default_lane}",
    ]
    if one.identity.models:
        lines.insert(1, f"  # models: {_listed(one.identity.models)}")
    if one.identity.engine == "ollama":
        lines.append(
            "    max_inflight: 1    # it does not say; as OLLAMA_NUM_PARALLEL there. More calls wait here, by class"
        )
    elif one.identity.slots is None and not one.loading:
        lines.append("    # max_inflight: 32    # it has no fixed slots; beyond this, calls wait here, by class")
    return "\n".join(lines) + "\n"


def _described(one: Found) -> str:
    identity = one.identity
    said = [" ".join(word for word in (_TITLES[identity.engine], _quoted(identity.version)) if word)]
    if one.loading:
        said.append("was still loading its model; slots, context and models are asked for when it is ready")
    if identity.slots is not None:
        said.append(f"{identity.slots} slots")
    if identity.context_tokens is not None:
        said.append(f"{identity.context_tokens} tokens of context{' each' if identity.slots else ''}")
    return ", ".join(said)


def _listed(models: Sequence[str]) -> str:
    shown = ", ".join(_quoted(name) for name in models[:_NAMES_SHOWN])
    more = len(models) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _quoted(text: str) -> str:
    """Safe in a comment and as a YAML scalar: what a server says of itself may contain anything, even line breaks."""
    plain = text.isascii() and text.replace("-", "").replace("_", "").replace(".", "").isalnum()
    return text if plain or not text else json.dumps(text)


def _lanes_hint(found: Sequence[Found]) -> str:
    lanes = {ENGINES[one.identity.engine].default_lane for one in found}
    if len(found) < 2 or len(lanes) > 1:
        return ""
    return (
        f"# All servers are of kinds that start in the {lanes.pop()} lane. Give the one with the larger batches\n"
        "# `lane: throughput` and the one that answers first soonest `lane: latency`.\n"
    )


def _models_hint(names: Sequence[str], found: Sequence[Found]) -> str:
    served = [
        f"{name}: {json.dumps(one.identity.models[0])}"
        for name, one in zip(names, found, strict=True)
        if one.identity.models
    ]
    example = ", ".join(served) or 'my-server: "the name that it knows"'
    return f"# One public name for a model that servers call by different names:\n# models:\n#   chat: {{{example}}}\n"
