"""What callers who wait for a first token ask for: how often, how large, how long. Counted as calls arrive.

A policy keeps room for the next of them, so it has to know what that one will be like.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from classifiers.api import CallClass
from policies.api import Ask, Demand
from policies.outlook import lengths

_MEMORY_S: Final = 60.0
"""Age at which an arrival has faded to 1/e in the rate."""
_GAPS: Final = 3.0
"""Of the usual length, at most: where calls come by chance, a longer pause is one in twenty (e^-3)."""
_WEIGHT: Final = 0.05
"""Of the newest call in the typical one."""
_PROMPT_TOKENS: Final = 400.0
_OUTPUT_TOKENS: Final = 150.0
"""Of the first one, of which nothing can be known."""
_FRESH_S: Final = 0.25
"""Age up to which what is told stays as it is."""


class DemandMeter:
    """Owner of the counts. Time is an argument."""

    def __init__(self) -> None:
        self._per_s = 0.0
        self._since_s: float | None = None
        self._last_s = -math.inf
        self._calls = 0
        self._log_prompt = 0.0
        self._spread = 0.0
        self._output_tokens = 0.0
        self._ttft_s = self._tpot_s = math.inf
        self._told = Demand(
            prompt_tokens=_PROMPT_TOKENS, output_tokens=_OUTPUT_TOKENS, ttft_s=self._ttft_s, tpot_s=self._tpot_s
        )
        self._told_s = -math.inf

    def promise(self, ttft_s: float | None, tpot_s: float | None) -> None:
        """What the settings promise them; what one of them asks for beside that is no measure for the others."""
        self._ttft_s, self._tpot_s = ttft_s or math.inf, tpot_s or math.inf
        self._told = replace(self._told, ttft_s=self._ttft_s, tpot_s=self._tpot_s)

    def came(self, ask: Ask, now_s: float) -> None:
        if ask.verdict.call_class is not CallClass.TTFT:
            return
        if self._since_s is None:
            self._since_s = now_s
        self._per_s = self._faded(now_s) + 1.0 / _MEMORY_S
        self._last_s = now_s
        self._calls += 1
        weight = max(_WEIGHT, 1.0 / self._calls)
        log_prompt = math.log(max(1, ask.features.prompt_tokens))
        off = log_prompt - self._log_prompt
        self._log_prompt += weight * off
        self._spread += weight * (abs(off) - self._spread) if self._calls > 1 else 0.0
        self._output_tokens += weight * (lengths(ask).p50_tokens - self._output_tokens)

    def _faded(self, now_s: float) -> float:
        return self._per_s * math.exp(-(now_s - self._last_s) / _MEMORY_S) if self._calls else 0.0

    def told(self, now_s: float) -> Demand:
        """As a policy sees it; the same object for a moment."""
        if now_s - self._told_s < _FRESH_S or self._since_s is None:
            return self._told
        self._told_s = now_s
        # Soon after the start the sum has not had the time to reach the rate.
        covered_0_1 = 1.0 - math.exp(-max(5.0, now_s - self._since_s) / _MEMORY_S)
        # Where they have ceased, nobody is to wait for them until they have faded.
        paused_s = max(1e-3, now_s - self._last_s)
        self._told = Demand(
            per_s=min(self._faded(now_s) / covered_0_1, _GAPS / paused_s),
            prompt_tokens=math.exp(self._log_prompt + self._spread),
            output_tokens=self._output_tokens,
            ttft_s=self._ttft_s,
            tpot_s=self._tpot_s,
        )
        return self._told
