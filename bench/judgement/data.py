"""Labelled calls, read as the router would read them.

The folder that TWOLANE_DATA names holds `prompts/{ttft,mixed,throughput}.jsonl.gz`: one request body a line with the
headers that such a client would send, the class, and the source that the text came from. Nothing but path, headers and
body reaches the features.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from classifiers.api import CallClass, Features
from router.surfaces.calls import read_call
from router.surfaces.routes import find

VARIABLE = "TWOLANE_DATA"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One labelled call."""

    features: Features
    label: CallClass
    source: str
    """Where the text came from; whole sources are kept on one side of a split."""
    group: str
    """Rows with the same group share a document, a dialogue or a session."""
    kind: str
    """What a hop was for: `tool_hop`, `planner`, `user_facing`, ...; empty where nobody said."""


def folder() -> Path | None:
    """Where the data are; None: TWOLANE_DATA is not set, or names nothing."""
    named = os.environ.get(VARIABLE)
    found = Path(named) / "prompts" if named else None
    return found if found is not None and found.is_dir() else None


def records(where: Path) -> Iterator[dict[str, Any]]:
    """The lines as they are, class by class."""
    for call_class in CallClass:
        with gzip.open(where / f"{call_class.value}.jsonl.gz") as lines:
            for line in lines:
                yield orjson.loads(line)


def read_row(record: dict[str, Any]) -> Row:
    """A line of the data, read the way a call is read."""
    headers = {name.lower(): value for name, value in record["headers"].items()}
    features = read_call(find("POST", record["path"]), orjson.dumps(record["body"]), headers)
    return Row(
        features=features,
        label=CallClass(record["workload"]),
        source=record["source"],
        group=record.get("group") or record["id"],
        kind=record.get("call_kind") or "",
    )


def load(where: Path) -> list[Row]:
    """All rows, in the order of the files. Takes a few seconds."""
    return [read_row(record) for record in records(where)]
