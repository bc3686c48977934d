"""A48: what stands in the file means what it looks like, or is refused at start with file, line and key."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from bench.servers.process import ROOT
from router.settings.load import SettingsError, load
from tests.cases.apis import CHAT
from tests.cases.process import connect, router_process
from tests.router.running import router_for
from tests.scripted import ScriptedBackend

SECRET = "sk-0123456789-never-shown"
GOOD = "backends:\n  - name: desk\n    url: http://127.0.0.1:9\n"

REFUSED: dict[str, tuple[str, int, str]] = {
    "off as a section": (GOOD + "log: off\n", 4, "log"),
    "no as a flag": (GOOD + "    forward_priority: no\n", 4, "backends[0].forward_priority"),
    "yes as a flag": (GOOD + "classify: {builtin: yes}\n", 4, "classify.builtin"),
    "on as a word": (GOOD + "log: {level: on}\n", 4, "log.level"),
    "a level that is a boolean elsewhere": (GOOD + "log: {level: off}\n", 4, "log.level"),
    "a key of digits": (GOOD + "    api_key: 123\n", 4, "backends[0].api_key"),
    "a key that is a float": (GOOD + "    api_key: 1e10\n", 4, "backends[0].api_key"),
    "a key that is true": (GOOD + "    api_key: true\n", 4, "backends[0].api_key"),
    "an unset variable": (GOOD + "    api_key: ${UNSET}\n", 4, "backends[0].api_key"),
    "an unset variable inside text": (GOOD + "    api_key: Bearer-${UNSET}\n", 4, "backends[0].api_key"),
    "half a variable": (GOOD + "    api_key: ${UNSET\n", 4, "backends[0].api_key"),
    "an empty variable": (GOOD + "    api_key: ${EMPTY}\n", 4, "backends[0].api_key"),
    "a number with an underline": (GOOD + "timeouts: {connect: 1_0}\n", 4, "timeouts.connect"),
    "a duration without a unit": (GOOD + "timeouts: {connect: 10}\n", 4, "timeouts.connect"),
    "a duration in base sixty": (GOOD + "timeouts: {connect: 1:30}\n", 4, "timeouts.connect"),
    "a count with an underline": (GOOD + "    max_inflight: 1_0\n", 4, "backends[0].max_inflight"),
    "an octal count": (GOOD + "    max_inflight: 0o10\n", 4, "backends[0].max_inflight"),
    "a count with a zero in front": (GOOD + "    max_inflight: 010\n", 4, "backends[0].max_inflight"),
    "a hexadecimal count": (GOOD + "    max_inflight: 0x10\n", 4, "backends[0].max_inflight"),
    "a port in base sixty": (GOOD + "listen: 22:22\n", 4, "listen"),
    "a port alone": (GOOD + "listen: 8080\n", 4, "listen"),
    "a number as a model": (GOOD + "models: {chat: {desk: 3.5}}\n", 4, "models.chat.desk"),
    "a date as a model": (GOOD + "models: {2024-01-31: {nobody: x}}\n", 4, 'models."2024-01-31".nobody'),
    "a number as a name": ("backends:\n  - name: 1\n    url: http://127.0.0.1:9\n", 2, "backends[0].name"),
    "a name twice": (GOOD + "  - name: desk\n    url: http://127.0.0.1:8\n", 4, "backends[1].name"),
    "a key given twice": (GOOD + "    url: http://127.0.0.1:8\n", 4, "backends[0].url"),
    "a section given twice": (GOOD + "log: {level: info}\nlog: {level: debug}\n", 5, "log"),
    "a misspelt key": (GOOD + "timeout: {connect: 1s}\n", 4, "timeout"),
    "a tab": (GOOD + "log:\n\tlevel: info\n", 5, ""),
    "a tag": (GOOD + "log: !!python/object/apply:os.system [ls]\n", 4, "log"),
    "a number as a key": (GOOD + "1: x\n", 4, ""),
    "a list for a mapping": (GOOD + "classes: [ttft]\n", 4, "classes"),
    "an infinite weight": (GOOD + "    weight: .inf\n", 4, "backends[0].weight"),
    "not a number": (GOOD + "    weight: .nan\n", 4, "backends[0].weight"),
    "an alias without an anchor": (GOOD + "log: *nothing\n", 4, ""),
    "a value cut off by a comment": (GOOD + "    api_key: #secret\n    lane: fast\n", 5, "backends[0].lane"),
    "a second document": (GOOD + "---\nlog: {level: info}\n", 4, ""),
}


def problems_of(folder: Path, text: str, **env: str) -> list[tuple[int, str, str]]:
    file = folder / "twolane.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        load(file, {"EMPTY": "", **env})
    assert all(problem.source == str(file) for problem in caught.value.problems)
    return [(problem.line, problem.key_path, problem.message) for problem in caught.value.problems]


@pytest.mark.parametrize(("text", "line", "key"), REFUSED.values(), ids=REFUSED)
def test_refused_with_line_and_key(tmp_path: Path, text: str, line: int, key: str) -> None:
    (found,) = problems_of(tmp_path, text)
    assert found[:2] == (line, key)
    assert len(found[2]) > 10


@pytest.mark.parametrize(
    "text",
    [
        GOOD + f"    api_key: [{SECRET}]\n",
        GOOD + f"    api_key: {{a: {SECRET}}}\n",
        GOOD + f"    api_key: '{SECRET} with a space'\n",
        GOOD + f"    api_keys: {SECRET}\n",
        GOOD + f"    api_key: {SECRET}\n    api_key: {SECRET}\n",
        GOOD + f"    max_inflight: {SECRET}\n",
        GOOD + f"api_key: {SECRET}\n",
        GOOD + f"    api_key: '{SECRET}\n",
        GOOD + f"    api_key: *{SECRET}\n",
        GOOD + f"    api_key: !{SECRET}\n",
        GOOD + f"    api_key: &{SECRET} !!int x\n",
        GOOD + f"    api_key: ${{UNSET:{SECRET}}}\n",
        GOOD + f"\tapi_key: {SECRET}\n",
        f"backends: http://user:{SECRET}@host\n",
        f"backends: [{{name: desk, url: 'http://user:{SECRET}@host'}}]\n",
        GOOD + "    max_inflight: ${KEY}\n",
        GOOD + "    url: http://${KEY}@host\n",
        GOOD + "policy: {use: '${KEY}'}\n",
        GOOD + "classify: {rules: [{if: {prompt_tokens: '${KEY}'}, then: ttft}]}\n",
    ],
    ids=range(19),
)
def test_a_secret_is_never_echoed(tmp_path: Path, text: str) -> None:
    found = problems_of(tmp_path, text, KEY=SECRET)
    assert found
    assert SECRET not in str(found)


async def _key_sent(text: str, folder: Path, **env: str) -> str | None:
    """The key that a backend gets when the file says this."""
    async with ScriptedBackend() as backend:
        file = folder / "twolane.yaml"
        file.write_text(text.replace("http://127.0.0.1:9", backend.url), encoding="utf-8")
        entry = load(file, env).settings.backends[0]
        key = entry.api_key.get_secret_value() if entry.api_key is not None else None
        async with router_for((backend, {"api_key": key})) as router:
            assert (await router.post(CHAT.path, CHAT.body(stream=False))).status == 200
        return backend.received[0].one("authorization")


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("0123", "0123"),
        ("'0123'", "0123"),
        ('"123"', "123"),
        ("0600", "0600"),
        ("1_0", "1_0"),
        ("0x1F", "0x1F"),
        ("off", "off"),
        ("'null'", "null"),
        ("12:34:56", "12:34:56"),
        ("2024-01-31", "2024-01-31"),
        ("${KEY}", "a:#b"),
        ('"${KEY}"', "a:#b"),
        ("${NUMBER}", "0123"),
        ("${UNSET:-0123}", "0123"),
        ("$${KEY}", "${KEY}"),
        ("a#b", "a#b"),
        ("a:b # a comment", "a:b"),
    ],
)
async def test_a_key_is_sent_as_it_looks(tmp_path: Path, written: str, sent: str) -> None:
    text = GOOD + f"    api_key: {written}\n"
    assert await _key_sent(text, tmp_path, KEY="a:#b", NUMBER="0123") == f"Bearer {sent}"


def test_a_value_with_colon_space_and_hash_from_the_environment_stays_one_value(tmp_path: Path) -> None:
    file = tmp_path / "twolane.yaml"
    file.write_text(GOOD + "models: {chat: {desk: '${MODEL}'}}\n", encoding="utf-8")
    tricky = "org/model: v1 # {really} & *this\n  policy: round_robin"
    settings = load(file, {"MODEL": tricky}).settings
    assert settings.models["chat"]["desk"] == tricky
    assert settings.policy.use == "workload_aware"


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_anchors_merge_keys_and_a_byte_order_mark_do_what_they_look_like(tmp_path: Path, line_end: str) -> None:
    text = """\
