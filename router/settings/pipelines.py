"""Tasks of several calls."""

from __future__ import annotations

from pydantic import Field

from router.settings.fields import Flag
from router.settings.section import Section


class Pipelines(Section):
    """Calls that serve one task."""

    recognise: Flag = Field(
        True,
        description="Whether calls that nobody names a task for are given to one by their history, their trace or "
        "their time. If not, only what callers say in headers counts.",
    )
    keep_model: Flag = Field(
        True,
        description="Where backends know one name by different models: a loop stays with the model that answered it "
        "first, as long as a backend with it is up.",
    )
