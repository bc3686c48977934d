"""What is decided of a call before a place is looked for, and what is learned when it has ended.

Both the gateway and the simulation take calls in here, so that neither knows more of a call than the other.
"""

from __future__ import annotations

from typing import NamedTuple

from classifiers.api import Features, Verdict
from classifiers.hints import affinity_key
from classifiers.lengths import Lengths
from policies.api import Ask, ClassRules
from router.arrivals import Arrivals, Presence
from router.fleet.fleet import Fleet
from router.fleet.prefixes import Prefix, Prefixes
from router.plan import Plan


class Judged(NamedTuple):
    """One generating call, as far as it is known when it has been read."""

    verdict: Verdict
    presence: Presence | None
    """Among the calls of its client; None: clients are not remembered."""
    lengths: Lengths | None
    """How long its answer is expected to be; None: nobody asked, or it has no text."""
    prefix: Prefix | None = None
    """Its prompt, as far as backends may have it in their caches; None: it asks for no generation."""


class Intake:
    """Time is an argument. Knows the fleet, for what its answers taught, and the clients."""

    def __init__(self, fleet: Fleet, arrivals: Arrivals) -> None:
        self._fleet = fleet
        self._arrivals = arrivals
        self.prefixes = Prefixes(fleet)

    def judge(self, plan: Plan, client: str, features: Features, now_s: float) -> Judged:
        """What it is, from itself and from what its client did before; or as calls like it were judged."""
        if not plan.remembers:
            verdict = plan.chain.classify(features)
            return Judged(verdict, None, None, self._prefix(features))
        # What a caller says of some of its calls says nothing of the others, so these are remembered apart.
        tags = [features.headers[name] for name in plan.class_headers if name in features.headers]
        name = " ".join((client, *tags)) if tags else client
        presence = self._arrivals.arrive(name, features, now_s, plan.recalled)
        if presence.verdict is None:
            features.came_with(presence.arrival)
        verdict = plan.chain.classify(features, presence.verdict)
        if presence.verdict is None:
            presence.judged(verdict, now_s)
        lengths = None
        if plan.looks_back:
            lengths = self._fleet.output_lengths.predict(client, features)
            features.looked_at()
        return Judged(verdict, presence, lengths, self._prefix(features))

    def _prefix(self, features: Features) -> Prefix:
        """The last that is asked of the text."""
        prefix = self.prefixes.of(features, features.blocks())
        features.forget_text()
        return prefix

    def ask(
        self, plan: Plan, client: str, features: Features, judged: Judged, rules: ClassRules, arrived_s: float
    ) -> Ask:
        """All that a policy may know of the call."""
        key = affinity_key(features, plan.settings.headers.session)
        prefix = judged.prefix
        if prefix is not None:
            prefix.key = key
        return Ask(
            features=features,
            verdict=judged.verdict,
            rules=rules,
            arrived_s=arrived_s,
            client=client,
            affinity_key=key,
            home=self._fleet.conversations.recall(key) or "",
            cached_tokens=prefix if prefix is not None else {},
            lengths=judged.lengths,
        )

    def ended(
        self,
        plan: Plan,
        client: str,
        features: Features,
        *,
        prompt_tokens: int | None,
        output_tokens: int | None,
        complete: bool,
    ) -> None:
        """Learn from what the engine has counted; None: it did not say."""
        self._fleet.token_rates.learn(features, prompt_tokens)
        if plan.looks_back and complete:
            self._fleet.output_lengths.learn(client, features, output_tokens)
