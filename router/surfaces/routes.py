"""Which path belongs to which client API, and what kind of call it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import unquote

from router.errors import MethodNotAllowed, NotFound
from router.surfaces.anthropic_messages import AnthropicCountTokens, AnthropicMessages
from router.surfaces.api import Surface
from router.surfaces.listings import OLLAMA_PS, OLLAMA_TAGS, OLLAMA_VERSION, OPENAI_MODELS
from router.surfaces.llamacpp import LlamaCppApplyTemplate, LlamaCppCompletion, LlamaCppInfill
from router.surfaces.ollama import OllamaChat, OllamaEmbed, OllamaGenerate, OllamaShow
from router.surfaces.openai_audio import OpenAIAudio
from router.surfaces.openai_chat import OpenAIChat
from router.surfaces.openai_completions import OpenAICompletions
from router.surfaces.openai_embeddings import OpenAIEmbeddings
from router.surfaces.openai_responses import OpenAIResponses
from router.surfaces.ranking import RERANK, SCORE
from router.surfaces.tokens import DETOKENIZE, TOKENIZE


class Kind(StrEnum):
    """What the gateway does with a call."""

    GENERATE = "generate"
    """Classify it and find it a slot."""
    FOLLOW_UP = "follow_up"
    """Send it to the backend that holds what it asks for."""
    UTILITY = "utility"
    """Send it to any backend that can answer; it takes no slot."""
    MODELS = "models"
    """Answer it from what is known of all backends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where a request leads."""

    surface: Surface
    kind: Kind
    target: str
    """The path under which every backend that has this API knows it: `/v1/models` where the client wrote `/models`."""
    response_id: str = ""
    """The id in the path: of a stored response, or of the model that is asked about."""


SURFACES: Mapping[str, Surface] = {
    surface.name: surface
    for surface in (
        OpenAIChat(),
        OpenAICompletions(),
        OpenAIEmbeddings(),
        OpenAIResponses(),
        OpenAIAudio(),
        OPENAI_MODELS,
        RERANK,
        SCORE,
        TOKENIZE,
        DETOKENIZE,
        AnthropicMessages(),
        AnthropicCountTokens(),
        OllamaChat(),
        OllamaGenerate(),
        OllamaEmbed(),
        OllamaShow(),
        OLLAMA_TAGS,
        OLLAMA_PS,
        OLLAMA_VERSION,
        LlamaCppCompletion(),
        LlamaCppInfill(),
        LlamaCppApplyTemplate(),
    )
}
"""Every client API by its name."""

_PATHS: tuple[tuple[str, str, Kind, tuple[str, ...]], ...] = (
    ("POST", "openai_chat", Kind.GENERATE, ("/v1/chat/completions", "/chat/completions")),
    ("POST", "openai_completions", Kind.GENERATE, ("/v1/completions", "/completions")),
    ("POST", "openai_embeddings", Kind.GENERATE, ("/v1/embeddings", "/embeddings")),
    ("POST", "openai_responses", Kind.GENERATE, ("/v1/responses", "/responses")),
    ("POST", "openai_audio", Kind.GENERATE, ("/v1/audio/transcriptions", "/audio/transcriptions")),
    ("POST", "openai_audio", Kind.GENERATE, ("/v1/audio/translations", "/audio/translations")),
    ("POST", "openai_audio", Kind.GENERATE, ("/v1/audio/speech", "/audio/speech")),
    ("GET", "openai_models", Kind.MODELS, ("/v1/models", "/models")),
    ("POST", "rerank", Kind.GENERATE, ("/v1/rerank", "/rerank", "/v2/rerank")),
    ("POST", "score", Kind.GENERATE, ("/v1/score", "/score")),
    ("POST", "tokenize", Kind.UTILITY, ("/tokenize",)),
    ("POST", "detokenize", Kind.UTILITY, ("/detokenize",)),
    ("POST", "anthropic_messages", Kind.GENERATE, ("/v1/messages", "/messages")),
    ("POST", "anthropic_count_tokens", Kind.UTILITY, ("/v1/messages/count_tokens", "/messages/count_tokens")),
    ("POST", "ollama_chat", Kind.GENERATE, ("/api/chat",)),
    ("POST", "ollama_generate", Kind.GENERATE, ("/api/generate",)),
    ("POST", "ollama_embed", Kind.GENERATE, ("/api/embed",)),
    ("POST", "ollama_embed", Kind.GENERATE, ("/api/embeddings",)),
    ("POST", "ollama_show", Kind.UTILITY, ("/api/show",)),
    ("GET", "ollama_tags", Kind.MODELS, ("/api/tags",)),
    ("GET", "ollama_ps", Kind.MODELS, ("/api/ps",)),
    ("GET", "ollama_version", Kind.MODELS, ("/api/version",)),
    ("POST", "llamacpp_completion", Kind.GENERATE, ("/completion",)),
    ("POST", "llamacpp_infill", Kind.GENERATE, ("/infill",)),
    ("POST", "llamacpp_apply_template", Kind.UTILITY, ("/apply-template",)),
)
"""The first path of each row is the one that backends know.

