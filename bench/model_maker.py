"""Make a small Llama with random weights, as a directory for vLLM and as a file for llama.cpp, with the same numbers.

    python -m bench.model_maker OUT [--size tiny]

Needs numpy and gguf only, takes a second or two, and writes the same bytes each time. The model is random, but not
quite: it is built so that tests can read something from what it says.

- After a word it says the next word of one fixed random circle of all words (`follows_circle`), with a wide margin, so
  16-bit rounding does not change the text. A stream that lost or doubled a token no longer follows the circle.
- The first word depends on the whole prompt, so two prompts give two texts.
- It says words only: each token is visible text in whole characters, and it never ends its turn by itself.
- A grammar or a `logit_bias` still gets any byte out of it (tool calls, JSON), because all bytes have tokens.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.random_llama import formats, recipe
from bench.random_llama.recipe import CONSTANT, OPENING_BRACE, SIZES, vocabulary, weights


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """One model on disk, twice."""

    name: str
    hf: Path
    """Directory with safetensors in bf16, tokenizer and configuration."""
    gguf: Path
    """File with f16 weights."""
    caller: Path
    """The same, but every answer is an opening brace: where a tool call is required it makes one, without any bias."""


def make(out: Path, size: str = "tiny") -> ModelFiles:
    """Write both forms below `out`, which must not exist yet, and leave nothing half-made behind."""
    shape, vocab, name = SIZES[size], vocabulary(), f"random-{size}"
    tensors = weights(shape, vocab)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as scratch:
        made = Path(scratch, "made")
        formats.write_hf(made / name, shape, vocab, tensors)
        formats.write_gguf(made / f"{name}.gguf", name, shape, vocab, tensors)
        tensors["lm_head.weight"][OPENING_BRACE, 0] = 100 / CONSTANT
        formats.write_gguf(made / f"{name}-caller.gguf", name, shape, vocab, tensors)
        made.rename(out)
    return _files(out, name)


def _files(out: Path, name: str) -> ModelFiles:
    return ModelFiles(name=name, hf=out / name, gguf=out / f"{name}.gguf", caller=out / f"{name}-caller.gguf")


def cached(size: str = "tiny", *, root: Path | None = None) -> ModelFiles:
    """The model below `root` (default: `.cache/models` of this work tree), made if this recipe has not been yet."""
    root = root or Path(__file__).resolve().parent.parent / ".cache" / "models"
    sources = b"".join(
        Path(file).read_bytes() for file in (__file__, recipe.__file__, formats.__file__, recipe.WORDS_FILE)
    )
    out, name = root / f"{size}-{hashlib.sha256(sources).hexdigest()[:12]}", f"random-{size}"
    if not out.exists():
        try:
            return make(out, size)
        except OSError:
            if not out.exists():  # else another process was quicker, and its files are the same
                raise
    return _files(out, name)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make a random-weight Llama as Hugging Face directory and as GGUF.")
    parser.add_argument("out", type=Path, help="directory to make")
    parser.add_argument("--size", choices=sorted(SIZES), default="tiny")
    parser.add_argument("--force", action="store_true", help="replace the directory")
    options = parser.parse_args()
    if options.force:
        shutil.rmtree(options.out, ignore_errors=True)
    files = make(options.out, options.size)
    print(files.hf, files.gguf, files.caller, sep="\n")


if __name__ == "__main__":
    main()
