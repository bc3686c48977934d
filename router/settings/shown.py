"""Settings as they may be shown to everybody who can see the admin port."""

from __future__ import annotations

import re
from typing import Any, Final

from router.settings.model import Settings

HIDDEN: Final = "**********"
_SECRET_KEY = re.compile(
    r"(^|[-_])(key|token|secret|password|passwd|authorization|cookie|credentials?)$", re.IGNORECASE
)
"""Options of policies and headers in rules are free words; `prompt_tokens` is none of these."""


def redacted(settings: Settings) -> dict[str, Any]:
    """The settings in effect, defaults included, as plain JSON values that read as in the file. No secrets."""
    shown = settings.model_dump(mode="json", by_alias=True)
    for section in ("policy", "classify"):
        shown[section] = _without_secrets(shown[section])
    return shown


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: HIDDEN if _SECRET_KEY.search(key) else _without_secrets(inner) for key, inner in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value
