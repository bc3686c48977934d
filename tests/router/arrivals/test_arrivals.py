"""What is known of a client when its call arrives, and that this stays within its bounds."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sized
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from classifiers.api import CallClass, Features, Source, Verdict
from classifiers.arrival import Arrival
from router.arrivals import Arrivals, Presence
from router.arrivals.client import KEPT_TIMES
from tests.router.surfaces.streams import chat, read

SYSTEM = {"role": "system", "content": "You sort mail."}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def row(number: int) -> Features:
    """One of a job: the same instruction around other data."""
    instruction = "Say in one word what the customer wants who wrote the following message to us:"
    return chat(SYSTEM, user(f"{instruction} {'abcdefghij'[number % 10] * 30} number {number}"))


def sent(
    arrivals: Arrivals, features: Features, now_s: float, client: str = "me", takes_s: float = 1.0, **end: Any
) -> Arrival:
    """A call that is answered before anything else happens."""
    presence = arrivals.arrive(client, features, now_s)
    presence.ended(now_s + takes_s, **end)
    return presence.arrival


def test_nothing_is_known_of_the_first_call_of_a_client() -> None:
    arrivals = Arrivals()
    assert sent(arrivals, row(1), 0.0) == Arrival()
    assert sent(arrivals, row(1), 5.0, client="somebody else") == Arrival()


def test_calls_just_before_are_counted_by_window() -> None:
    arrivals = Arrivals()
    for now_s in (0.0, 55.0, 92.0, 99.5, 99.8):
        sent(arrivals, row(1), now_s, takes_s=0.1)
    arrival = sent(arrivals, row(2), 100.0)
    assert (arrival.calls_1s, arrival.calls_10s, arrival.calls_60s, arrival.calls) == (2, 3, 4, 5)
    assert arrival.since_arrival_s == pytest.approx(0.2)


def test_more_calls_than_are_kept_are_still_counted_closely() -> None:
    arrivals = Arrivals()
    for number in range(1200):
        sent(arrivals, row(number), 0.1 * number, takes_s=0.05)
    arrival = sent(arrivals, row(1), 120.0)
    assert arrival.calls_1s == 10
    assert arrival.calls_10s == pytest.approx(100, rel=0.05)
    assert arrival.calls_60s == pytest.approx(600, rel=0.05)
    assert arrival.calls_60s > KEPT_TIMES


def test_a_burst_after_a_quiet_time_is_not_taken_for_a_rate() -> None:
    arrivals = Arrivals()
    for number in range(KEPT_TIMES + 6):
        sent(arrivals, row(number), 500.0 + 0.001 * number, takes_s=0.0)
    assert sent(arrivals, row(1), 500.2).calls_60s == KEPT_TIMES + 6


def test_what_calls_share_is_told_apart() -> None:
    arrivals = Arrivals()
    tools = [{"type": "function", "function": {"name": "look"}}]
    sent(arrivals, row(1), 0.0)
    sent(arrivals, row(2), 1.0)
    sent(arrivals, chat(user("hello there"), tools=tools), 2.0)
    same = sent(arrivals, row(3), 3.0)
    assert (same.same_system_60s, same.same_tools_60s, same.same_template_60s) == (2, 0, 2)
    assert (same.program_calls, same.template_calls, same.template_share, same.start_share) == (2, 2, 1.0, 1.0)
    other = sent(arrivals, chat(user("and what is this?"), tools=tools), 4.0)
    assert (other.same_system_60s, other.same_tools_60s, other.same_template_60s) == (1, 1, 0)
    assert (other.program_calls, other.template_share) == (1, 0.0)
    assert (other.calls, other.calls_60s) == (4, 4)


def test_open_calls_are_counted_until_they_end() -> None:
    arrivals = Arrivals()
    running = [arrivals.arrive("me", row(number), 0.0) for number in range(3)]
    chatting = arrivals.arrive("me", chat(user("hi")), 0.0)
    assert (chatting.arrival.parallel, chatting.arrival.parallel_template) == (3, 0)
    one = arrivals.arrive("me", row(4), 0.5)
    assert (one.arrival.parallel, one.arrival.parallel_program, one.arrival.parallel_template) == (4, 3, 3)
    assert one.arrival.since_answer_s is None
    for presence in (*running, chatting, one):
        presence.ended(1.0)
    arrival = sent(arrivals, row(5), 1.25)
    assert (arrival.parallel, arrival.parallel_program, arrival.parallel_template) == (0, 0, 0)
    assert (arrival.since_answer_s, arrival.since_program_answer_s) == (0.25, 0.25)


def test_a_call_ends_once() -> None:
    presence = Arrivals().arrive("me", row(1), 0.0)
    presence.ended(1.0)
    with pytest.raises(AssertionError):
        presence.ended(2.0)


def test_hops_of_an_agent_are_followed_through_their_history() -> None:
    arrivals = Arrivals()
    tool_hop: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": "x" * 50},
    ]
    history = [SYSTEM, user("Where is my parcel?")]
    assert not sent(arrivals, chat(*history), 0.0).continues
    sent(arrivals, chat(user("of somebody else, meanwhile")), 1.5)
    history += tool_hop
    first = sent(arrivals, chat(*history), 3.0)
    assert (first.continues, first.hops, first.since_continued_s) == (True, 1, 2.0)
    assert (first.appended_assistant, first.appended_tool_results, first.appended_user) == (1, 1, 0)
    assert first.appended_chars == 50
    assert first.grown_tokens > 10
    history += [said("It is in Bonn."), user("Thanks. And the other one?")]
    second = sent(arrivals, chat(*history), 40.0)
    assert (second.hops, second.since_continued_s, second.longest_pause_s) == (2, 36.0, 36.0)
    assert second.pause_s == pytest.approx((2.0 * 36.0) ** 0.5)
    assert (second.appended_user, second.appended_tool_results) == (1, 0)
    assert second.continued_share == 0.5


def test_a_call_that_goes_on_from_one_that_still_runs_has_no_gap() -> None:
    arrivals = Arrivals()
    arrivals.arrive("me", chat(user("a")), 0.0)
    arrival = arrivals.arrive("me", chat(user("a"), said("b"), user("c")), 1.0).arrival
    assert arrival.continues
    assert arrival.since_continued_s is None


def test_histories_of_another_client_are_not_gone_on_from() -> None:
    arrivals = Arrivals()
    sent(arrivals, chat(user("a")), 0.0)
    sent(arrivals, chat(user("z")), 0.0, client="you")
    assert not sent(arrivals, chat(user("a"), said("b"), user("c")), 2.0, client="you").continues


def test_one_client_may_hold_many_conversations() -> None:
    arrivals = Arrivals()
    threads = [[SYSTEM, user(f"question {number}")] for number in range(100)]
    for thread in threads:
        sent(arrivals, chat(*thread), 0.0, takes_s=0.0)
    goes_on = [sent(arrivals, chat(*thread, said("so"), user("and then?")), 30.0, takes_s=0.0) for thread in threads]
    assert all(arrival.continues and arrival.hops == 1 for arrival in goes_on)


def test_a_scratchpad_that_grows_goes_on() -> None:
    arrivals = Arrivals()
    prompt = "Answer with Search and Finish, step by step.\n" * 8 + "Question: who?\nThought 1:"
    sent(arrivals, read("/v1/completions", {"prompt": prompt}), 0.0)
    grown = prompt + " I look.\nAction 1: Search[x]\nObservation 1: y\nThought 2:"
    arrival = sent(arrivals, read("/v1/completions", {"prompt": grown}), 2.0)
    assert (arrival.continues, arrival.hops, arrival.since_continued_s) == (True, 1, 1.0)
    assert (arrival.appended_assistant, arrival.appended_user) == (0, 0)


def test_the_same_call_again_repeats_and_continues_nothing() -> None:
    arrivals = Arrivals()
    repeats = [sent(arrivals, chat(user("Write a poem.")), float(number)) for number in range(3)]
    assert [arrival.repeats for arrival in repeats] == [0, 1, 2]
    assert not any(arrival.continues for arrival in repeats)


def test_streams_that_were_read_and_streams_that_were_left() -> None:
    arrivals = Arrivals()
    streamed = chat(user("hi"), stream=True)
    sent(arrivals, streamed, 0.0)
    assert (one := sent(arrivals, streamed, 2.0, left=True, first_token_seen=False)).read_last
    assert (one.streams, one.left_early, one.left_share) == (1, False, 0.0)
    two = sent(arrivals, streamed, 4.0, left=True)
    assert (two.read_last, two.left_early, two.left_share) == (False, True, 0.5)
    three = sent(arrivals, chat(user("hi")), 6.0, left=True)
    assert three.left_share == pytest.approx(2 / 3)
    # Neither a call without a stream nor one that was refused says anything of reading.
    sent(arrivals, streamed, 8.0, first_token_seen=False)
    assert sent(arrivals, streamed, 10.0).streams == 3


def test_a_program_that_streams_only_what_is_read() -> None:
    arrivals = Arrivals()
    history = [SYSTEM, user("Where is it?")]
    sent(arrivals, chat(*history, tools=[CALL]), 0.0)
    history += [said("look"), user("found")]
    sent(arrivals, chat(*history, tools=[CALL]), 2.0)
    final = sent(arrivals, chat(*history, said("so"), user("Answer now."), stream=True), 4.0)
    assert (final.hops, final.streamed_hops, final.tools_dropped) == (2, 0, True)
    again = sent(arrivals, chat(SYSTEM, user("And this?"), stream=True), 9.0)
    assert (again.program_calls, again.program_streams) == (1, 1.0)


def test_outputs_and_sizes_that_are_usual() -> None:
    arrivals = Arrivals()
    for number in range(6):
        sent(arrivals, row(number), float(2 * number), output_tokens=3)
    sent(arrivals, chat(user("Tell me a story.")), 12.0, output_tokens=900)
    arrival = sent(arrivals, row(7), 14.0)
    assert arrival.output_tokens == pytest.approx(3.0)
    assert abs(arrival.size_change) < 0.2
    assert arrival.size_spread < 0.2
    longer = replace(row(8), prompt_tokens=8 * row(8).prompt_tokens)
    assert sent(arrivals, longer, 16.0).size_change == pytest.approx(3.0, abs=0.3)


def test_usual_gaps_and_how_even_they_are() -> None:
    arrivals = Arrivals()
    steady = [sent(arrivals, row(number), 5.0 * number) for number in range(8)][-1]
    assert steady.usual_gap_s == pytest.approx(5.0)
    assert steady.gap_spread == 0.0
    assert steady.usual_program_answer_gap_s == pytest.approx(4.0)
    uneven = [sent(arrivals, row(1), now_s, takes_s=0.5) for now_s in (37.0, 117.0, 120.0, 320.0, 322.0)][-1]
    assert uneven.gap_spread > 1.0


# --- bounds


def size_of(record: Presence) -> int:
    client = record._client
    assert client is not None
    kept: list[Sized] = [client.times, client.streams, client.histories, client.systems, client.tools]
    kept += [client.programs, client.heads, client.tails, client.openings]
    return sum([len(each) for each in kept])


def test_a_client_does_not_grow_however_much_it_calls() -> None:
    arrivals = Arrivals(histories=50)
    sizes = []
    for number in range(10_000):
        features = chat(
            {"role": "system", "content": f"{'abcdefghijklmnop'[number % 16]} system {number}"},
            user(f"{number} {'x' * (number % 97)} question"),
            stream=True,
        )
        presence = arrivals.arrive("me", features, 0.01 * number)
        sizes.append(size_of(presence))
        presence.ended(0.01 * number + 0.005, output_tokens=number)
    assert max(sizes[1000:]) == sizes[-1]
    assert sizes[-1] < 300


def test_clients_beyond_the_capacity_are_forgotten_longest_silent_first() -> None:
    arrivals = Arrivals(capacity=100)
    numbers = count()
    for number in range(10_000):
        sent(arrivals, row(1), float(next(numbers)), client=f"client {number}")
        if number % 50 == 0:
            assert sent(arrivals, row(1), float(next(numbers)), client="regular").calls == number // 50
    assert len(arrivals) == 100


def test_histories_of_all_clients_together_are_bounded() -> None:
    arrivals = Arrivals(all_histories=100)
    for number in range(1000):
        sent(arrivals, chat(user(f"{number}")), float(number), client=f"client {number % 5}")
        kept = sum(len(client.histories) for client in arrivals._clients.values())
        assert kept == arrivals._kept_histories <= 101
    assert len(arrivals) > 1


def test_memory_does_not_follow_the_number_of_calls() -> None:
    arrivals = Arrivals(capacity=20, histories=20)
    calls = [chat(user(f"{number} {number * 7919} words")) for number in range(500)]

    def burst(start_s: float) -> None:
        for number, features in enumerate(calls):
            sent(arrivals, features, start_s + number, client=str(number % 40))

    burst(0.0)
    burst(1000.0)
    tracemalloc.start()
    burst(2000.0)
    before = tracemalloc.get_traced_memory()[0]
    for round_ in range(3, 12):
        burst(1000.0 * round_)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 100_000


def test_a_client_that_was_silent_for_long_is_a_new_one() -> None:
    arrivals = Arrivals(ttl_s=100.0)
    sent(arrivals, row(1), 1000.0)
    assert sent(arrivals, row(1), 1099.0).calls == 1
    assert sent(arrivals, row(1), 1300.0) == Arrival()
    # Nobody else is kept beyond that time either.
    for number in range(5):
        sent(arrivals, row(1), 1301.0, client=str(number))
    sent(arrivals, row(1), 2000.0, client="late")
    sent(arrivals, row(1), 2000.0, client="later")
    sent(arrivals, row(1), 2000.0, client="last")
    assert len(arrivals) == 3


def test_a_client_that_was_forgotten_while_it_waits_may_still_end() -> None:
    arrivals = Arrivals(capacity=1)
    waiting = arrivals.arrive("me", row(1), 0.0)
    sent(arrivals, row(1), 1.0, client="you")
    waiting.ended(5.0, left=True, first_token_seen=False)
    assert len(arrivals) == 1
    assert sent(arrivals, row(1), 6.0) == Arrival()


def test_nothing_that_is_kept_is_text() -> None:
    arrivals = Arrivals()
    sent(
        arrivals, chat({"role": "system", "content": "geheimnis"}, user("passwort hunter2")), 0.0, client="10.1.2.3 ua"
    )
    kept: list[object] = [*arrivals._clients]
    waiting: list[Any] = [*arrivals._clients.values()]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += [*item, *item.values()]
        elif isinstance(item, (str, bytes)):
            kept.append(item)
        elif isinstance(item, (list, tuple, set, frozenset)) or type(item).__name__ == "deque":
            waiting += list(item)
        elif type(item).__module__.startswith("router.arrivals"):
            names = [name for each in type(item).__mro__ for name in each.__dict__.get("__slots__", ())]
            waiting += [getattr(item, name) for name in names]
    assert [value for value in kept if not isinstance(value, int)] == []


# --- what was said of earlier calls


def judged(arrivals: Arrivals, features: Features, now_s: float, alone: tuple[float, float, float]) -> Arrival:
    presence = arrivals.arrive("me", features, now_s)
    verdict = Verdict(call_class=CallClass.MIXED, confidence=0.9, source=Source.MODEL, reasons=(), alone=alone)
    presence.judged(verdict, now_s)
    presence.ended(now_s + 1)
    return presence.arrival


def test_what_a_model_said_of_a_program_is_known_at_its_next_call() -> None:
    arrivals = Arrivals()
    assert judged(arrivals, row(1), 0.0, (1.0, 0.0, -1.0)).said is None
    assert judged(arrivals, row(2), 2.0, (2.0, -1.0, -1.0)).said == (1.0, 0.0, -1.0)
    assert judged(arrivals, row(3), 4.0, (0.0, 0.0, 0.0)).said == pytest.approx((1.3, -0.3, -1.0))


def test_a_new_program_is_taken_for_what_the_client_did_else() -> None:
    arrivals = Arrivals()
    judged(arrivals, row(1), 0.0, (1.0, 0.0, -1.0))
    other = chat({"role": "system", "content": "You are a poet."}, user("Of rain."))
    assert judged(arrivals, other, 2.0, (0.0, 2.0, -2.0)).said == (1.0, 0.0, -1.0)
    assert judged(arrivals, other, 4.0, (0.0, 0.0, 0.0)).said == (0.0, 2.0, -2.0)
    assert judged(arrivals, row(2), 6.0, (0.0, 0.0, 0.0)).said == (1.0, 0.0, -1.0)


def test_calls_that_stream_say_nothing_of_those_that_do_not() -> None:
    arrivals = Arrivals()
    judged(arrivals, row(1), 0.0, (1.0, 0.0, -1.0))
    streamed = chat(SYSTEM, user("And now read it to me."), stream=True)
    assert judged(arrivals, streamed, 2.0, (0.0, 0.0, 0.0)).said is None


def test_what_a_caller_or_a_rule_said_is_not_taken_for_what_a_model_said() -> None:
    arrivals = Arrivals()
    presence = arrivals.arrive("me", row(1), 0.0)
    presence.judged(Verdict(call_class=CallClass.TTFT, confidence=1.0, source=Source.RULE, reasons=()), 0.0)
    presence.ended(1.0)
    assert sent(arrivals, row(2), 2.0).said is None
