"""What an ended call tells of the backend that answered it, as far as anybody counted."""

from __future__ import annotations

from typing import NamedTuple


class Answered(NamedTuple):
    """One answer. Instants are on the router's clock; None: not seen, or the engine did not say."""

    last_s: float | None = None
    """When its last token came, or all of it, where it did not stream."""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    prompt_s: float | None = None
    """What the engine itself measured from the moment it took the prompt up to the first token (llama.cpp)."""
    decode_s: float | None = None
    """The same from there to the last token."""


NOTHING_SEEN = Answered()
