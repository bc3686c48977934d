"""How fast a modelled engine is, and how much it takes at once: the only numbers that a simulation is made of.

An engine works in steps. One step decodes one token of each running sequence and prefills a piece of the prompts that
are next, together at most `step_tokens`, and takes

    step_s + sequence_s x decoding sequences + context_token_s x tokens in their contexts + prefilled / prefill rate

which is the model of chunked prefill in Sarathi-Serve (arXiv 2403.02310) with linear terms. Two more terms are none
unless they were measured: a step that prefills takes `prefill_step_s` more, however little that is, and each token that
it prefills `prefill_pair_s` for every token of its prompt before it, which attention looks back at. llama.cpp and vLLM
differ in the figures, in how long a prompt is remembered and in what makes a call wait.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Flavour(StrEnum):
    """What an engine keeps of a prompt."""

    SLOTS = "llamacpp"
    """Each slot its last prompt; a call gets the slot whose prompt begins most alike."""
    BLOCKS = "vllm"
    """All sequences share one store of blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Time of a step, in seconds; see the head of this module."""

    step_s: float
    sequence_s: float
    context_token_s: float = 0.0
    prefill_tokens_per_s: float
    step_tokens: int
    prefill_step_s: float = 0.0
    prefill_pair_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """One engine."""

    flavour: Flavour
    pace: Pace
    sequences: int
    """Most that run at once: slots of llama.cpp, `max_num_seqs` of vLLM."""
    context_tokens: int = 32_768
    """Most tokens of one call, prompt and answer: per slot on llama.cpp, `max_model_len` on vLLM."""
    cache_tokens: int = 262_144
    """Tokens that a store of blocks holds, of running and of ended calls together. Slots have `context_tokens` each."""
    block_tokens: int = 64
    min_similarity_0_1: float = 0.1
    """A slot is only chosen for its prompt if that makes up more than this share of the new one."""
    kind: str = ""
    """What it says that it is, as in the settings; empty: as its flavour is called."""
    by_priority: bool = False
    """Whether calls with a lower priority number go first (`--scheduling-policy priority` of vLLM)."""

    def at(self, speed: float) -> EngineSpec:
        """The same on hardware `speed` times as fast."""
        pace = replace(
            self.pace,
            step_s=self.pace.step_s / speed,
            sequence_s=self.pace.sequence_s / speed,
            context_token_s=self.pace.context_token_s / speed,
            prefill_tokens_per_s=self.pace.prefill_tokens_per_s * speed,
            prefill_step_s=self.pace.prefill_step_s / speed,
            prefill_pair_s=self.pace.prefill_pair_s / speed,
        )
        return replace(self, pace=pace)


DESK = EngineSpec(
    flavour=Flavour.SLOTS,
    pace=Pace(step_s=0.008, sequence_s=0.0012, prefill_tokens_per_s=6_000, step_tokens=512),
    sequences=4,
)
"""A llama.cpp server with four slots on a workstation."""

RACK = EngineSpec(
    flavour=Flavour.BLOCKS,
    pace=Pace(step_s=0.012, sequence_s=0.000_25, prefill_tokens_per_s=9_000, step_tokens=2_048),
    sequences=64,
)
"""A vLLM server on a machine with a large accelerator."""
