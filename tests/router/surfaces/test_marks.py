"""By what related calls are recognised, as read from whole bodies of several APIs."""

from __future__ import annotations

from typing import Any

import pytest

from classifiers.marks import KEPT_MESSAGES, KEPT_TOOL_CALLS, Marks
from tests.router.surfaces.streams import read

SYSTEM = {"role": "system", "content": "You book flights. Today is day 7."}
QUESTION = {"role": "user", "content": "Find me a flight to Oslo."}
CALL = {"id": "c1", "type": "function", "function": {"name": "flights", "arguments": '{"to": "Oslo"}'}}
HOP = [
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "[SK7, SK9]"},
]
SCRATCHPAD = "Answer the question step by step, with the tools Search and Finish.\n" * 5 + "Question: who?\nThought 1:"


def marks(path: str = "/v1/chat/completions", **body: Any) -> Marks:
    found = read(path, {"model": "m", **body}).recognised_by()
    assert found is not None
    return found


def continues(later: Marks, earlier: Marks) -> bool:
    """As the router asks: is what ended the earlier call a border inside the later one?"""
    inside = {*later.borders[:-1], *later.lines}
    ends = {*earlier.borders[-1:], *earlier.ends}
    return bool(inside & ends)


def test_a_history_that_goes_on_is_recognised_by_its_borders() -> None:
    first = marks(messages=[SYSTEM, QUESTION])
    hop = marks(messages=[SYSTEM, QUESTION, *HOP])
    assert continues(hop, first)
    assert not continues(first, hop)
    assert hop.roles == "suat"


def test_the_same_call_again_does_not_continue_itself() -> None:
    assert not continues(marks(messages=[SYSTEM, QUESTION]), marks(messages=[SYSTEM, QUESTION]))


def test_another_question_after_the_same_examples_continues_nothing() -> None:
    examples = [QUESTION, {"role": "assistant", "content": "SK7"}]
    one = marks(messages=[SYSTEM, *examples, {"role": "user", "content": "To Rome."}])
    other = marks(messages=[SYSTEM, *examples, {"role": "user", "content": "To Bonn."}])
    assert not continues(other, one)
    assert (one.system, one.opening) == (other.system, other.opening)


def test_a_history_whose_oldest_messages_were_dropped_is_still_recognised() -> None:
    turns = [{"role": ("user", "assistant")[number % 2], "content": f"turn {number}"} for number in range(9)]
    more = [{"role": "assistant", "content": "so"}, {"role": "user", "content": "and?"}]
    assert continues(marks(messages=[SYSTEM, *turns[4:], *more]), marks(messages=[SYSTEM, *turns]))


def test_histories_that_differ_in_the_middle_of_a_message_are_two() -> None:
    def task(number: int) -> dict[str, str]:
        return {"role": "user", "content": f"{SCRATCHPAD} The number of the issue is {number}. {SCRATCHPAD}"}

    said = [{"role": "assistant", "content": "ls"}, {"role": "user", "content": "main.py"}]
    one, other = marks(messages=[SYSTEM, task(12345)]), marks(messages=[SYSTEM, task(67890)])
    hop = marks(messages=[SYSTEM, task(12345), *said])
    assert continues(hop, one)
    assert not continues(hop, other)
    assert one.opening == hop.opening != other.opening


def test_very_long_openings_that_differ_in_the_middle_are_two() -> None:
    one, other = ({"role": "user", "content": f"{'page ' * 9000}{number}{' page' * 9000}"} for number in (1, 2))
    assert marks(messages=[SYSTEM, one, *HOP]).opening != marks(messages=[SYSTEM, other, *HOP]).opening


def test_a_history_goes_on_whatever_the_clock_in_the_system_text_says() -> None:
    def at(now: str) -> dict[str, str]:
        return {"role": "system", "content": f"You book flights. It is {now}."}

    assert continues(marks(messages=[at("10:00:02"), QUESTION, *HOP]), marks(messages=[at("9:59:58"), QUESTION]))


def test_content_as_parts_has_the_borders_of_content_as_a_string() -> None:
    parts = {"role": "user", "content": [{"type": "text", "text": QUESTION["content"], "cache_control": {}}]}
    assert marks(messages=[SYSTEM, parts]).borders == marks(messages=[SYSTEM, QUESTION]).borders


def test_anthropic_tool_results_are_told_from_words_of_the_user() -> None:
    use = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "flights", "input": {"to": "Oslo"}}],
    }
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "[SK7]"}]}
    first = marks("/v1/messages", system="Be brief.", messages=[QUESTION], max_tokens=9)
    hop = marks("/v1/messages", system="Be brief.", messages=[QUESTION, use, result], max_tokens=9)
    assert continues(hop, first)
    assert hop.roles == "uat"
    assert len(hop.tool_calls) == 1


