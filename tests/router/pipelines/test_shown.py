"""How many hops are kept to be shown, however many tasks there are and however long they get."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from classifiers.api import CallClass
from router.pipelines.hop import KEPT_SPANS, Kind, Pipeline, Span
from router.pipelines.shown import KEPT, Shown
from router.pipelines.templates import Templates
from tests.router.pipelines.calls import Stage, user


def span(number: int) -> Span:
    at_s = float(number)
    return Span(Kind.NEXT, CallClass.MIXED, at_s, at_s, None, at_s + 0.5, "desk", True, 10, 0, 5, False)


def task(name: str) -> Pipeline:
    return Pipeline(name, 1, Templates().of(1), 0.0, recognised=False)


def test_a_task_keeps_its_newest_hops() -> None:
    shown, one = Shown(), task("a")
    for number in range(KEPT_SPANS + 10):
        shown.add(one, span(number))

    assert shown.spans == len(one.spans) == KEPT_SPANS
    assert one.spans[-1] == span(KEPT_SPANS + 9)


def test_where_enough_are_kept_a_long_task_forgets_its_oldest_and_a_short_one_grows() -> None:
    shown, long, short = Shown(most=100), task("long"), task("short")
    for number in range(150):
        shown.add(long, span(number))
    for number in range(30):
        shown.add(short, span(number))

    assert [each.arrived_s for each in long.spans] == [float(number) for number in range(50, 150)]
    assert [each.arrived_s for each in short.spans] == [float(number) for number in range(14, 30)]


@given(st.lists(st.tuples(st.integers(0, 7), st.booleans()), max_size=400))
def test_what_is_counted_is_what_open_tasks_keep(happened: list[tuple[int, bool]]) -> None:
    shown, tasks = Shown(most=60), [task(str(number)) for number in range(8)]
    for number, over in happened:
        if over and not tasks[number].closed:
            shown.close(tasks[number])
            tasks[number].closed = True
        elif not over:
            shown.add(tasks[number], span(number))

    still_open = [each for each in tasks if not each.closed]
    assert shown.spans == sum(len(each.spans) for each in still_open) <= 60 + 16 * len(tasks)


def test_a_task_that_is_over_makes_room() -> None:
    stage = Stage()
    name = {"x-twolane-pipeline": "p"}
    for number in range(3):
        stage.whole([user(str(number))], headers=name)
    assert stage.store.shown.spans == 3

    stage.whole([user("last")], headers={**name, "x-twolane-hop": "final"})

    assert stage.store.shown.spans == 0


def test_a_task_that_is_shown_no_more_lets_go_of_its_hops() -> None:
    stage = Stage()
    hops = []
    for number in range(KEPT + 1):
        name = {"x-twolane-pipeline": str(number)}
        hops.append(stage.whole([user("a")], headers=name))
        stage.whole([user("b")], headers={**name, "x-twolane-hop": "final"})

    over = stage.store.shown.over

    assert len(over) == KEPT
    assert all(len(each.spans) == 2 for each in over)
    first = hops[0].pipeline
    assert first is not None
    assert first not in over
    assert not first.spans
