"""Calls as the router reads them, for tests of what is seen in them."""

from __future__ import annotations

import json

from classifiers.api import Features
from router.surfaces import find, read_call


def read(content: object, *, system: str = "", **fields: object) -> Features:
    messages = [{"role": "system", "content": system}] if system else []
    body = {"messages": [*messages, {"role": "user", "content": content}], **fields}
    return read_call(find("POST", "/v1/chat/completions"), json.dumps(body).encode(), {})