backends:
  - &first {name: desk, url: http://127.0.0.1:9, max_inflight: 2, lane: latency}
  - {<<: *first, name: rack, url: http://127.0.0.1:8}
  - <<: *first
    name: spare
    url: http://127.0.0.1:7
    lane: throughput
"""
    file = tmp_path / "twolane.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", line_end).encode())
    desk, rack, spare = load(file, {}).settings.backends
    assert (desk.name, rack.name, spare.name) == ("desk", "rack", "spare")
    assert (rack.max_inflight, rack.lane) == (2, "latency")
    assert (spare.max_inflight, spare.lane) == (2, "throughput")


# --- the commands


def _run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "COLUMNS": "40"}
    return subprocess.run(
        [sys.executable, "-m", "router", *command], cwd=folder, env=env, capture_output=True, text=True, timeout=30
    )


@pytest.mark.parametrize("command", [("serve", "-c", "twolane.yaml"), ("check", "twolane.yaml")], ids=lambda c: c[0])
async def test_at_start_all_of_them_come_at_once_and_it_does_not_start(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    text = (
        GOOD + f"    api_key: ${{UNSET}}\n    weight: off\n  - {{name: desk, key: {SECRET}}}\nlisten: 22:22\nlog: off\n"
    )
    (tmp_path / "twolane.yaml").write_text(text, encoding="utf-8")
    done = await asyncio.to_thread(_run, tmp_path, *command)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    starts = ("4:14: backends[0].api_key", "5:13: backends[0].weight", "6:", "7:9: listen", "8:6: log")
    for start in starts:
        assert any(line.startswith(f"twolane.yaml:{start}") for line in lines), (start, lines)
    assert SECRET not in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


async def test_a_reload_with_such_a_file_changes_nothing(tmp_path: Path) -> None:
    async with ScriptedBackend() as backend:
        async with router_process(tmp_path, backend) as router:
            good = router.file.read_text(encoding="utf-8")
            router.file.write_text(good + "log: off\n", encoding="utf-8")
            told = await asyncio.to_thread(router.ask_admin, "POST", "/reload")
            assert told["reloaded"] is False
            assert any("log" in problem and "twolane.yaml:" in problem for problem in told["problems"])
            async with await connect(router) as client:
                await client.post(CHAT.path, CHAT.body(stream=False))
                assert (await client.answer()).status == 200
