"""When the running calls of a backend end, and what the promises among them can spare, as of one instant.

A view is made whenever something happens on a backend, and few of those who look at it ask for either: ends are asked
for where no place is free, promises where one is. With sixty calls both together cost as much as a decision, so each is
worked out when it is first looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar, overload

from policies.api import Pace, Protected
from router.fleet.running import KEPT_0_1, SOON_TOKENS, Running

T = TypeVar("T")


class Later(Sequence[T]):
    """A list that is made when somebody first looks at it."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], list[T]]) -> None:
        self._make: Callable[[], list[T]] | None = make
        self._made: list[T] = []

    def _list(self) -> list[T]:
        if self._make is not None:
            self._made, self._make = self._make(), None
        return self._made

    def __len__(self) -> int:
        return len(self._list())

    def __iter__(self) -> Iterator[T]:
        return iter(self._list())

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        return self._list()[at]

    def __repr__(self) -> str:
        return repr(self._list())


class Glance:
    """Everything in O(n log n) of the running calls. What they got is counted when somebody asks.

    Each is taken to have an answer as long as expected, and whoever ends to be followed by another one. Steps that
    prefill are longer by what is prefilled in them; all that are there wait for that.
    """

    __slots__ = ("_before", "_begun", "_from_s", "_now_s", "_pace", "_steps", "_token_s")

    def __init__(
        self,
        now_s: float,
        steps: float,
        pace: Pace,
        rows: float,
        backlog_tokens: float,
        begun: Sequence[Running],
        before: Sequence[tuple[Running, float]],
    ) -> None:
        """`rows`: sequences that decode, with those of others. `before`: who has no token yet, in the order of their
        coming, and how much of its prompt is left; `backlog_tokens` in all.
        """
        self._now_s = now_s
        self._steps = steps
        self._pace = pace
        self._begun = begun
        self._before = before
        if before:
            rows += sum([one.sequences for one, _ in before])
        self._token_s = pace.step_s + pace.sequence_s * rows
        self._from_s = now_s + backlog_tokens * pace.prefill_token_s

    def ends_s(self) -> list[float]:
        """When each ends, the soonest first."""
        steps, from_s, token_s = self._steps, self._from_s, self._token_s
        ends_s = [from_s + one.left(one.got(steps)) * token_s for one in self._begun]
        for one, begins_s in self._beginnings():
            ends_s.append(max(from_s, begins_s) + one.p50_tokens * token_s)
        ends_s.sort()
        return ends_s

    def _beginnings(self) -> Iterator[tuple[Running, float]]:
        """When each that has not begun will."""
        pace, behind_tokens = self._pace, 0.0
        each_s = pace.prefill_token_s + self._token_s / pace.step_tokens
        for one, left_tokens in self._before:
            behind_tokens += left_tokens
            yield one, self._now_s + behind_tokens * each_s

    def promises(self) -> list[Protected]:
        """Of those that were promised something: first who has begun, then who has not."""
        return [*self._of_begun(), *self._of_others()]

    def _of_begun(self) -> list[Protected]:
        steps, from_s, token_s = self._steps, self._from_s, self._token_s
        found = []
        for one in self._begun:
            if not one.promised:
                continue
            # As `got`, `left` and `sure_s` have it; said once more, since half of the time went into calling them.
            slo_s, due_s, got = one.tpot_slo_s, one.due_s, steps - one.from_step
            if slo_s and (count := one.count) is not None and 2 * (came := count()) >= 1.0 + got:
                got = came - 1.0
                one.from_step = steps - got
            if got < one.sure_after:
                left = one.ends_after - got
            elif (left := one.tail * (1.0 + got)) < 0.5 or left > one.most_tokens - 1.0 - got:
                left = one.left(got)
            if not slo_s:
                slack_s = due_s - from_s - left * token_s
                most = one.p90_tokens - got
                sure_s = slack_s if left >= most else due_s - from_s - most * token_s
            elif due_s == _NEVER:
                slack_s = one.first_s + slo_s * (got + left) - from_s - left * token_s
                near = one.p10_tokens - got
                if near < SOON_TOKENS:
                    near = SOON_TOKENS
                if left < near:
                    near = left
                sure_s = one.first_s + KEPT_0_1 * slo_s * (got + near) - from_s - near * token_s
            else:
                slack_s = min(one.first_s + slo_s * (got + left), due_s) - from_s - left * token_s
                sure_s = one.sure_s(got, left, from_s, token_s)
            found.append(_protected((slack_s, left, sure_s, one.call_class)))
        return found

    def _of_others(self) -> Iterator[Protected]:
        if not self._before:
            return
        from_s, token_s = self._from_s, self._token_s
        for one, begins_s in self._beginnings():
            if one.promised:
                end_s = max(from_s, begins_s) + one.p50_tokens * token_s
                slack_s = min(one.due_s - end_s, one.promised_each_s(token_s))
                sure_s = min(slack_s, one.sure_before_s(begins_s, from_s, token_s))
                yield _protected((slack_s, one.p50_tokens, sure_s, one.call_class))


_NEVER: Final = float("inf")
_protected = partial(tuple.__new__, Protected)
"""A third of the time of calling it, for one is made for each running call and view."""
