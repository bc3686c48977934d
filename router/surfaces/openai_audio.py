"""OpenAI's audio: `/v1/audio/transcriptions` and `/v1/audio/translations` (forms), `/v1/audio/speech` (JSON)."""

from __future__ import annotations

from classifiers.api import Features
from router.surfaces.api import Framing, Progress, TokenReader
from router.surfaces.counts import parse, read_openai, take_usage
from router.surfaces.dialects import OpenAIErrors
from router.surfaces.openai_chat import ChoicesReader
from router.surfaces.reading import Body, Headers, Prompt, describe

FORM_FIELDS = ("model", "stream", "prompt", "language", "response_format")
"""Text fields of a form that are read; the recording is not."""


class OpenAIAudio(OpenAIErrors):
    name = "openai_audio"
    framing = Framing.SSE

    def features(self, body: Body, headers: Headers) -> Features:
        prompt = Prompt()
        speech = body.get("input")
        prompt.take_inputs(speech if speech is not None else body.get("prompt"))
        if speech is None:
            prompt.media = 1
        streams = body.get("stream") in (True, "true", "True", "1") or body.get("stream_format") is not None
        return describe(self.name, body, headers, prompt, stream=streams)

    def reader(self) -> TokenReader:
        return AudioReader()

    def read_whole(self, body: bytes) -> Progress:
        return read_openai(body)


class AudioReader(ChoicesReader):
    """OpenAI sends events with a type and a delta, vLLM chunks like those of a chat."""

    __slots__ = ()

    def look(self, name: str, data: bytes) -> bool:
        event = parse(data) or {}
        match event.get("type"):
            case "transcript.text.delta" | "speech.audio.delta":
                field = "delta" if "delta" in event else "audio"
                return bool(event.get(field)) and self.carried(field, data)
            case "transcript.text.done" | "speech.audio.done":
                take_usage(self.progress, event.get("usage"))
                self.progress.ended = True
                return False
            case _:
                return super().look(name, data)
