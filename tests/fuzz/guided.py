"""The same targets, led by coverage: `python -m tests.fuzz.guided TARGET [options of libFuzzer]`, see `make fuzz`.

Inputs that reach new code are kept under `.cache/fuzz/TARGET` and are where the next run begins; an input that breaks a
promise is written beside them. Without a target the names are listed.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import atheris

with atheris.instrument_imports(include=["router", "classifiers"]):
    from tests.fuzz import bodies, messages, seeds, streams, texts
    from tests.fuzz.pieces import Target

_KEPT: Final = Path(".cache", "fuzz")
_LONGEST_BYTES: Final = 4096
_CUTS: Final = b"\1\2\3"
"""Decisions in front of a seed: two sizes of pieces."""
_FORM_TYPE: Final = bodies.FORM_TYPE.encode() + b"\n"
_STREAMS: Final = list(seeds.STREAMS.values())


def _each(fronts: int, inputs: Sequence[bytes], behind: bytes = b"") -> list[bytes]:
    """Every input with every first decision."""
    return [bytes([front]) + behind + data for front in range(fronts) for data in inputs]


TARGETS: Final[Mapping[str, tuple[Target, Sequence[bytes], Sequence[bytes]]]] = {
    "events": (streams.fuzz_events, _each(2, _STREAMS, b"\0" + _CUTS), seeds.STREAM_FRAGMENTS),
    "tokens": (streams.fuzz_tokens, _each(len(streams.STREAMED), _STREAMS, b"\2\3"), seeds.STREAM_FRAGMENTS),
    "watch": (streams.fuzz_watch, _each(len(streams.STREAMED), _STREAMS, _CUTS), seeds.STREAM_FRAGMENTS),
    "coding": (streams.fuzz_coding, _each(len(streams.CODINGS), seeds.CODED, _CUTS), seeds.CODED_FRAGMENTS),
    "requests": (messages.fuzz_requests, [_CUTS + data for data in seeds.REQUESTS], seeds.WIRE_FRAGMENTS),
    "chunks": (messages.fuzz_chunks, [_CUTS + data for data in seeds.CHUNKS], seeds.WIRE_FRAGMENTS),
    "responses": (messages.fuzz_responses, _each(2, seeds.RESPONSES, _CUTS), seeds.WIRE_FRAGMENTS),
    "fields": (messages.fuzz_fields, seeds.FIELDS, seeds.FIELD_FRAGMENTS),
    "calls": (bodies.fuzz_calls, _each(len(bodies.ROUTES), [*seeds.CALLS, *seeds.FORMS]), seeds.CALL_FRAGMENTS),
    "splice": (bodies.fuzz_splice, seeds.CALLS, seeds.CALL_FRAGMENTS),
    "forms": (bodies.fuzz_forms, [_FORM_TYPE + data for data in seeds.FORMS], seeds.FORM_FRAGMENTS),
    "settings": (texts.fuzz_settings, seeds.SETTINGS, seeds.SETTINGS_FRAGMENTS),
    "scalars": (texts.fuzz_scalars, [b"${A:-b}", b"$${A}", b"1.5ms", b"64MiB"], seeds.SETTINGS_FRAGMENTS),
    "conditions": (texts.fuzz_conditions, seeds.CONDITIONS, seeds.CONDITION_FRAGMENTS),
    "scrapes": (texts.fuzz_scrapes, _each(2, seeds.SCRAPES), seeds.SCRAPE_FRAGMENTS),
}
"""What is called, inputs to begin with, and pieces that mean something there."""


def _dictionary(fragments: Sequence[bytes]) -> str:
    """As libFuzzer wants it; it takes no long words."""
    words = ["".join(f"\\x{byte:02x}" for byte in fragment) for fragment in fragments if 0 < len(fragment) < 64]
    return "".join(f'"{word}"\n' for word in words)


def main(arguments: Sequence[str]) -> None:
    if not arguments:
        sys.stdout.write(" ".join(TARGETS) + "\n")
        return
    name, *options = arguments
    target, inputs, fragments = TARGETS[name]
    kept = _KEPT / name
    kept.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(inputs):
        kept.joinpath(f"seed-{number}").write_bytes(data)
    dictionary = _KEPT / f"{name}.dict"
    dictionary.write_text(_dictionary(fragments))
    given = [
        f"-dict={dictionary}",
        f"-artifact_prefix={_KEPT}/{name}-",
        f"-max_len={_LONGEST_BYTES}",
        "-timeout=10",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *given, *options, str(kept)], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
