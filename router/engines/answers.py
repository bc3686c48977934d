"""Small readers of what servers answer. Whatever a server may leave out, misname or break reads as nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from router.engines.api import Answer, Answers


def text_at(answers: Answers, path: str) -> bytes:
    """The body of an answer with status 200; empty: there is none."""
    answer = answers.get(path)
    return answer.body if answer is not None and answer.status == 200 else b""


def json_at(answers: Answers, path: str) -> Any:
    """The parsed body of an answer with status 200; None: there is none, or it is not JSON."""
    return parsed(text_at(answers, path))


def parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def object_at(answers: Answers, path: str) -> dict[str, Any]:
    return as_object(json_at(answers, path))


def as_object(value: object) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[dict[str, Any]]:
    """The objects of a JSON array; anything else has none."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def words(values: Iterable[object]) -> tuple[str, ...]:
    """The strings that are not empty, each once, in their order."""
    return tuple(dict.fromkeys(value for value in values if isinstance(value, str) and value))


def count(value: object) -> int | None:
    """A positive whole number; zero and everything else means that the server does not know."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def largest(values: Iterable[object]) -> int | None:
    """The largest count.

    Used for the context size of a server with several models: it should not be passed over for a call that one of its
    models can take.
    """
    return max((known for value in values if (known := count(value)) is not None), default=None)


def amount(value: object) -> float | None:
    """A number that is not negative."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def error_words(answer: Answer) -> str:
    """What an error answer says of itself, in lower case: its message, type and code, and nothing of the call.

    Reads the shapes of OpenAI, Anthropic, Ollama and FastAPI. Error answers may repeat the prompt in other places, and
    a prompt can say anything.
    """
    body = as_object(parsed(answer.body))
    error = body.get("error")
    inner = as_object(error)
    said = [error, body.get("message"), body.get("detail"), body.get("type"), body.get("status")]
    said += [inner.get("message"), inner.get("type"), inner.get("code")]
    return " ".join(word.lower() for word in said if isinstance(word, str))
