"""What each class of calls is promised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from classifiers.api import CallClass
from policies.api import ClassRules, Lane
from router.settings.fields import Amount, LaneName, Lanes
from router.settings.section import Section
from router.settings.units import PositiveSeconds, Seconds


class Slo(Section):
    """What counts as good enough; goodput and the policy go by it."""

    ttft: PositiveSeconds | None = Field(None, description="Time to first token. null: not promised.")
    tpot: PositiveSeconds | None = Field(
        None, description="Mean time per output token after the first. null: not promised."
    )
    complete: PositiveSeconds | None = Field(None, description="Time to the end of the answer. null: not promised.")


class ClassSettings(Section):
    """What calls of one class are promised. What is left out keeps the default of that class."""

    slo: Slo = Field(default_factory=Slo, description="Objectives; those left out keep the default of the class.")
    lanes: Lanes = Field(
        (Lane.LATENCY, Lane.THROUGHPUT), description="Lanes in order of preference, or any. Others are never used."
    )
    keep_free: dict[LaneName, Amount] = Field(
        default_factory=dict, description="Slots of a lane that calls of this class leave to others."
    )
    max_wait: Seconds = Field(30.0, description="Longest stay in the router's line; then 503 with Retry-After.")

    def rules(self) -> ClassRules:
        return ClassRules(
            lanes=self.lanes,
            keep_free=self.keep_free,
            max_wait_s=self.max_wait,
            slo_ttft_s=self.slo.ttft,
            slo_tpot_s=self.slo.tpot,
            slo_complete_s=self.slo.complete,
        )


_TTFT = ClassSettings(slo=Slo(ttft=0.5, tpot=0.05), max_wait=30.0)
_MIXED = ClassSettings(slo=Slo(complete=6.0), max_wait=120.0)
_THROUGHPUT = ClassSettings(lanes=(Lane.THROUGHPUT, Lane.LATENCY), keep_free={Lane.LATENCY: 1}, max_wait=600.0)


def _given(model: BaseModel) -> dict[str, Any]:
    return {name: getattr(model, name) for name in model.model_fields_set}


def _laid_over(default: ClassSettings) -> Callable[[ClassSettings], ClassSettings]:
    """Keys that are not given, also inside `slo`, keep the default of this class and not of all classes."""

    def merge(given: ClassSettings) -> ClassSettings:
        slo = default.slo.model_copy(update=_given(given.slo))
        return default.model_copy(update={**_given(given), "slo": slo})

    return merge


class Classes(Section):
    """What each class is promised."""

    ttft: Annotated[ClassSettings, AfterValidator(_laid_over(_TTFT))] = Field(
        _TTFT, description="Calls whose reader waits for the first token: chat, completion in an editor."
    )
    mixed: Annotated[ClassSettings, AfterValidator(_laid_over(_MIXED))] = Field(
        _MIXED, description="Hops of a pipeline: what counts is when the pipeline ends."
    )
    throughput: Annotated[ClassSettings, AfterValidator(_laid_over(_THROUGHPUT))] = Field(
        _THROUGHPUT, description="Calls of which only the complete answer counts: batches, enrichment, evaluation."
    )

    def of(self, call_class: CallClass) -> ClassSettings:
        match call_class:
            case CallClass.TTFT:
                return self.ttft
            case CallClass.MIXED:
                return self.mixed
            case CallClass.THROUGHPUT:
                return self.throughput
