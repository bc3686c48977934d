"""Whether a call goes on with what was, or begins another task: a person has read, or the task before is over."""

from __future__ import annotations

from typing import Final

from classifiers.api import CallClass
from classifiers.marks import Marks
from router.pipelines.hop import Hop, Kind, Pipeline

TTL_S: Final = 1_800.0
"""A task without a call for so long is over, whatever its program may still do."""
PERSON_S: Final = 120.0
"""Who adds words of a user so long after an answer has read it, whatever else it looks like."""
TYPED_S: Final = 1.5
"""The same where tools are offered, whose results would come as such."""
QUIET_S: Final = 20.0
"""A call that goes on from nothing, so long after the last one of its session, begins another task."""


def is_turn(hop: Hop, earlier: Hop, added: int, marks: Marks) -> bool:
    """Whether a person has read the answer before: the call adds nothing but words of a user.

    So do agents whose tools answer in the name of the user; these offer no tools, and do not look like a chat.
    """
    if added < 0 or earlier.ended_s is None or hop.tags.hop or (added and "t" in marks.roles[-added:]):
        return False
    if hop.call_class is CallClass.TTFT:  # a text that grew is what somebody types, else a scratchpad
        return True
    return added > 0 and hop.arrived_s - earlier.ended_s >= (TYPED_S if hop.tools else PERSON_S)


def is_over(pipeline: Pipeline, hop: Hop) -> bool:
    """Whether a call that names it begins a new task under the old name."""
    if pipeline.closed:
        return True
    if pipeline.open:
        return False
    if pipeline.final_seen or hop.arrived_s - pipeline.last_s > TTL_S:
        return True
    if hop.tags.task:
        return False
    # Sessions have one task after the other.
    return hop.kind is Kind.TURN or (hop.kind is Kind.FIRST and hop.arrived_s - pipeline.last_s > QUIET_S)