@pytest.mark.parametrize("more", [{}, {"tool_use_id": ""}, {"tool_use_id": None}])
def test_results_of_tools_without_an_id_have_none_in_common(more: dict[str, Any]) -> None:
    result = {"role": "user", "content": [{"type": "tool_result", "content": "[SK7]", **more}]}
    found = marks("/v1/messages", messages=[QUESTION, result], max_tokens=9)
    assert found.roles == "ut"
    assert found.tool_calls == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0},
        {"seed": 1},
        {"stop": "Observation:"},
        {"stop": ["\n\n"]},
        {"logprobs": True},
        {"tool_choice": "auto"},
        {"tool_choice": {"type": "function", "function": {"name": "x"}}},
        {"stream_options": {"include_usage": True}},
        {"suffix": "}"},
    ],
)
def test_calls_are_told_apart_by_the_fields_that_the_model_looks_at(fields: dict[str, Any]) -> None:
    found = marks(messages=[QUESTION], **fields)
    assert found.fields == marks(messages=[QUESTION], **fields).fields != marks(messages=[QUESTION]).fields == 0


def test_another_seed_is_the_same_field() -> None:
    assert marks(messages=[QUESTION], seed=1).fields == marks(messages=[QUESTION], seed=2).fields


def test_responses_are_recognised_item_by_item() -> None:
    made = {"type": "function_call", "call_id": "c1", "name": "flights", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "[SK7]"}
    first = marks("/v1/responses", input=[QUESTION])
    hop = marks("/v1/responses", input=[QUESTION, made, output])
    assert continues(hop, first)
    assert hop.roles == "uat"
    assert hop.tool_calls == marks(messages=[QUESTION, *HOP]).tool_calls


@pytest.mark.parametrize("result_lines", [1, 3, 200])
@pytest.mark.parametrize("form", ["prompt", "message"])
def test_one_text_that_grows_is_recognised(form: str, result_lines: int) -> None:
    def sent(text: str) -> Marks:
        if form == "prompt":
            return marks("/v1/completions", prompt=text)
        return marks(messages=[{"role": "user", "content": text}])

    grown = SCRATCHPAD + " I look.\nAction 1: Search[x]\n" + "row of a table\n" * result_lines + "Thought 2:"
    assert continues(sent(grown), sent(SCRATCHPAD))
    assert not continues(sent(SCRATCHPAD), sent(grown))


def test_a_chat_template_that_was_written_out_grows_as_well() -> None:
    prompt = "<|im_start|>user\n" + "words " * 60 + "<|im_end|>\n<|im_start|>assistant\n"
    grown = prompt + "Yes.<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n"
    assert continues(marks("/v1/completions", prompt=grown), marks("/v1/completions", prompt=prompt))


@pytest.mark.parametrize("ending", ["\nLabel:", "", "\nIs it good or bad?"])
def test_rows_with_the_same_examples_do_not_continue_each_other(ending: str) -> None:
    examples = "Review: it broke after a day\nLabel: bad\n" * 20
    rows = [f"{examples}Review: {text}{ending}" for text in ("fine", "it does what it says, more or less", "no!")]
    found = [marks("/v1/completions", prompt=row) for row in rows]
    assert not any(continues(later, earlier) for later in found for earlier in found)


def test_rows_of_a_template_share_its_ends_whatever_numbers_are_in_it() -> None:
    def row(number: int, text: str) -> Marks:
        head = f"Row {number}. Say in one word what the customer below wants, and nothing else at all:"
        tail = f"Answer with the number of the row ({number}) and that word, separated by a comma only."
        return marks(messages=[{"role": "user", "content": f"{head} {text} {tail}"}])

    one, other = row(7, "my card is lost"), row(1234, "where is my money")
    assert (one.head, one.tail, one.start, one.end) == (other.head, other.tail, other.start, other.end)
    assert one.head != one.tail
    assert one.borders != other.borders


def test_tools_and_system_are_marked_apart() -> None:
    tools = [{"type": "function", "function": {"name": "flights", "parameters": {}}}]
    plain, with_tools = marks(messages=[SYSTEM, QUESTION]), marks(messages=[SYSTEM, QUESTION], tools=tools)
    assert plain.tools == 0 != with_tools.tools
    assert plain.system == with_tools.system != 0
    assert marks(messages=[QUESTION]).system == 0


def test_the_number_of_marks_does_not_grow_with_the_call() -> None:
    turns = [QUESTION, *HOP] * 400
    long = marks(messages=turns)
    assert len(long.borders) == len(long.roles) == len(long.sizes) == KEPT_MESSAGES
    assert len(long.tool_calls) == KEPT_TOOL_CALLS
    assert len(marks("/v1/completions", prompt="line\n" * 100_000).lines) < 20


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{}]},
        {"messages": [{"role": "user", "content": None}]},
        {"messages": [{"role": 7, "content": [["\u00e9"], {"type": "text", "text": ""}]}]},
        {"messages": [{"role": "tool", "tool_call_id": 5, "content": [{"type": "tool_result", "tool_use_id": None}]}]},
    ],
)
def test_odd_messages_are_marked_too(body: dict[str, Any]) -> None:
    assert len(marks(**body).borders) == 1


@pytest.mark.parametrize("prompt", ["", " " * 500, "\n" * 500, [1, 2, 3], [], "a" * 300 + "\n" + " " * 300])
def test_odd_prompts_are_marked_too(prompt: object) -> None:
    assert marks("/v1/completions", prompt=prompt).borders == ()
