"""What a reload says is in effect is in effect: nothing of a running router still goes by the settings before.

Each setting gets a value that is found nowhere else. After a reload to other values, all that can be reached from the
router is looked through for one of the old ones. True and false and fixed words cannot be told apart like this.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from router.app import App
from router.ports import Ports
from router.settings.diff import FIXED_AT_START
from router.settings.load import load
from router.settings.model import Settings
from tests.scripted import eventually

WORDS = {"model", "shadow", "default", "use", "expose", "level", "format", "lanes", "lane", "engine", "then", "classes"}
"""Keys whose values are a few fixed words."""


def text(number: int, folder: Path) -> str:
    """A file in which every number and name depends on `number`, which is 1 or 2."""
    n = number
    return f"""
listen: 127.0.0.1:0
admin: 127.0.0.1:0
keys: [{{name: key-{n}, key: secret-{n}, classes: [ttft, mixed], calls_per_minute: 700{n}, tokens_per_minute: 7010{n},
         parallel: 702{n}}}]
admin_key: admin-secret-{n}
hosts: [host-{n}.example]
cors: {{origins: ["https://page-{n}.example"]}}
trusted_proxies: [10.9.{n}.0/24]
backends:
  - {{name: desk, url: "http://127.0.0.1:9", api_key: backend-secret-{n}, max_inflight: 31{n}, context_tokens: 3300{n},
     weight: 3.14{n}, models: [served-{n}]}}
  - {{name: rack-{n}, url: "http://127.0.0.{n}:9"}}
  - {{name: same, url: "http://127.0.0.3:9"}}
models: {{chat-{n}: {{desk: served-{n}}}}}
passthrough: rack-{n}
classify:
  rules: [{{if: {{header: {{x-team-{n}: a}}}}, then: mixed}}]
  min_confidence: 0.{n}123
classes:
  ttft: {{slo: {{ttft: 40{n}ms, tpot: 41{n}ms, complete: 42{n}s}}, max_wait: 43{n}s}}
  mixed: {{slo: {{ttft: 44{n}ms, tpot: 45{n}ms, complete: 46{n}s}}, max_wait: 47{n}s}}
  throughput: {{slo: {{ttft: 48{n}ms, tpot: 49{n}ms, complete: 50{n}s}}, max_wait: 51{n}s,
               keep_free: {{latency: 52{n}}}}}
line: {{max_waiting: 1234{n}, ageing: 53{n}s, queue_pings: 54{n}s}}
timeouts: {{connect: 55{n}s, first_byte: 56{n}s, first_token: 57{n}s, idle: 58{n}s}}
retries: {{share: 0.{n}234, per_second: 59{n}}}
health: {{interval: 60{n}s, timeout: 61{n}s, down_after: 62{n}, break_after: 63{n}, retry_after: 64{n}s,
         load_half_life: 65{n}s}}
limits: {{max_body: 7{n}KiB}}
headers: {{class: [x-class-{n}], session: [x-session-{n}], tightest: 0.{n}345}}
shutdown_grace: 66{n}ms
traces: {{share: 0.{n}456, per_minute: 67{n}}}
decisions: {{file: {folder}/decisions-{n}.jsonl, max_size: 1{n}MiB, max_age: 68{n}h, keep: 69{n}}}
dashboard: {{history: {folder}/history-{n}.sqlite, max_size: 2{n}MiB}}
"""


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from leaves(inner)
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from leaves(inner)
    elif isinstance(value, int | float | str) and not isinstance(value, bool):
        yield value


def alike(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """Keys of both that have the same value, but for true, false and nothing."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() & other.keys():
            yield from alike(one[key], other[key], f"{place}.{key}" if place else key)
    elif isinstance(one, tuple) and one and isinstance(one[0], dict):
        yield from alike(one[0], other[0], f"{place}[0]")
    elif one == other and not isinstance(one, bool):
        yield place


def reached(root: object, *others: object) -> Iterator[tuple[object, object]]:
    """Everything that can be got at from there, each with one that refers to it. Not through modules and classes."""
    seen = {id(root), *(id(each) for each in others)}
    left = [root]
    while left:
        holder = left.pop()
        for each in gc.get_referents(holder):
            if id(each) in seen or isinstance(each, ModuleType | type | asyncio.AbstractEventLoop | Ports):
                continue
            if isinstance(each, dict) and "__builtins__" in each:
                continue
            seen.add(id(each))
            yield each, holder
            left.append(each)


async def test_no_part_of_the_router_goes_by_the_settings_before_a_reload(tmp_path: Path) -> None:
    path = tmp_path / "twolane.yaml"
    path.write_text(text(1, tmp_path), encoding="utf-8")
    loaded = load(path)
    before = loaded.settings
    app = App(before, loaded.path, loaded.digest)
    await app.start()
    try:
        path.write_text(text(2, tmp_path), encoding="utf-8")
        assert await app.reload() == {"reloaded": True, "problems": []}
        old, new = (set(leaves(each.model_dump(by_alias=True))) for each in (before, app.settings))
        with contextlib.suppress(AssertionError):  # what is retired is let go of soon
            await eventually(lambda: not stale(app, before, old - new))
        assert stale(app, before, old - new) == []
    finally:
        await app.close()


def stale(app: App, before: Settings, values: set[Any]) -> list[str]:
    """What still holds one of the old values."""
    found = []
    for each, holder in reached(app, before, asyncio.current_task()):
        if type(each) in (int, float, str) and each in values:
            found.append(f"{each!r} in {type(holder).__name__} {str(holder)[:300]}")
    return found


def test_the_two_files_differ_in_every_number_and_name_that_a_running_router_takes_over(tmp_path: Path) -> None:
    one, other = (load_text(text(number, tmp_path), tmp_path / f"{number}.yaml") for number in (1, 2))
    left_out = {"backends[0].ca_file", "keys[0].key_file", "traces.endpoint"}  # files, and where spans would be sent
    same = {
        key for key in alike(one, other) if not key.startswith(FIXED_AT_START) and key.rpartition(".")[2] not in WORDS
    }
    assert same == left_out | {"backends[0].name", "backends[0].url"}, "give these a value of their own above"


def load_text(content: str, path: Path) -> dict[str, Any]:
    path.write_text(content, encoding="utf-8")
    return load(path).settings.model_dump(by_alias=True)
