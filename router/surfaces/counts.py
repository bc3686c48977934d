"""Token counts that engines report at the end of an answer, in the words of each API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from router.surfaces.api import Progress


def parse(data: bytes) -> dict[str, Any] | None:
    """The JSON object in `data`; None where there is none."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def count(value: object) -> int | None:
    """A number of tokens, or None: what is not reported is unknown, never zero."""
    return value if type(value) is int and value >= 0 else None


def take_output(progress: Progress, tokens: int | None) -> None:
    """The engine's own count replaces the pieces that were counted so far."""
    if tokens is not None:
        progress.output_tokens = progress.tokens = tokens


def take_usage(progress: Progress, usage: object) -> None:
    """Usage as OpenAI's APIs report it: `prompt_tokens` or `input_tokens`, with the cached ones among them."""
    if not isinstance(usage, dict):
        return
    for total, details in (("prompt_tokens", "prompt_tokens_details"), ("input_tokens", "input_tokens_details")):
        if (tokens := count(usage.get(total))) is not None:
            progress.prompt_tokens = tokens
        if isinstance(usage.get(details), dict) and (cached := count(usage[details].get("cached_tokens"))) is not None:
            progress.cached_tokens = cached
    take_output(progress, count(usage.get("completion_tokens", usage.get("output_tokens"))))


def take_anthropic_prompt(progress: Progress, usage: object) -> None:
    """The prompt as Anthropic reports it: `input_tokens` leaves out what was read from a cache or written to it."""
    if not isinstance(usage, dict) or (fresh := count(usage.get("input_tokens"))) is None:
        return
    cached = count(usage.get("cache_read_input_tokens"))
    progress.prompt_tokens = fresh + (cached or 0) + (count(usage.get("cache_creation_input_tokens")) or 0)
    if cached is not None:
        progress.cached_tokens = cached


def take_prompt_timings(progress: Progress, timings: Mapping[str, Any]) -> None:
    """The prompt as llama.cpp reports it beside its answers: tokens from the cache, and tokens computed."""
    cached, computed = count(timings.get("cache_n")), count(timings.get("prompt_n"))
    if cached is not None:
        progress.cached_tokens = cached
    if computed is not None:
        progress.prompt_tokens = computed + (cached or 0)
    take_times(progress, timings)


def take_times(progress: Progress, timings: object) -> None:
    """What llama.cpp has measured of its own work."""
    if isinstance(timings, dict):
        progress.prompt_s = _seconds(timings.get("prompt_ms"), 1e3)
        progress.decode_s = _seconds(timings.get("predicted_ms"), 1e3)


def take_durations(progress: Progress, answer: Mapping[str, Any]) -> None:
    """What Ollama has measured, in nanoseconds."""
    progress.prompt_s = _seconds(answer.get("prompt_eval_duration"), 1e9)
    progress.decode_s = _seconds(answer.get("eval_duration"), 1e9)


def _seconds(value: object, of_a_second: float) -> float | None:
    """A time as an engine reports it, in parts of a second; None: it does not, or it cannot be one."""
    if isinstance(value, int | float) and 0 < value < _LONGEST_S * of_a_second:
        return value / of_a_second
    return None


_OWN_FAULTS = frozenset({"api_error", "internal_error", "internal_server_error", "internalservererror", "server_error"})
"""Types and codes by which Anthropic, OpenAI, llama.cpp, vLLM and SGLang call an error their own."""
_BUSY = 503
_LONGEST_S = 86_400.0


def take_error(progress: Progress, error: object) -> None:
    """An error inside a stream, as the APIs describe one: `{"type": ..., "code": ..., "message": ...}`."""
    progress.failed = True
    for said in (error.get("code"), error.get("type")) if isinstance(error, dict) else ():
        if isinstance(said, int):
            progress.at_fault = 500 <= said < 600 and said != _BUSY
            return
        progress.at_fault |= isinstance(said, str) and said.lower() in _OWN_FAULTS


def take_id(progress: Progress, answer: Mapping[str, Any]) -> None:
    if not progress.response_id and isinstance(answer.get("id"), str):
        progress.response_id = answer["id"]


def read_counted(body: bytes, take_counts: Callable[[Progress, dict[str, Any]], None]) -> Progress:
    """An answer that was not streamed, of an API that counts at the top of its answers."""
    progress = Progress()
    if (answer := parse(body)) is not None:
        progress.ended = "error" not in answer
        take_counts(progress, answer)
    return progress


def read_openai(body: bytes) -> Progress:
    """The counts of an answer that was not streamed, as the APIs of OpenAI and those like them report them."""
    progress = Progress()
    answer = parse(body)
    if answer is not None:
        take_id(progress, answer)
        take_usage(progress, answer.get("usage"))
        take_times(progress, answer.get("timings"))
        progress.ended = "error" not in answer or answer["error"] is None
    return progress
