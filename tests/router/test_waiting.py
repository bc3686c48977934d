"""Who is first among those who wait, and whose turn it is."""

from __future__ import annotations

from itertools import count

from router.waiting import Entry, Group, Shares


class Waiters:
    """A group of names."""

    def __init__(self) -> None:
        self.group: Group[tuple[str], str] = Group(("kind",), 0)
        self._order = count()

    def add(
        self, who: str, *, latest_s: float, work_s: float = 1.0, hoped_s: float | None = None, aged_s: float = 1e9
    ) -> Entry[tuple[str], str]:
        entry = Entry(
            who,
            self.group,
            aged_s=aged_s,
            hoped_s=latest_s if hoped_s is None else hoped_s,
            latest_s=latest_s,
            work_s=work_s,
            order=next(self._order),
        )
        self.group.add(entry)
        return entry

    def asked(self, *, late: bool = False, looks: int = 10, now_s: float = 0.0) -> list[str]:
        """Who is offered room, in order, if nobody takes it."""
        names: list[str] = []

        def refuses(entry: Entry[tuple[str], str]) -> bool:
            names.append(entry.who)
            return False

        self.group.offer(late=late, looks=looks, now_s=now_s, takes=refuses)
        return names


def test_who_has_to_start_first_is_asked_first() -> None:
    waiters = Waiters()
    waiters.add("later", latest_s=9.0)
    waiters.add("sooner", latest_s=5.0)

    assert waiters.asked() == ["sooner", "later"]
    assert waiters.asked() == ["sooner", "later"]  # whoever refused stands where it stood


def test_after_a_few_in_vain_nobody_else_is_asked() -> None:
    waiters = Waiters()
    for number in range(100):
        waiters.add(str(number), latest_s=float(number))

    assert waiters.asked(looks=3) == ["0", "1", "2"]


def test_who_is_too_late_stands_behind_and_the_shortest_is_first_there() -> None:
    waiters = Waiters()
    waiters.add("long", latest_s=1.0, work_s=9.0)
    waiters.add("short", latest_s=2.0, work_s=1.0)
    waiters.add("in time", latest_s=50.0)

    assert waiters.asked(now_s=10.0) == ["in time"]
    assert waiters.asked(now_s=10.0, late=True) == ["short", "long"]


def test_a_hope_that_has_passed_gives_way_to_the_promise() -> None:
    waiters = Waiters()
    waiters.add("hopes", latest_s=60.0, hoped_s=3.0)
    waiters.add("plain", latest_s=40.0)

    assert waiters.asked(now_s=1.0) == ["hopes", "plain"]
    assert waiters.asked(now_s=5.0) == ["plain", "hopes"]
    assert waiters.asked(now_s=5.0, late=True) == []


def test_those_who_left_are_never_asked_and_take_no_memory() -> None:
    waiters = Waiters()
    entries = [waiters.add(str(number), latest_s=float(number)) for number in range(10_000)]
    for entry in entries[:-1]:
        waiters.group.remove(entry)

    assert len(waiters.group) == 1
    assert waiters.asked() == ["9999"]
    oldest, youngest = waiters.group.oldest(), waiters.group.youngest()
    assert oldest is youngest is entries[-1]


def test_a_client_with_much_in_line_falls_behind_one_with_little() -> None:
    shares = Shares()
    leads = [shares.take("job", 2_000)[1] for _ in range(5)]

    assert leads[0] == 0.0
    assert leads == sorted(leads)
    assert leads[-1] > 1.0
    assert shares.take("editor", 300)[1] == 0.0


def test_nobody_saves_up_a_right_for_having_been_away() -> None:
    shares = Shares()
    for _ in range(10):
        start, _ = shares.take("job", 2_000)
        shares.served(start)
    start, lead_s = shares.take("newcomer", 100)

    assert start == 18_000
    assert lead_s == 0.0
