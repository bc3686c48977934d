"""Client APIs by what they are asked with, and for (see `router.surfaces`)."""

from __future__ import annotations

from typing import Final

RAW: Final = frozenset({"openai_completions", "llamacpp_completion", "llamacpp_infill", "ollama_generate"})
"""Those that take a prompt without messages."""
EMBEDDINGS: Final = frozenset({"openai_embeddings", "ollama_embed"})
