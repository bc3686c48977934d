"""Other settings against the calls of the last hour: replayed from the decision log, nothing is applied.

The replay is `twolane replay` in a process of its own at low priority, one at a time. It is given copies: the calls,
the settings in effect, and these with the sections that somebody has edited. Keys and secrets are in none of them, nor
in its environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import os
import sys
import tempfile
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import yaml

from router.errors import BadRequest, NotFound, Overloaded
from router.fleet.backend import Backend
from router.observe.logfiles import raw_lines, with_those_set_aside
from router.settings.document import Flaw, read
from router.settings.load import MOST_PROBLEMS, parse
from router.settings.model import Settings
from router.settings.problems import Problem, SettingsError, dotted
from router.settings.shown import redacted

SECTIONS: Final = ("policy", "classes", "line", "classify")
"""What may be edited: what decides about calls."""
_KEPT: Final = (*SECTIONS, "models", "headers")
"""Beside the backends, all that a replay goes by."""
PAST_S: Final = 3600.0
MOST_CALLS: Final = 3_000
MOST_CHARACTERS: Final = 50_000
LONGEST_S: Final = 300.0
_SOURCE: Final = "edited"
"""Stands before each problem."""
_NICE: Final = 15
_TIME: Final = b'"time":"'


class WhatIf:
    """`settings` and `backends` are asked each time; `wall_s`: seconds since 1970."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        backends: Callable[[], tuple[Backend, ...]],
        wall_s: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._backends = backends
        self._wall_s = wall_s
        self._running = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._closed = False

    def close(self) -> None:
        """End the replay that runs, if one does."""
        self._closed = True
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def document(self) -> dict[str, Any]:
        """`yaml`: what can be edited, as it is now; `why` a replay is not possible, empty where it is."""
        current = await asyncio.to_thread(_current, self._settings())
        return {"yaml": current, "why": self._why_not(), "most_calls": MOST_CALLS}

    def _why_not(self) -> str:
        if self._settings().decisions.file is None:
            return "no decision log is written; name a file for it in the settings: decisions: {file: FILE}"
        return ""

    async def try_out(self, text: object) -> dict[str, Any]:
        """Replay the last hour under the settings in effect and under the edited ones.

        Raises `BadRequest` (what is wrong with the text), `NotFound` (no log, or no calls in it) or `Overloaded`.
        """
        settings = self._settings()
        file = settings.decisions.file
        if file is None:
            raise NotFound(self._why_not())
        if self._running.locked():
            raise Overloaded("a replay runs already; try again when it has ended")
        async with self._running:
            # In a thread, as everything here that takes long: streams go on meanwhile.
            trial = await asyncio.to_thread(prepared, text, settings, self._as_found())
            with tempfile.TemporaryDirectory(prefix="twolane-") as name:
                folder = Path(name)
                since = datetime.fromtimestamp(self._wall_s() - PAST_S, UTC).isoformat(timespec="milliseconds")
                calls = await asyncio.to_thread(_copy_calls, file, since.encode(), folder / "calls.jsonl")
                if not calls:
                    raise NotFound("the decision log has no calls of the last hour")
                (folder / "now.yaml").write_text(trial.now, encoding="utf-8")
                (folder / "changed.yaml").write_text(trial.changed, encoding="utf-8")
                result = await self._replayed(folder)
        return {"calls": calls, "diff": trial.diff, "notes": result["notes"], **_columns(result)}

    async def _replayed(self, folder: Path) -> dict[str, Any]:
        """Ends the process when it is cancelled, or takes too long. Raises `BadRequest` with what it said."""
        command = (
            "-m",
            "router",
            "replay",
            "calls.jsonl",
            "-c",
            "now.yaml",
            "-c",
            "changed.yaml",
            "--json",
            "result.json",
        )
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            cwd=folder,
            env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(Path(__file__).parents[2])},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        if self._closed:
            process.kill()
        try:
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, process.pid, _NICE)
            async with asyncio.timeout(LONGEST_S):
                _, said = await process.communicate()
        except TimeoutError:
            raise BadRequest(
                f"the replay took longer than {LONGEST_S:.0f} s and was ended; use `twolane replay`"
            ) from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            lines = said.decode("utf-8", "replace").strip().splitlines()
            raise BadRequest(f"the replay failed: {lines[-1][:500] if lines else 'it said nothing'}")
        result: dict[str, Any] = orjson.loads(await asyncio.to_thread((folder / "result.json").read_bytes))
        return result

    def _as_found(self) -> list[dict[str, Any]]:
        """The backends that serve, with what was detected of them, since a replay can ask nobody."""
        backends = [each for each in self._backends() if each.known]
        return [
            {
                "name": each.name,
                "url": each.settings.url,
                "engine": each.engine.name,
                "lane": each.lane.value,
                "max_inflight": each.cap,
                "context_tokens": each.context_tokens,
                "weight": each.settings.weight,
            }
            for each in backends
        ]