The others are for base URLs without `/v1`. By `/completions` and `/embeddings` llama.cpp means something of its own;
here they are OpenAI's on purpose, as most who write them mean that. Its own completion is `/completion`.
"""

_RESPONSES = ("/v1/responses/", "/responses/")
_AFTER_RESPONSE_ID = {"": ("GET", "DELETE"), "/cancel": ("POST",), "/input_items": ("GET",)}
_NO_RESPONSE_IDS = frozenset({"input_tokens", "compact"})
"""What OpenAI serves in the place of an id, and no backend here does."""
_MODELS = ("/v1/models/", "/models/")
_SLASHES = re.compile("/+")


def _table() -> dict[str, dict[str, Route]]:
    table: dict[str, dict[str, Route]] = {}
    for method, name, kind, paths in _PATHS:
        route = Route(surface=SURFACES[name], kind=kind, target=paths[0])
        for path in paths:
            table.setdefault(path, {})[method] = route
    return table


_TABLE = _table()
_LISTED = ", ".join(
    [
        *(f"{method} {path}" for path, routes in _TABLE.items() for method in routes),
        f"GET {_MODELS[0]}{{model}}",
        *(
            f"{method} {_RESPONSES[0]}{{id}}{rest}"
            for rest, methods in _AFTER_RESPONSE_ID.items()
            for method in methods
        ),
    ]
)


def find(method: str, path: str) -> Route:
    """The route of a request; `path` is raw, without the query.

    A slash or a `/v1` too many, as a base URL that ends with one makes them, is forgiven, and so is a `/v1` too few:
    backends are sent the path that they know anyway. HEAD is served wherever GET is (RFC 9110, 9.1). Raises `NotFound`
    for a path that is not served and `MethodNotAllowed` for one that is, with other methods.
    """
    routes = _TABLE.get(path)
    if routes is None:
        routes = _with_id(path) or _TABLE.get(_tidied(path), {})
    route = routes.get("GET" if method == "HEAD" else method)
    if route is not None:
        return route
    if not routes:
        raise NotFound(f"{method[:20]} {path[:200]} is not served here; these are: {_LISTED}")
    allow = tuple(name for served in routes for name in (("GET", "HEAD") if served == "GET" else (served,)))
    raise MethodNotAllowed(f"{path[:200]} takes {' and '.join(allow)}, not {method[:20]}", allow=allow)


def _with_id(path: str) -> dict[str, Route]:
    """The routes of a path that has an id in it, by method; none: there is no such path."""
    for prefix in _RESPONSES:
        if not path.startswith(prefix):
            continue
        written, slash, rest = path.removeprefix(prefix).partition("/")
        methods = _AFTER_RESPONSE_ID.get(slash + rest)
        if methods and written and written not in _NO_RESPONSE_IDS:
            surface, target = SURFACES["openai_responses"], _RESPONSES[0] + path.removeprefix(prefix)
            route = Route(surface=surface, kind=Kind.FOLLOW_UP, target=target, response_id=unquote(written))
            return dict.fromkeys(methods, route)
    for prefix in _MODELS:
        # Names of models contain slashes.
        if path.startswith(prefix) and (written := path.removeprefix(prefix)):
            target = _MODELS[0] + written
            route = Route(surface=OPENAI_MODELS, kind=Kind.MODELS, target=target, response_id=unquote(written))
            return {"GET": route}
    return {}


def _tidied(path: str) -> str:
    tidy = _SLASHES.sub("/", path)
    return tidy.removeprefix("/v1" if tidy.startswith("/v1/v1/") else "").rstrip("/")


def error_surface(path: str) -> Surface:
    """The API in whose shape a request to `path` is refused, also where nothing is served under it."""
    path = _tidied(path)
    routes = _TABLE.get(path)
    if routes:
        return next(iter(routes.values())).surface
    if path.startswith("/api/"):
        return SURFACES["ollama_chat"]
    if path.startswith(("/v1/messages", "/messages")):
        return SURFACES["anthropic_messages"]
    return SURFACES["openai_chat"]
