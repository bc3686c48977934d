"""Calls that look as if one program had written them, made of labelled calls that differ in their wording.

The labelled calls of a source are noisy on purpose: several wordings, models and headers. A job, a chat or a session
has one of each, so the calls of one take their envelope and wording from one of them, the lead, and their matter from
the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final

from bench.judgement.virtual import Send
from classifiers.api import CallClass

Record = Mapping[str, Any]

_MATTER: Final = frozenset({"messages", "prompt", "input", "suffix", "tools", "functions", "stop", "response_format"})
"""Fields that belong to the text; the others to the program that sends it."""
_CONTAINERS: Final = frozenset({"messages", "prompt", "input"})
"""Where the text is tells the path."""
_SHORTEST_WORDING: Final = 12
_ALIKE: Final = 2
"""Rows beside it that must begin (or end) in the same way before that is taken for wording."""
_CHARS_PER_TOKEN: Final = 4


def output_tokens(record: Record, chance: Random) -> int:
    """Of its answer: of the recorded one, or a guess over three orders of magnitude."""
    chars = record.get("reference_output_chars")
    if chars:
        return max(1, int(chars * chance.uniform(0.7, 1.6) / _CHARS_PER_TOKEN))
    return max(1, int(chance.lognormvariate(4.5, 1.2)))


def headers_of(record: Record) -> dict[str, str]:
    """Without the id of one request, which no second call has."""
    return {name.lower(): value for name, value in record["headers"].items() if name.lower() != "x-request-id"}


def send(record: Record, lead: Record, chance: Random, body: dict[str, Any] | None = None, **fields: Any) -> Send:
    """`record` as the program would send it that sent `lead`; `body` in place of its own."""
    own = record["body"] if body is None else body
    envelope = {name: value for name, value in lead["body"].items() if name not in _MATTER}
    matter = {name: value for name, value in own.items() if name in _MATTER}
    order = lead["body"] if lead["body"].keys() >= matter.keys() else {**envelope, **matter}
    every = {**envelope, **matter}
    given: dict[str, Any] = {
        "label": CallClass(record["workload"]),
        "source": record["source"],
        "group": record.get("group") or record["id"],
        "kind": record.get("call_kind") or "",
        "output_tokens": output_tokens(record, chance),
        **fields,
    }
    path = record["path"] if own.keys() & _CONTAINERS == record["body"].keys() & _CONTAINERS else lead["path"]
    return Send(
        path=path, headers=headers_of(lead), body={name: every[name] for name in order if name in every}, **given
    )


def newest_text(record: Record) -> str | None:
    """The text that changes from row to row: of the last message, or the prompt; None where it is no plain text."""
    body = record["body"]
    messages = body.get("messages")
    text = messages[-1].get("content") if messages else body.get("prompt", body.get("input"))
    return text if isinstance(text, str) else None


def with_text(record: Record, text: str) -> dict[str, Any]:
    """Its body, with another newest text."""
    body = dict(record["body"])
    if body.get("messages"):
        body["messages"] = [*body["messages"][:-1], {**body["messages"][-1], "content": text}]
    else:
        body["prompt" if "prompt" in body else "input"] = text
    return body


class Wordings:
    """What the rows of one source begin and end with when they share an instruction: found, not known."""

    def __init__(self, records: Sequence[Record]) -> None:
        texts = [text for record in records if (text := newest_text(record)) is not None]
        self._heads = _shared(sorted(texts))
        self._tails = {text[::-1]: count for text, count in _shared(sorted(text[::-1] for text in texts)).items()}

    def parts(self, text: str) -> tuple[str, str, str]:
        """Head, matter, tail; head and tail may be empty."""
        head, tail = self._heads.get(text, 0), self._tails.get(text, 0)
        if head + tail >= len(text):
            head = tail = 0
        return text[:head], text[head : len(text) - tail], text[len(text) - tail :]


def _shared(texts: Sequence[str]) -> dict[str, int]:
    """For each of these sorted texts the characters that at least `_ALIKE` others begin with as well."""
    found = {}
    for index, text in enumerate(texts):
        best = 0
        for low in range(max(0, index - _ALIKE), min(index, len(texts) - 1 - _ALIKE) + 1):
            best = max(best, _common(texts[low], texts[low + _ALIKE]))
        cut = max(text.rfind(border, 0, best) for border in " \n") + 1 if best < len(text) else 0
        found[text] = cut if cut >= _SHORTEST_WORDING else 0
    return found


def _common(one: str, other: str) -> int:
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count


def varied(text: str, chance: Random) -> str:
    """Another matter of the same kind: some words in its middle are gone or stand twice."""
    words = text.split(" ")
    if len(words) < 4:
        return f"{text} {chance.randrange(1000)}"
    first = chance.randrange(1, len(words) - 2)
    count = chance.randint(1, max(1, len(words) // 4))
    middle = [] if chance.random() < 0.5 else words[first : first + count] * 2
    return " ".join([*words[:first], *middle, *words[first + count :]])


def job(records: Sequence[Record], lead: Record, wordings: Wordings, size: int, chance: Random) -> list[Send]:
    """Rows of one batch job: the wording of the lead around the matter of `size` rows, some of them varied."""
    text = newest_text(lead)
    sends = []
    for number in range(size):
        record = records[number % len(records)]
        matter = newest_text(record)
        if text is None or matter is None:
            sends.append(send(record, lead, chance))
            continue
        head, _, tail = wordings.parts(text)
        matter = wordings.parts(matter)[1]
        if number >= len(records):
            matter = varied(matter, chance)
        sends.append(send(record, lead, chance, with_text(lead, head + matter + tail)))
    return sends


def turns(record: Record, most: int) -> list[dict[str, Any]]:
    """The bodies that a client had sent on the way to this one: its messages up to each answer, at most `most` in all.

    Examples in front of a question look the same; whoever calls knows which of the two it is.
    """
    body = record["body"]
    messages = body.get("messages") or []
    ends = [
        index
        for index, message in enumerate(messages)
        if index
        and message.get("role") == "assistant"
        and messages[index - 1].get("role") not in ("assistant", "system")
    ]
    earlier = [{**body, "messages": messages[:end]} for end in ends]
    return [*earlier, body][-most:]
