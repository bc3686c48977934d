"""How clients behave: chats, completions while typing, batch jobs, agents.

Each function yields the actors of one activity with their starts in seconds. Gaps, sizes and habits are drawn wide, so
that none gives a class away. The class of a call chooses the activity and nothing else: chats of many users behind one
address come as close together as the rows of a job, jobs trickle as slowly as people type, and both may stream or not,
as their bodies say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from bench.judgement.texts import Record, Wordings, job, newest_text, output_tokens, send, turns
from bench.judgement.virtual import Actor, Send, Wait, log_uniform

Start = tuple[float, Actor]

_NIGHT_S = 6 * 3600.0
"""Longest time that a job takes."""


def pause(chance: Random, median_s: float, spread: float = 1.0, *, by_person: bool = False) -> Wait:
    """Log-normal around `median_s`; `spread` 1 is a factor of 2.7."""
    return Wait(chance.lognormvariate(0.0, spread) * median_s, by_person)


def reading_s(chance: Random) -> float:
    """How long somebody reads and types; now and then a script that goes through a conversation."""
    return log_uniform(chance, 3, 120) if chance.random() < 0.92 else log_uniform(chance, 0.02, 2)


def single(sends: Sequence[Send]) -> Actor:
    yield from sends


# --- people


def chat_thread(record: Record, lead: Record, chance: Random) -> Actor:
    """One conversation: the turns that led to this one, with time to read and to type in between."""
    reads_s = reading_s(chance)
    leaves = chance.choice((0.0, 0.0, 0.05, 0.3))
    retries = chance.choice((0.0, 0.05, 0.15))
    for number, body in enumerate(turns(record, chance.choice((2, 4, 12)))):
        if number:
            yield pause(chance, reads_s)
        leave_s = log_uniform(chance, 0.3, 20) if chance.random() < leaves else None
        yield send(record, lead, chance, body, leave_after_s=leave_s)
        if chance.random() < retries:
            yield pause(chance, reads_s / 3)
            yield send(record, lead, chance, body)


def chats(records: Sequence[Record], chance: Random) -> Iterator[Start]:
    """One person who asks one thing after the other, now and then in two windows."""
    lead = chance.choice(records)
    own_lead = chance.random() < 0.8
    gap_s = log_uniform(chance, 8, 600)
    at_s = 0.0
    for record in records:
        yield at_s, chat_thread(record, lead if own_lead else record, chance)
        at_s += pause(chance, gap_s if chance.random() < 0.9 else 2.0).seconds


def conversations(records: Sequence[Record], chance: Random) -> Iterator[Start]:
    """Somebody stays in one conversation for several questions, or an application has many who do.

    The questions are those of single calls; what stands for the answers between them is words of other calls.
    """
    lead = chance.choice(records)
    reads_s = reading_s(chance)
    gap_s = log_uniform(chance, 1, 600)
    at_s = 0.0
    left = list(records)
    while left:
        few = [left.pop() for _ in range(min(len(left), int(log_uniform(chance, 2, 10))))]
        yield at_s, _conversation(few, lead, records, reads_s, chance)
        at_s += pause(chance, gap_s).seconds


def _conversation(
    records: Sequence[Record], lead: Record, others: Sequence[Record], reads_s: float, chance: Random
) -> Actor:
    said = [message for message in (lead["body"].get("messages") or [])[:1] if message.get("role") == "system"]
    for number, record in enumerate(records):
        text = newest_text(record)
        if text is None or "messages" not in lead["body"]:
            yield send(record, record, chance)
            continue
        if number:
            yield pause(chance, reads_s)
        said.append({"role": "user", "content": text})
        yield send(record, lead, chance, {**lead["body"], "messages": list(said)})
        said.append({"role": "assistant", "content": _words(others, output_tokens(record, chance), chance)})


def _words(records: Sequence[Record], tokens: int, chance: Random) -> str:
    texts = [text for record in chance.sample(records, min(6, len(records))) if (text := newest_text(record))]
    return " ".join(texts)[: 4 * tokens] or "Yes."


def chat_app(records: Sequence[Record], chance: Random) -> Iterator[Start]:
    """An application that serves many people from one address: the same system text, calls whenever somebody types."""
    lead = chance.choice(records)
    rate_s = log_uniform(chance, 0.05, 20)
    at_s = 0.0
    for record in records:
        # What the application says first is the same for all; what people say is not.
        own = record if chance.random() < 0.2 else _under(lead, record)
        yield at_s, chat_thread(own, lead, chance)
        at_s += chance.expovariate(1 / rate_s)


def _under(lead: Record, record: Record) -> Record:
    """The record's conversation under the system text and the tools of the lead."""
    messages = record["body"].get("messages")
    if not messages or not lead["body"].get("messages"):
        return record
    system = [message for message in lead["body"]["messages"][:1] if message.get("role") == "system"]
    said = [message for message in messages if message.get("role") != "system"]
    body = {**record["body"], "messages": [*system, *said]}
    body.pop("tools", None)
    if "tools" in lead["body"]:
        body["tools"] = lead["body"]["tools"]
    return {**record, "body": body}


