"""Merged listings of models, from what probes have learned: no backend is asked, so a hung one delays nobody."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import orjson

from router.engines.ollama import tagged
from router.errors import UnknownModel
from router.fleet.fleet import Fleet
from router.surfaces import Route


def router_version() -> str:
    try:
        return version("twolane")
    except PackageNotFoundError:
        return "0+unknown"


def _numbers(version: str) -> list[int]:
    """Of `0.12.3-rc1` the first three."""
    return [int(digits) for digits in re.findall("[0-9]+", version.partition("-")[0])]


class Listings:
    """Answers `/v1/models`, `/v1/models/{id}`, `/api/tags`, `/api/ps` and `/api/version`."""

    def __init__(self, fleet: Fleet, started_unix_s: int) -> None:
        self._fleet = fleet
        self._started_unix_s = started_unix_s
        self._started_iso = datetime.fromtimestamp(started_unix_s, UTC).isoformat().replace("+00:00", "Z")

    @property
    def front_page(self) -> bytes:
        """What clients of Ollama look for before their first call; empty where no backend has that API."""
        has_ollama = any("ollama_chat" in backend.engine.surfaces for backend in self._fleet.backends())
        return b"Ollama is running" if has_ollama else b""

    def answer(self, route: Route) -> bytes:
        """The JSON body. Raises `UnknownModel` for the entry of a model that nobody serves."""
        match route.surface.name:
            case "ollama_tags" | "ollama_ps":
                return orjson.dumps({"models": self._ollama()})
            case "ollama_version":
                return orjson.dumps({"version": self._ollama_version()})
            case _:
                return self._openai(route.response_id)

    def _openai(self, model: str) -> bytes:
        if model:
            backends = self._fleet.serving(model)
            if not backends:
                raise UnknownModel(
                    f"no backend serves the model {model[:200]!r}; GET /v1/models lists all", param="model"
                )
            return orjson.dumps(self._openai_entry(model, backends))
        entries = [self._openai_entry(name, backends) for name, backends in self._fleet.model_names().items()]
        ends = {"first_id": entries[0]["id"], "last_id": entries[-1]["id"]} if entries else {}
        return orjson.dumps({"object": "list", "data": entries, "has_more": False, **ends})

    def _openai_entry(self, model: str, backends: tuple[str, ...]) -> dict[str, Any]:
        """One object that clients of OpenAI's and of Anthropic's listing both understand."""
        contexts = [
            backend.context_tokens
            for name in backends
            if (backend := self._fleet.backend(name)) is not None and backend.context_tokens is not None
        ]
        entry: dict[str, Any] = {
            "id": model,
            "object": "model",
            "created": self._started_unix_s,
            "owned_by": "twolane",
            "type": "model",
            "display_name": model,
            "created_at": self._started_iso,
            "backends": backends,
        }
        if contexts:
            entry["max_model_len"] = max(contexts)
        return entry

    def _ollama(self) -> list[dict[str, Any]]:
        """Only models that can be had by this API: whoever reads this list will ask for them there."""
        served = (name for name in self._fleet.model_names() if self._fleet.candidates(name, "ollama_chat"))
        return [self._ollama_entry(name) for name in dict.fromkeys(map(tagged, served))]

    def _ollama_version(self) -> str:
        """The lowest of all: clients look at it to know what they may use, whichever server a call will come to."""
        versions = (
            backend.identity.version
            for backend in self._fleet.backends()
            if backend.engine.name == "ollama" and backend.identity is not None and backend.identity.version
        )
        return min(versions, key=_numbers, default=router_version())

    def _ollama_entry(self, model: str) -> dict[str, Any]:
        return {
            "name": model,
            "model": model,
            "modified_at": self._started_iso,
            "size": 0,
            "digest": sha256(model.encode()).hexdigest(),  # the `ollama` command shows the first twelve, and needs them
            "details": {"parent_model": "", "format": "", "family": "", "families": [], "parameter_size": ""},
        }
