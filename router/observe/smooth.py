"""How well a call was served, between 0 and 1, without an edge that could be gamed.

Goodput counts a call or does not, so two tricks raise it: to hold tokens back until the mean gap looks steady, and to
give up a call that will miss in favour of others (Wang et al., "Revisiting Service Level Objectives and System Level
Metrics in Large Language Model Serving", arXiv 2410.14257). Their answer is to give every token a time by which its
reader needs it, to measure how long the reader is idle because tokens are later than that, and to let what a call is
worth fall with the idle time instead of at once. The shape of the fall is ours:

    due(1) = SLO of the first token        due(i) = due(1) + (i - 1) x SLO per token        due = SLO of completion
    idle   = how far the first or the last token came after it was due, whichever is more; 0: neither did
    smooth = due(last) / (due(last) + idle)

So a call that kept its promises counts 1, one that took twice as long as was promised counts 1/2, one that was given up
counts 0: finishing late is worth more than not at all, and a token that is held back is only ever later.
"""

from __future__ import annotations

from policies.api import ClassRules
from router.observe.facts import CallFacts


def smooth_0_1(facts: CallFacts, rules: ClassRules) -> float:
    """Of a call that was promised something which can be told; 0 where it has no complete answer."""
    if facts.outcome != "completed":
        return 0.0
    due_s = idle_s = 0.0
    first_s, per_token_s, complete_s = rules.slo_ttft_s, rules.slo_tpot_s, rules.slo_complete_s
    ttft_s = facts.ttft_s if facts.stream else None
    if ttft_s is not None:
        due_s = ttft_s if first_s is None else first_s
        idle_s = ttft_s - due_s
        if per_token_s is not None and facts.tpot_s is not None and facts.output_tokens:
            later = facts.output_tokens - 1
            due_s += per_token_s * later
            idle_s = max(idle_s, ttft_s + facts.tpot_s * later - due_s)
    if complete_s is not None:
        due_s = complete_s
        idle_s = max(idle_s, facts.complete_s - complete_s)
    return due_s / (due_s + idle_s) if idle_s > 0.0 else 1.0
