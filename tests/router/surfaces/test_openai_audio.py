"""Audio: speech to text as forms and events, text to speech as JSON."""

from __future__ import annotations

import pytest

from router.surfaces import SURFACES
from tests.router.surfaces.streams import play, read

SURFACE = SURFACES["openai_audio"]


def test_text_to_speak_is_counted() -> None:
    features = read("/v1/audio/speech", {"model": "tts", "input": "x", "voice": "a", "response_format": "wav"})
    assert (features.surface, features.last_tokens, features.media) == ("openai_audio", 1, 0)
    assert (features.stream, features.response_format) == (False, "")


@pytest.mark.parametrize("fields", [{"stream": True}, {"stream_format": "sse"}])
def test_speech_may_be_streamed(fields: dict[str, object]) -> None:
    assert read("/v1/audio/speech", {"input": "x", **fields}).stream


def test_events_of_a_transcript_are_read() -> None:
    reader = SURFACE.reader()
    text = {"type": "transcript.text.delta", "delta": "a"}
    done = {"type": "transcript.text.done", "text": "aa", "usage": {"input_tokens": 9, "output_tokens": 4}}
    assert play(reader, {"type": "transcript.text.delta", "delta": ""}, text, text, done) == [False, True, True, False]
    progress = reader.progress
    assert (progress.prompt_tokens, progress.output_tokens, progress.ended) == (9, 4, True)


def test_chunks_of_a_transcript_are_read() -> None:
    reader = SURFACE.reader()
    text = {"object": "transcription.chunk", "choices": [{"delta": {"content": "a"}}]}
    assert play(reader, text, text, b"[DONE]") == [True, True, False]
    assert reader.progress.ended


def test_pieces_of_speech_are_output() -> None:
    reader = SURFACE.reader()
    assert play(reader, *[{"type": "speech.audio.delta", "audio": "aGk="}] * 2, {"type": "speech.audio.done"}) == [
        True,
        True,
        False,
    ]
    assert reader.progress.ended


def test_an_answer_of_sound_gives_nothing() -> None:
    assert SURFACE.read_whole(b"RIFF\x00\xff").output_tokens is None
    assert SURFACE.read_whole(b'{"text":"a","usage":{"input_tokens":9,"output_tokens":4}}').output_tokens == 4
