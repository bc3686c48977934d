"""Every word that says why a call went somewhere, or waits, stands in the page about scheduling, and no other does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from bench.servers.process import ROOT

PAGE = ROOT / "docs" / "scheduling.md"
SOURCES = (*sorted((ROOT / "policies").glob("*.py")), ROOT / "router" / "line.py")
TELL_WHY = {"Dispatch", "Wait", "_sent", "_claim"}


def words(source: Path) -> Iterator[str]:
    """Those that are handed to a decision, or called `reason` before."""
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=told) if name in TELL_WHY:
                values: list[ast.expr] = told
            case ast.Assign(targets=[ast.Name(id="reason")], value=value):
                values = [value]
            case _:
                continue
        yield from (word for value in values for word in chosen(value))


def chosen(value: ast.expr) -> Iterator[str]:
    """What the value may be, but not what it is chosen by."""
    match value:
        case ast.Constant(value=str(word)) if word:
            yield word
        case ast.IfExp(body=one, orelse=other):
            yield from chosen(one)
            yield from chosen(other)
        case _:
            pass


def documented() -> set[str]:
    """The words in the first columns of the tables."""
    rows = re.findall(r"^\| (`[^|]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {word for row in rows for word in re.findall(r"`(\w+)`", row)}


def test_reasons_and_their_page_agree() -> None:
    told = {word for source in SOURCES for word in words(source)}

    assert {"others_first", "spill_over", "in_turn"} <= told
    assert told == documented()
