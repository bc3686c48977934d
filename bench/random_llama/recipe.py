"""What the random-weight model is: its sizes, its vocabulary and its numbers.

A Llama has no output bias and knows nothing of words; three choices give it what the tests need.

- Hidden dimension 0 is the same constant everywhere and no layer writes to it, so its column in the output matrix is a
  bias: words are allowed, all else is not.
- The embedding of a word is far larger than what the layers add, and the output row of its successor points the same
  way: after a word comes its successor. All other embeddings are small, so after those the attention decides.
- Markers and bytes differ in bias, so that under a grammar the shortest way to the end of a JSON text wins.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

WORDS_FILE = Path(__file__).with_name("words.txt")

SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
PAD, BOS, EOS = range(3)
OPENING_BRACE = len(SPECIALS) + ord("{")
"""Token that begins a tool call; a `logit_bias` of 100 on it makes the model call a tool where it has to."""
CONTEXT_TOKENS = 32768
NORM_EPSILON = 1e-5
ROPE_BASE = 10000.0
SEED = 20

WORD_LOGIT = 16.0
"""Of the right next word; the others have a mean of 0 and a deviation of 1."""
SILENCE = 12.0
"""How much less likely than a word everything else is, in logits; unprintable bytes are twice that."""
JSON_MARKS = '}]{":,'
"""Under a JSON grammar these come first, in this order, so that what a grammar forces out is short and well-formed."""
CONSTANT = 0.1
"""Value of hidden dimension 0, which no layer changes; a Llama has no output bias, this stands in for it."""
QUIET = 0.05
"""Deviation of the embeddings of tokens that are no words: small, so that what attention brings decides after them."""
LAYER_GAIN = 0.25
"""Deviation of what one layer adds: far below a word's own embedding (1), far above `QUIET`."""
ATTENTION_SHARPNESS = 6.0
"""Deviation of a score before the softmax: sharp, so that single words of a long prompt matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Sizes of one model. Heads are 64 wide, a width that the attention kernels of all engines have."""

    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int

    @property
    def head_width(self) -> int:
        return self.hidden // self.heads


SIZES: Mapping[str, Shape] = {
    "tiny": Shape(hidden=256, inner=704, layers=4, heads=4, kv_heads=2),
    "small": Shape(hidden=512, inner=1408, layers=6, heads=8, kv_heads=4),
    "medium": Shape(hidden=768, inner=2048, layers=10, heads=12, kv_heads=4),
}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Byte-level BPE, written down instead of trained: each word is spelled letter by letter from its blank on."""

    tokens: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]
    circle_ids: tuple[int, ...]
    """Tokens of the words of `circle`, in that order."""


@cache
def circle() -> tuple[str, ...]:
    """All words in the order in which the model says them; after the last comes the first."""
    words = WORDS_FILE.read_text(encoding="ascii").split()
    return tuple(words[index] for index in np.random.default_rng(SEED).permutation(len(words)))


@cache
def _successors() -> Mapping[str, str]:
    return dict(zip(circle(), circle()[1:] + circle()[:1], strict=True))


def follows_circle(text: str) -> bool:
    """Whether `text` is an unbroken piece of what the model says."""
    words = text.split()
    return bool(words) and all(_successors().get(one) == other for one, other in itertools.pairwise(words))


def byte_letters() -> tuple[str, ...]:
    """GPT-2's alphabet: the visible letter that stands for each byte. Printable bytes stand for themselves."""
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)}
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte if byte in printable else next(others)) for byte in range(256))


def vocabulary() -> Vocabulary:
    letters = byte_letters()
    blank = letters[ord(" ")]
    tokens = [*SPECIALS, *letters]
    merges: list[tuple[str, str]] = []
    known = set(tokens)
    for word in sorted(circle()):
        piece = blank
        for letter in word:
            longer = piece + letter
            if longer not in known:
                known.add(longer)
                merges.append((piece, letter))
                tokens.append(longer)
            piece = longer
    ids = {token: index for index, token in enumerate(tokens)}
    return Vocabulary(tuple(tokens), tuple(merges), tuple(ids[blank + word] for word in circle()))


def weights(shape: Shape, vocab: Vocabulary) -> dict[str, Floats]:
    """All tensors under their Hugging Face names; every value is exact in bf16 and in f16."""
    rng = np.random.default_rng([SEED, shape.hidden, shape.layers])

    def gaussian(rows: int, columns: int, deviation: float) -> Floats:
        return rng.standard_normal((rows, columns), dtype=np.float32) * np.float32(deviation)

    hidden, inner, kv = shape.hidden, shape.inner, shape.kv_heads * shape.head_width
    words = np.array(vocab.circle_ids)
    embedding = gaussian(len(vocab.tokens), hidden, QUIET)
    embedding[words] = gaussian(len(words), hidden, 1.0)
    embedding[:, 0] = CONSTANT
    head = np.zeros_like(embedding)
    head[np.roll(words, -1)] = embedding[words] * np.float32(WORD_LOGIT / hidden)
    head[:, 0] = [-_silence(token) / CONSTANT for token in vocab.tokens]
    head[words, 0] = 0.0
    tensors = {"model.embed_tokens": embedding, "lm_head": head, "model.norm": np.ones(hidden, np.float32)}
    unit, inner_unit = hidden**-0.5, inner**-0.5
    for index in range(shape.layers):
        layer = {
            "input_layernorm": np.ones(hidden, np.float32),
            "self_attn.q_proj": gaussian(hidden, hidden, unit * ATTENTION_SHARPNESS),
            "self_attn.k_proj": gaussian(kv, hidden, unit),
            "self_attn.v_proj": gaussian(kv, hidden, unit),
            "self_attn.o_proj": gaussian(hidden, hidden, unit * LAYER_GAIN),
            "post_attention_layernorm": np.ones(hidden, np.float32),
            "mlp.gate_proj": gaussian(inner, hidden, unit),
            "mlp.up_proj": gaussian(inner, hidden, unit),
            "mlp.down_proj": gaussian(hidden, inner, inner_unit * LAYER_GAIN),
        }
        layer["self_attn.o_proj"][0] = layer["mlp.down_proj"][0] = 0.0
        tensors |= {f"model.layers.{index}.{name}": values for name, values in layer.items()}
    return {f"{name}.weight": _exact_in_16_bits(values) for name, values in tensors.items()}


def _silence(token: str) -> float:
    if token in JSON_MARKS:
        return SILENCE * (1 - 0.1 * (len(JSON_MARKS) - JSON_MARKS.index(token)) / len(JSON_MARKS))
    return SILENCE if token.isascii() and token not in SPECIALS else 2 * SILENCE


def _exact_in_16_bits(values: Floats) -> Floats:
    """Cut to bf16's eight bits of precision, and drop what is below f16's smallest normal number."""
    cut: Floats = (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.abs(cut) < 2.0**-14, np.float32(0), cut)
