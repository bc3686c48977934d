"""The id of a conversation or task, where a body names one: OpenAI's `metadata` and `conversation`, and others' fields.

Claude Code writes its session into the `user_id` of Anthropic's `metadata`, behind `_session_` or as JSON in text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

_NAMES: Final = (
    "pipeline_id",
    "task_id",
    "session_id",
    "thread_id",
    "conversation_id",
    "run_id",
    "trace_id",
    "litellm_session_id",
    "langfuse_session_id",
)
"""Keys of `metadata` that people and frameworks use for it, the narrowest first."""
_BEFORE_SESSION: Final = "_session_"


def session_of(body: Mapping[str, Any]) -> str:
    """`field=id`; empty where the body names none."""
    metadata = body.get("metadata")
    if isinstance(metadata, dict):
        for name in _NAMES:
            value = metadata.get(name)
            if isinstance(value, str) and value:
                return f"{name}={value}"
        if found := _of_user_id(metadata.get("user_id")):
            return f"session_id={found}"
    value = body.get("litellm_session_id")
    if isinstance(value, str) and value:
        return f"litellm_session_id={value}"
    conversation = body.get("conversation")
    if isinstance(conversation, dict):
        conversation = conversation.get("id")
    return f"conversation={conversation}" if isinstance(conversation, str) and conversation else ""


def _of_user_id(user_id: object) -> str:
    """The session in it; a user alone is none."""
    if not isinstance(user_id, str):
        return ""
    if user_id.startswith("{"):
        try:
            said = orjson.loads(user_id)
        except orjson.JSONDecodeError:
            return ""
        value = said.get("session_id") if isinstance(said, dict) else None
        return value if isinstance(value, str) else ""
    return user_id.partition(_BEFORE_SESSION)[2]
