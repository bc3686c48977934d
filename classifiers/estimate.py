"""How many tokens is this text? A guess that costs microseconds, made before any tokenizer has seen it.

Tokens follow characters by their kind: a word costs about one, a digit about one, a Chinese character less than one.
So the kinds are counted with C-level byte operations and weighted. The weights are least-squares fits of the median
count of six common vocabularies (Llama 3, Qwen 3, Gemma 3, Mistral, DeepSeek, gpt-oss) over prompts, source code, tool
schemas and paragraphs in twenty languages. Those vocabularies agree within a tenth on English and differ by half or
more on other scripts. Long texts are sampled evenly, so a megabyte costs what a page costs.
"""

from __future__ import annotations

_SLICE_CHARS = 128
_ASCII_SAMPLE_CHARS = 3 * _SLICE_CHARS
_WIDE_SAMPLE_CHARS = 32 * _SLICE_CHARS

# Tokens of ASCII text: each character a little, each start of a word, each digit, each other visible mark or line end.
_PER_CHARACTER = 0.05
_PER_WORD = 0.83
_PER_DIGIT = 0.9
_PER_MARK = 0.54

# Beyond ASCII, the first byte of a character in UTF-8 tells its script: (first lead byte, tokens per character).
# A script reaches to the next line of the table.
_SCRIPTS = (
    (0xC2, 0.95),  # Latin letters with accents: they also break a word into more pieces
    (0xCB, 0.35),  # Greek, Cyrillic
    (0xD5, 0.45),  # Armenian, Hebrew, Arabic, Indic, Thai, Georgian, Vietnamese additions
    (0xE2, 1.2),  # typographic quotes, dashes, arrows, mathematical signs
    (0xE3, 0.72),  # kana and CJK punctuation
    (0xE4, 0.63),  # Chinese characters
    (0xEA, 0.7),  # Hangul
    (0xEE, 0.85),  # full-width forms
    (0xF0, 1.6),  # emoji
)

_CONTINUATION = bytes(range(0x80, 0xC0))


def _table() -> bytes:
    """Maps a byte of UTF-8 to its kind: `a` letter, `0` digit, `.` other ASCII, 1.. index into `_SCRIPTS` plus one."""
    table = bytearray(b"." * 0x80 + bytes(0x80))
    for byte in range(0x80):
        character = chr(byte)
        if character.isalpha():
            table[byte] = ord("a")
        elif character.isdigit():
            table[byte] = ord("0")
    for kind, (first, _) in enumerate(_SCRIPTS, start=1):
        for byte in range(first, 0x100):
            table[byte] = kind
    return bytes(table)


_KINDS = _table()


def estimate_tokens(text: str) -> int:
    """About how many tokens an engine will make of `text`: 0 for empty text, else at least 1.

    Off from the vocabularies' median by 5 % for half of 9,000 prompts, by 20 % at most for 95 of 100; by a third at
    most for a paragraph in any of twenty languages. Too low by far for base64 in a text.
    """
    length = len(text)
    if not length:
        return 0
    if text.isascii():
        sample = text if length <= _ASCII_SAMPLE_CHARS else _spread(text, length, _ASCII_SAMPLE_CHARS)
        tokens = _ascii_tokens(sample, sample.encode("ascii").translate(_KINDS), len(sample))
    else:
        sample = text if length <= _WIDE_SAMPLE_CHARS else _spread(text, length, _WIDE_SAMPLE_CHARS)
        tokens = _wide_tokens(sample)
    return int(tokens * length / len(sample)) or 1


def _spread(text: str, length: int, sample_chars: int) -> str:
    """Slices of `text`, evenly spread from its first character to its last, `sample_chars` in all."""
    count = sample_chars // _SLICE_CHARS
    stride = (length - _SLICE_CHARS) // (count - 1)
    return "".join([text[start : start + _SLICE_CHARS] for start in range(0, stride * count, stride)])


def _ascii_tokens(sample: str, kinds: bytes, ascii_chars: int) -> float:
    words = kinds.count(b".a") + kinds.startswith(b"a")
    marks = kinds.count(b".") - sample.count(" ")
    return _PER_CHARACTER * ascii_chars + _PER_WORD * words + _PER_DIGIT * kinds.count(b"0") + _PER_MARK * marks


def _wide_tokens(sample: str) -> float:
    # One byte is left of each character. Half a surrogate pair is no reason to fail: it counts as a character.
    kinds = sample.encode("utf-8", "surrogatepass").translate(_KINDS, _CONTINUATION)
    tokens = 0.0
    ascii_chars = len(kinds)
    for kind, (_, per_character) in enumerate(_SCRIPTS, start=1):
        if count := kinds.count(kind):
            tokens += per_character * count
            ascii_chars -= count
    return tokens + _ascii_tokens(sample, kinds, ascii_chars)