class Trial(NamedTuple):
    """Two settings files, and what is between them."""

    now: str
    changed: str
    diff: str
    """From what can be edited as it is in effect to the edited text, as `diff -u` has it."""


def prepared(text: object, settings: Settings, backends: list[dict[str, Any]]) -> Trial:
    """Of the edited text. Raises `BadRequest`; may take a second, so it runs in a thread."""
    if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
        raise BadRequest(f"expected the edited YAML as text of at most {MOST_CHARACTERS} characters", param="yaml")
    shown = redacted(settings)
    base = {"backends": backends, **{name: shown[name] for name in _KEPT}}
    edited = _sections(text)
    _refuse_code(edited, settings)
    rest = {name: value for name, value in base.items() if name not in edited}
    changed = f"{text.rstrip()}\n{_yaml(rest)}"
    try:
        parse(changed, _SOURCE, {})
    except SettingsError as error:
        raise _wrong(error) from None
    before, after = (f"{each.rstrip()}\n".splitlines(keepends=True) for each in (_current(settings), text))
    return Trial(_yaml(base), changed, "".join(difflib.unified_diff(before, after, "in effect", "edited")))


def _current(settings: Settings) -> str:
    shown = redacted(settings)
    return _yaml({name: shown[name] for name in SECTIONS})


def _yaml(document: dict[str, Any]) -> str:
    """With `${` as it stands, not as a variable."""
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    return str(text).replace("${", "$${")


def _sections(text: str) -> dict[str, Any]:
    """What is in the edited text, by the reader of settings files. Raises `BadRequest`."""
    try:
        document = read(text, _SOURCE, {})
    except SettingsError as error:
        raise _wrong(error) from None
    if document.flaws:
        # What could not be read is nothing here, so nobody could tell whether it names code to load.
        raise _wrong(SettingsError(_problem(flaw) for flaw in document.flaws))
    edited = document.value
    if not isinstance(edited, dict) or not edited:
        raise BadRequest(f"expected one or more of the sections {', '.join(SECTIONS)}", param="yaml")
    others = [str(name)[:50] for name in edited if name not in SECTIONS]
    if others:
        raise BadRequest(f"{', '.join(others)}: only {', '.join(SECTIONS)} can be tried here", param="yaml")
    return edited


def _problem(flaw: Flaw) -> Problem:
    line, column = flaw.place
    return Problem(source=_SOURCE, line=line, column=column, key_path=dotted(flaw.path), message=flaw.message)


def _wrong(error: SettingsError) -> BadRequest:
    return BadRequest("\n".join(str(problem) for problem in error.problems[:MOST_PROBLEMS]), param="yaml")


def _refuse_code(edited: dict[str, Any], settings: Settings) -> None:
    """A policy by MODULE:ATTRIBUTE or a model by its path would be loaded, which trying out must not do."""
    policy = edited.get("policy")
    use = policy.get("use") if isinstance(policy, dict) else policy
    if isinstance(use, str) and ":" in use and use != settings.policy.use:
        raise BadRequest(f"{use[:100]}: a policy of your own is tried with `twolane replay`", param="yaml")
    classify = edited.get("classify")
    for name in ("model", "shadow"):
        wanted = classify.get(name) if isinstance(classify, dict) else None
        if wanted not in (None, "builtin", "off", redacted(settings)["classify"][name]):
            raise BadRequest(f"classify.{name}: another model is tried with `twolane replay`", param="yaml")


def _copy_calls(file: Path, since: bytes, target: Path) -> int:
    """The last calls of the log that came since then, oldest first. Returns how many; runs in a thread."""
    kept: deque[bytes] = deque(maxlen=MOST_CALLS)
    for part in with_those_set_aside([file]):
        with contextlib.suppress(OSError):
            kept.extend(line for line in raw_lines(part) if _time_of(line) >= since)
    with target.open("wb") as out:
        out.writelines(kept)
    return len(kept)


def _time_of(line: bytes) -> bytes:
    """ISO times of one zone compare as they stand; empty: there is none."""
    at = line.find(_TIME, 0, 100)
    return line[at + len(_TIME) : at + len(_TIME) + 29] if at >= 0 else b""


def _columns(result: dict[str, Any]) -> dict[str, Any]:
    now, changed = (each["result"] for each in result["policies"])
    return {"logged": result["logged"], "now": now, "changed": changed}
