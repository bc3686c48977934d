"""What the dashboard keeps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import Field, PlainSerializer, WithJsonSchema

from router.settings.outputs import output_path
from router.settings.section import Section
from router.settings.units import Bytes

HistoryPath = Annotated[
    Path,
    output_path(re.compile(rb"SQLite format 3\0"), "history"),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "minLength": 1}),
]


class Dashboard(Section):
    """The page at the admin port, and `twolane top`."""

    history: HistoryPath | None = Field(
        None, description="SQLite file for what the charts need, so that a restart keeps it. null: the last hour only."
    )
    max_size: Bytes = Field(64 * 2**20, description="Size at which the oldest tenth of the history goes.")
