"""How the real servers are started."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.servers.engines import quick_dtype


@pytest.mark.parametrize(
    ("flags", "dtype"),
    [
        ("fma avx avx2 avx512f avx512_bf16 avx512_vnni", "bfloat16"),
        ("fp asimd i8mm bf16", "bfloat16"),
        ("fma avx avx2", "float32"),
    ],
)
def test_vllm_counts_in_numbers_that_the_processor_knows(tmp_path: Path, flags: str, dtype: str) -> None:
    processor = tmp_path / "cpuinfo"
    processor.write_text(f"processor: 0\nflags\t: {flags}\n")
    assert quick_dtype(processor) == dtype


def test_an_unknown_processor_gets_what_each_has(tmp_path: Path) -> None:
    assert quick_dtype(tmp_path / "none") == "float32"