def typing(records: Sequence[Record], chance: Random) -> Iterator[Start]:
    """An editor that asks for a completion at each rest of the keyboard, and gives most of them up."""
    yield 0.0, _typist(records, chance)


def _typist(records: Sequence[Record], chance: Random) -> Actor:
    lead = chance.choice(records)
    rest_s = log_uniform(chance, 0.15, 3)
    gives_up = chance.uniform(0.0, 0.9)
    for record in records:
        for body in _keystrokes(record, chance.choice((1, 1, 2, 3, 6)), chance):
            gone_s = log_uniform(chance, 0.05, 1.5) if chance.random() < gives_up else None
            yield send(record, lead, chance, body, leave_after_s=gone_s)
            yield pause(chance, rest_s if chance.random() < 0.8 else 20 * rest_s)


def _keystrokes(record: Record, count: int, chance: Random) -> Iterator[dict[str, Any]]:
    """The text before the cursor as it gets longer; bodies whose end is a marker come once."""
    body = record["body"]
    prompt = body.get("prompt")
    if isinstance(prompt, str) and len(prompt) > 100 and not prompt.rstrip().endswith((">", "]")):
        missing = sorted((chance.randint(1, 40) for _ in range(count - 1)), reverse=True)
        for chars in missing:
            yield {**body, "prompt": prompt[:-chars]}
    yield dict(body)


def previews(records: Sequence[Record], chance: Random) -> Iterator[Start]:
    """Somebody puts in one document, or a few at once, and reads along."""
    lead = chance.choice(records)
    wordings = Wordings(records)
    at_s = 0.0
    left = list(records)
    while left:
        few = [left.pop() for _ in range(min(len(left), chance.choice((1, 1, 1, 2, 3, 5))))]
        made = job(few, lead, wordings, len(few), chance)
        if chance.random() < 0.5:
            yield at_s, single(made)
        else:
            yield from ((at_s + 0.1 * number, single([each])) for number, each in enumerate(made))
        at_s += pause(chance, log_uniform(chance, 15, 900)).seconds


# --- programs


def batch(records: Sequence[Record], size: int, chance: Random) -> Iterator[Start]:
    """Rows of one job, by one worker after the other, many at once, at a steady rate, or all in one go."""
    wordings = Wordings(records)
    rows = job(records, chance.choice(records), wordings, size, chance)
    if chance.random() < 0.08:
        rows = [row for row in rows for _ in range(chance.choice((2, 4, 8)))][: max(size, 8)]
    match chance.choice(("workers", "workers", "workers", "at_once", "steady", "trickle", "lumps")):
        case "workers":
            yield from _workers(rows, int(log_uniform(chance, 1, 65)), chance)
        case "at_once":
            yield from ((chance.uniform(0, 0.5), single([row])) for row in rows)
        case "steady":
            gap_s = log_uniform(chance, 0.02, 10)
            yield from ((gap_s * number, single([row])) for number, row in enumerate(rows))
        case "trickle":
            gap_s = log_uniform(chance, 5, max(6.0, min(600.0, _NIGHT_S / len(rows))))
            at_s = 0.0
            for row in rows:
                yield at_s, single([row])
                at_s += pause(chance, gap_s, chance.choice((0.05, 1.0))).seconds
        case _:
            yield 0.0, _lumps(rows, chance)


def _workers(rows: Sequence[Send], workers: int, chance: Random) -> Iterator[Start]:
    left = iter(rows)
    between_s = log_uniform(chance, 0.001, 3)

    def work() -> Actor:
        for row in left:
            yield row
            yield pause(chance, between_s)

    yield from ((chance.uniform(0, 0.3), work()) for _ in range(workers))


