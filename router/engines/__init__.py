"""The kinds of inference servers that Twolane knows."""

from __future__ import annotations

from collections.abc import Mapping

from router.engines.api import Answers, Engine, Identity
from router.engines.llamacpp import LlamaCpp
from router.engines.lmstudio import LmStudio
from router.engines.ollama import Ollama
from router.engines.openai import OpenAICompatible
from router.engines.sglang import Sglang
from router.engines.vllm import Vllm

_KINDS: tuple[Engine, ...] = (LlamaCpp(), Vllm(), Sglang(), Ollama(), LmStudio(), OpenAICompatible())

ENGINES: Mapping[str, Engine] = {kind.name: kind for kind in _KINDS}
"""By name, from the most to the least specific: several answer like Ollama, too, and all like OpenAI."""

IDENTITY_PATHS: tuple[str, ...] = tuple(dict.fromkeys(path for kind in _KINDS for path in kind.identity_paths))
"""What to ask a server of unknown kind."""


def recognise(answers: Answers) -> Identity | None:
    """The identity by the first kind that knows these answers; None: no kind does."""
    for kind in _KINDS:
        identity = kind.recognise(answers)
        if identity is not None:
            return identity
    return None
