"""What the router expects of caches, beside what modelled engines find, on mixes whose prompts begin alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

import policies
from bench.goodput.routers import Own
from bench.goodput.virtual import ENGINES, arriving, settings_of
from bench.mixes.catalogue import MIXES
from bench.mixes.plan import MODEL
from policies.api import Ask, Decision, Dispatch, Policy, View
from router.simulate.driver import Simulation

OWN = Own(name="twolane")


@dataclass
class Noting:
    """Decides as another policy does, and keeps what was expected where a call went."""

    policy: Policy
    expected_0_1: dict[float, float] = field(default_factory=dict)
    """Share of the prompt, by the time of arrival."""

    def decide(self, ask: Ask, views: Sequence[View], *, now_s: float, chance: float) -> Decision:
        decision = self.policy.decide(ask, views, now_s=now_s, chance=chance)
        if isinstance(decision, Dispatch):
            share = ask.cached_tokens.get(decision.backend, 0) / max(1, ask.features.prompt_tokens)
            self.expected_0_1[ask.arrived_s] = share
        return decision


@pytest.mark.parametrize(
    ("mix", "share"),
    [
        ("coding_agents", 0.05),
        ("documents", 0.05),
        ("flood", 0.05),
        # Alike prompts come at the same moment, and none finds what another one is still being read for.
        ("fan_out", 0.1),
    ],
)
def test_cached_tokens_are_foretold_within_a_share_of_the_prompts(mix: str, share: float) -> None:
    workload = MIXES[mix](1)
    noting = Noting(policies.build("least_loaded", {}))
    simulation = Simulation(settings_of(OWN), ENGINES, model=MODEL, policy=noting)
    ended = [each for each in simulation.run([arriving(call, OWN.label) for call in workload.calls]) if each.end_s]
    prompts = sum(each.call.prompt_tokens for each in ended)
    wrong = sum(
        abs(noting.expected_0_1[each.call.at_s] * each.call.prompt_tokens - each.cached_tokens)
        for each in ended
        if not each.call.direct
    )
    assert len(ended) > 100
    assert wrong < share * prompts