def _lumps(rows: Sequence[Send], chance: Random) -> Actor:
    """A few rows, then other work: the program writes to a database, or waits for its turn."""
    lump = chance.choice((2, 5, 10, 30))
    rest_s = log_uniform(chance, 5, 600)
    for number, row in enumerate(rows):
        if number and number % lump == 0:
            yield pause(chance, rest_s)
        yield row


def pipeline(records: Sequence[Record], chance: Random) -> Iterator[Start]:
    """Steps of tasks whose prompts have nothing in common but the program: a planner, its workers, a critic.

    Each step waits for the one before; tasks come one by one or several at once.
    """
    lead = chance.choice(records)
    left = list(records)
    between_s = log_uniform(chance, 0.01, 4)
    task_s = log_uniform(chance, 1, 300)
    at_s = 0.0
    while left:
        steps = [left.pop() for _ in range(min(len(left), chance.choice((1, 2, 3, 4, 6, 10))))]
        yield at_s, _steps(steps, lead if chance.random() < 0.7 else None, between_s, chance)
        at_s += chance.expovariate(1 / task_s)


def _steps(records: Sequence[Record], lead: Record | None, between_s: float, chance: Random) -> Actor:
    for record in records:
        for body in turns(record, chance.choice((4, 12))):
            yield send(record, lead or record, chance, body)
            yield pause(chance, between_s)


def session(calls: Sequence[Send], human: Sequence[bool], tool_s: Sequence[float | None], chance: Random) -> Actor:
    """Hops of an agent: a tool runs after each, a person answers where `human` says so."""
    works_s = log_uniform(chance, 0.02, 15)
    types_s = log_uniform(chance, 4, 120)
    simulated = chance.random() < 0.15
    for call, asks, measured_s in zip(calls, human, tool_s, strict=True):
        yield call
        if measured_s is not None:
            yield Wait(measured_s)
        elif asks and not simulated:
            yield pause(chance, types_s, by_person=True)
        else:
            yield pause(chance, works_s)


def recorded(sessions: Sequence[Record], chance: Random) -> Iterator[Start]:
    """Recorded agent sessions of one program: one after the other by one person, or several at once."""
    together = int(log_uniform(chance, 1, 24)) if chance.random() < 0.5 else 1
    gap_s = log_uniform(chance, 2, 600)
    at_s = 0.0
    for number, record in enumerate(sessions):
        yield at_s, _recorded(record, chance)
        at_s += pause(chance, gap_s if number % together == 0 else 0.3).seconds


def _recorded(record: Record, chance: Random) -> Actor:
    calls = [
        send(
            {
                **call,
                "headers": record["headers"],
                "workload": "mixed",
                "source": record["source"],
                "group": record["group"],
            },
            {"headers": record["headers"], "body": call["body"]},
            chance,
            in_session=True,
            output_tokens=call.get("output_tokens") or output_tokens(call, chance),
        )
        for call in record["calls"]
    ]
    human = [call["call_kind"] == "user_facing" for call in record["calls"]]
    return session(calls, human, [call.get("tool_s") for call in record["calls"]], chance)


def threads(records: Sequence[Record], chance: Random) -> Iterator[Start]:
    """Agents whose single calls were recorded: the hops that led to each are in its own history."""
    lead = chance.choice(records)
    gap_s = log_uniform(chance, 0.5, 300)
    at_s = 0.0
    for record in records:
        bodies = turns(record, chance.choice((3, 8, 24)))
        own = lead if chance.random() < 0.5 else record
        calls = [send(record, own, chance, body, kind=_kind(record, body, bodies)) for body in bodies]
        human = [_answered_by_a_person(body, later) for body, later in zip(bodies, [*bodies[1:], None], strict=True)]
        yield at_s, session(calls, human, [None] * len(calls), chance)
        at_s += pause(chance, gap_s).seconds


def _kind(record: Record, body: dict[str, Any], bodies: Sequence[dict[str, Any]]) -> str:
    return (record.get("call_kind") or "") if body is bodies[-1] else "tool_hop"


def _answered_by_a_person(body: dict[str, Any], later: dict[str, Any] | None) -> bool:
    """Whether the next call adds words of a user, where tools answer with messages of their own."""
    if later is None or not body.get("tools"):
        return False
    added = later["messages"][len(body["messages"]) :]
    return bool(added) and added[-1].get("role") == "user"
