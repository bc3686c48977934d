"""What is decided of a call before a place is looked for, and what is learned when it has ended.

Both the gateway and the simulation take calls in here, so that neither knows more of a call than the other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from classifiers.api import CallClass, Features, Source, Verdict
from classifiers.hints import PIPELINE_REASON, affinity_key
from classifiers.lengths import Lengths
from classifiers.tags import HOP_HEADER, Tags, tags_of
from policies.api import Ask, ClassRules
from router.arrivals import Arrivals, Presence
from router.fleet.fleet import Fleet
from router.fleet.prefixes import Prefix, Prefixes
from router.models import Seen
from router.pipelines import Hop, Pipelines
from router.plan import Plan

_JUDGED_BY_US = frozenset({Source.MODEL, Source.BUILTIN, Source.DEFAULT})
_FAN_OUT = 24
"""Calls of one client that are open at once, beyond which they are a job and not the parts of a task."""


class Judged(NamedTuple):
    """One generating call, as far as it is known when it has been read."""

    verdict: Verdict
    presence: Presence | None
    """Among the calls of its client; None: clients are not remembered."""
    lengths: Lengths | None
    """How long its answer is expected to be, for who looks back on it; None: nobody does, or it has no text."""
    prefix: Prefix | None = None
    """Its prompt, as far as backends may have it in their caches; None: it asks for no generation."""
    hop: Hop | None = None
    """What it is of a task of several calls; None: it asks for no generation."""
    seen: Seen | None = None
    """The call as a model was told of it; None: nobody looks back, or its verdict was recalled."""
    recalled: bool = False
    """The verdict is that of calls like it."""


class Intake:
    """Time is an argument. Knows the fleet, for what its answers taught, and the clients."""

    def __init__(self, fleet: Fleet, arrivals: Arrivals) -> None:
        self._fleet = fleet
        self._arrivals = arrivals
        self.prefixes = Prefixes(fleet)
        self.pipelines = Pipelines()

    def judge(self, plan: Plan, client: str, features: Features, now_s: float) -> Judged:
        """What it is, from itself and from what its client did before; or as calls like it were judged."""
        said = self._heed(plan, client, features)
        if not plan.remembers:
            alone = Judged(plan.chain.classify(features), None, None)
            return self._part_of_task(plan, client, features, said, now_s, alone)
        # What a caller says of some of its calls says nothing of the others, so these are remembered apart.
        tags = [features.headers[name] for name in plan.class_headers if name in features.headers]
        name = " ".join((client, *tags)) if tags else client
        presence = self._arrivals.arrive(name, features, now_s, plan.recalled, glance=plan.looks_back)
        if presence.verdict is None:
            features.came_with(presence.arrival)
        verdict = plan.chain.classify(features, presence.verdict)
        recalled = verdict is presence.verdict
        lengths = seen = None
        if plan.looks_back:
            if recalled:
                features.came_with(presence.arrival)
                lengths = presence.lengths
            else:
                lengths = self._fleet.output_lengths.predict(client, features)
                seen = plan.last_seen.taken(features)
        if presence.verdict is None:
            presence.judged(verdict, now_s, lengths)
        judged = Judged(verdict, presence, lengths, seen=seen, recalled=recalled)
        return self._part_of_task(plan, client, features, said, now_s, judged)

    def known(self, features: Features, verdict: Verdict) -> Judged:
        """A call that was judged before, as those of a log."""
        # Without blocks there is nothing that a cache could be asked for, and asking takes as long as deciding.
        return Judged(verdict, None, None, self._prefix(features) if features.uncut is not None else None)

    def _heed(self, plan: Plan, client: str, features: Features) -> Tags:
        """What the caller says of its task; a hop header of a client that says `final` of everything is not heeded."""
        said = tags_of(features, plan.settings.headers.session)
        if self.pipelines.believes(client, said):
            return said
        headers = dict(features.headers)
        headers.pop(HOP_HEADER, None)
        features.headers = headers
        return said._replace(hop="")

    def _part_of_task(
        self, plan: Plan, client: str, features: Features, said: Tags, now_s: float, judged: Judged
    ) -> Judged:
        verdict = judged.verdict
        recognise = plan.settings.pipelines.recognise
        hop = self.pipelines.arrive(client, features, verdict.call_class, said, now_s, recognise=recognise)
        if hop.final and verdict.call_class is CallClass.MIXED and _may_be_told(verdict, said):
            # Its caller named the task, and no class.
            source = Source.BUILTIN if verdict.source is Source.HEADER else verdict.source
            reasons = (*verdict.reasons, "streamed_at_last")
            verdict = replace(verdict, call_class=CallClass.TTFT, source=source, reasons=reasons)
            hop.call_class = CallClass.TTFT
        elif hop.goes_on and verdict.call_class is CallClass.THROUGHPUT and verdict.source in _JUDGED_BY_US:
            verdict = replace(verdict, call_class=CallClass.MIXED, reasons=(*verdict.reasons, "part_of_pipeline"))
            hop.call_class = CallClass.MIXED
        return judged._replace(verdict=verdict, prefix=self._prefix(features), hop=hop)

    def _prefix(self, features: Features) -> Prefix:
        """The last that is asked of the text."""
        prefix = self.prefixes.of(features, features.blocks())
        features.forget_text()
        return prefix

    def ask(
        self, plan: Plan, client: str, features: Features, judged: Judged, rules: ClassRules, arrived_s: float
    ) -> Ask:
        """All that a policy may know of the call. How long its answer is expected to be is not told: decisions would be
        others where somebody looks back, and no better (`docs/lengths.md`).
        """
        key = affinity_key(features, plan.settings.headers.session)
        prefix, hop = judged.prefix, judged.hop
        if prefix is not None:
            prefix.key = key
        home = self._fleet.conversations.recall(key) or ""
        due_s = None
        if hop is not None:
            hop.call_class = judged.verdict.call_class
            home = hop.backend or home
            rules = hop.promised = wished(rules, hop.tags, plan.settings.headers.tightest)
            if hop.deadline_s is not None:
                due_s = self.pipelines.due(hop, arrived_s)
                # The deadline stands in place of what each call of the class is promised; out of reach, nothing does.
                rules = replace(rules, slo_complete_s=None if due_s is None else due_s - arrived_s)
                hop.promised = rules if due_s is not None else hop.promised
        return Ask(
            features=features,
            verdict=judged.verdict,
            rules=rules,
            arrived_s=arrived_s,
            client=client,
            affinity_key=key,
            home=home,
            cached_tokens=prefix if prefix is not None else {},
            due_s=due_s,
            hoped_s=_hoped_s(plan, judged, arrived_s),
        )

    def keeps_model(self, plan: Plan, judged: Judged) -> str | None:
        """By what a loop was answered so far, in the words of its backend, if it is to stay with it."""
        hop = judged.hop
        return hop.model if hop is not None and hop.in_loop and plan.settings.pipelines.keep_model else None

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


def _hoped_s(plan: Plan, judged: Judged, arrived_s: float) -> float | None:
    """A few calls at once that look like rows of a job may as well be a task that fans out, whose caller waits."""
    verdict, presence = judged.verdict, judged.presence
    if verdict.call_class is not CallClass.THROUGHPUT or verdict.source not in _JUDGED_BY_US or presence is None:
        return None
    promised_s = plan.rules[CallClass.MIXED].slo_complete_s
    if promised_s is None or presence.open_calls > _FAN_OUT:
        return None
    return arrived_s + promised_s


def _may_be_told(verdict: Verdict, said: Tags) -> bool:
    """Whether nobody said what the call is, or no more than whose."""
    return verdict.source in _JUDGED_BY_US or (not said.hop and verdict.reasons == (PIPELINE_REASON,))


def wished(rules: ClassRules, said: Tags, tightest_0_1: float) -> ClassRules:
    """The objectives that the caller asks for in place of those of its class, no tighter than the operator allows."""
    if said.ttft_s is None and said.tpot_s is None:
        return rules
    return replace(
        rules,
        slo_ttft_s=_allowed(said.ttft_s, rules.slo_ttft_s, tightest_0_1),
        slo_tpot_s=_allowed(said.tpot_s, rules.slo_tpot_s, tightest_0_1),
    )


def _allowed(wanted_s: float | None, promised_s: float | None, tightest_0_1: float) -> float | None:
    if wanted_s is None or promised_s is None:
        return promised_s if wanted_s is None else wanted_s
    return max(wanted_s, tightest_0_1 * promised_s)
