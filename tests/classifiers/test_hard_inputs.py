"""Calls that are hard to read, from their bytes to their verdict: no error, no text where there is none, no work that
grows faster than the call.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from classifiers.api import CallClass, Features, Source
from classifiers.chain import Chain
from router.errors import BadRequest
from router.surfaces import find, read_call
from tests.classifiers.shipped import CHAIN, JUDGED

CHAT = "/v1/chat/completions"
IMAGE = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUg" * 20_000
"""440 KB: a hundred thousand tokens, if it were text."""
DEEPEST = 800
"""Levels of JSON that are still read; more than a thousand are refused."""

GREETINGS = {
    "Arabic": "مرحبا، هل يمكنك أن تشرح لي لماذا السماء زرقاء؟",
    "Bengali": "হ্যালো, আকাশ কেন নীল তা কি আমাকে বুঝিয়ে বলতে পারেন?",
    "Chinese": "你好，你能给我解释一下为什么天空是蓝色的吗？",
    "Czech": "Ahoj, můžeš mi vysvětlit, proč je obloha modrá?",
    "Dutch": "Hallo, kun je me uitleggen waarom de lucht blauw is?",
    "English": "Hello, can you explain to me why the sky is blue?",
    "Finnish": "Hei, voitko selittää minulle, miksi taivas on sininen?",
    "French": "Bonjour, peux-tu m'expliquer pourquoi le ciel est bleu ?",
    "German": "Hallo, kannst du mir erklären, warum der Himmel blau ist?",
    "Greek": "Γεια σου, μπορείς να μου εξηγήσεις γιατί ο ουρανός είναι γαλάζιος;",
    "Hebrew": "שלום, אפשר להסביר לי למה השמיים כחולים?",
    "Hindi": "नमस्ते, क्या आप मुझे समझा सकते हैं कि आसमान नीला क्यों होता है?",
    "Italian": "Ciao, puoi spiegarmi perché il cielo è blu?",
    "Japanese": "こんにちは、空がなぜ青いのか説明してもらえますか？",
    "Korean": "안녕하세요, 하늘이 왜 파란지 설명해 주실 수 있나요?",
    "Polish": "Cześć, czy możesz mi wyjaśnić, dlaczego niebo jest niebieskie?",
    "Portuguese": "Olá, você pode me explicar por que o céu é azul?",
    "Russian": "Привет, можешь объяснить мне, почему небо голубое?",
    "Spanish": "Hola, ¿puedes explicarme por qué el cielo es azul?",
    "Swahili": "Habari, unaweza kunieleza kwa nini anga ni la bluu?",
    "Thai": "สวัสดี ช่วยอธิบายให้หน่อยได้ไหมว่าทำไมท้องฟ้าถึงเป็นสีฟ้า",
    "Turkish": "Merhaba, gökyüzünün neden mavi olduğunu bana açıklar mısın?",
    "Ukrainian": "Привіт, можеш пояснити мені, чому небо блакитне?",
    "Vietnamese": "Xin chào, bạn có thể giải thích cho tôi tại sao bầu trời màu xanh không?",
}


def raw(body: object) -> bytes:
    # orjson writes no more than 254 levels.
    return body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode("utf-8", "surrogatepass")


def call_of(body: object, path: str = CHAT) -> Features:
    return read_call(find("POST", path), raw(body), {"content-type": "application/json"})


def judge(features: Features) -> None:
    """Every voice speaks without an error, and the model's probabilities are some."""
    verdict = CHAIN.classify(features)
    assert 0 <= verdict.confidence <= 1
    assert verdict.reasons
    assert all(reason.isascii() and reason.isprintable() for reason in verdict.reasons)
    CHAIN.explain(features)
    probabilities = JUDGED.probabilities(features)
    assert math.fsum(probabilities) == pytest.approx(1.0)
    assert all(0 <= share <= 1 for share in probabilities)


def chat(*messages: object, **more: object) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), **more}


def user(content: object) -> dict[str, Any]:
    return {"role": "user", "content": content}


def nested(depth: int, key: str = "content") -> Any:
    value: Any = [{"type": "text", "text": "deep"}]
    for _ in range(depth // 2):
        value = [{"type": "tool_result", key: value}]
    return value


TOOL_CALL = {"id": "c", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}

HARD: dict[str, tuple[str, Any]] = {
    "content as parts": (CHAT, chat(user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]))),
    "null content": (CHAT, chat(user("hi"), {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]})),
    "no content": (CHAT, chat({"role": "user"})),
    "empty message": (CHAT, chat({})),
    "empty text": (CHAT, chat(user(""))),
    "only white space": (CHAT, chat(user(" \n\t\n "))),
    "empty parts": (CHAT, chat(user([]), user([{}]), user([None, 5, "x"]))),
    "arguments that are objects": (
        CHAT,
        chat(user("x"), {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": [1]}}}]}),
    ),
    "tool calls that are none": (CHAT, chat(user("x"), {"role": "assistant", "tool_calls": {"a": 1}})),
    "a tool that is a string": (CHAT, chat(user("x"), tools=["search", None, 7])),
    "tools that are an object": (CHAT, chat(user("x"), tools={"name": "f"})),
    "roles that are none": (CHAT, chat({"role": 5, "content": "x"}, {"role": None, "content": "y"})),
    "an unknown role": (CHAT, chat({"role": "wizard", "content": "x"})),
    "numbers as text": (CHAT, chat(user("x"), temperature="0.7", top_p="x", max_tokens="many", n="2")),
    "numbers beyond any": (CHAT, b'{"messages":[{"role":"user","content":"x"}],"temperature":1e308,"seed":-1e308}'),
    "digits without end": (CHAT, b'{"messages":[{"role":"user","content":"x"}],"temperature":' + b"9" * 400 + b"}"),
    "not a number": (CHAT, b'{"messages":[{"role":"user","content":"x"}],"temperature":NaN,"top_p":Infinity}'),
    "limits below zero": (CHAT, chat(user("x"), max_tokens=-1, n=-3, temperature=-2)),
    "stop as a number": (CHAT, chat(user("x"), stop=7)),
    "stop as an object": (CHAT, chat(user("x"), stop={"a": "b"})),
    "stop with all sorts": (CHAT, chat(user("x"), stop=["", None, 3, "\n", "x" * 10_000])),
    "true everywhere": (CHAT, chat(user("x"), temperature=True, top_p=False, stop=True, tool_choice=True, seed=True)),
    "settings that are objects": (CHAT, chat(user("x"), metadata=[1], user={}, stream_options=7, response_format=[])),
    "half a character": (CHAT, b'{"messages":[{"role":"user","content":"cut \\ud83d"}]}'),
    "half characters everywhere": (
        CHAT,
        b'{"messages":[{"role":"system","content":"\\udc00"},{"role":"user","content":"\\ud83d\\n\\n\\ud83d: "}]}',
    ),
    "zeros": (CHAT, chat(user("\0\0\0\n\0"))),
    "line ends alone": (CHAT, chat(user("\n" * 5000))),
    "nothing but marks": (CHAT, chat(user("```###---===" * 500))),
    "wide letters": (CHAT, chat(user("\uff41\uff42\u200b\u202e\ufeff" * 100))),
    "emoji": (CHAT, chat(user("👩‍👩‍👧‍👦" * 200))),
    "token ids": ("/v1/completions", {"model": "m", "prompt": [1, 2, 3, 40_000]}),
    "many prompts of token ids": ("/v1/completions", {"model": "m", "prompt": [[1, 2], [3]]}),
    "an empty prompt": ("/v1/completions", {"model": "m", "prompt": ""}),
    "no prompt": ("/v1/completions", {"model": "m"}),
    "empty prompts": ("/v1/completions", {"model": "m", "prompt": ["", ""]}),
    "a prompt of all sorts": ("/completion", {"prompt": [1, "text", {"prompt_string": "x", "multimodal_data": []}]}),
    "a suffix that is no text": ("/v1/completions", {"prompt": "def f(", "suffix": 7}),
    "input items": ("/v1/responses", {"input": [{"role": "user", "content": [{"type": "input_text", "text": "x"}]}]}),
    "a call and its output": (
        "/v1/responses",
        {"input": [{"type": "function_call", "arguments": "{}"}, {"type": "function_call_output", "output": "7"}]},
    ),
    "system as parts": (
        "/v1/messages",
        {"system": [{"type": "text", "text": "be brief"}], "messages": [user([{"type": "tool_result"}])]},
    ),
    "images of ollama": ("/api/chat", {"messages": [{"role": "user", "content": "what?", "images": [IMAGE, IMAGE]}]}),
    "a bare ollama call": ("/api/generate", {"model": "m"}),
    "deep content": (CHAT, chat(user(nested(DEEPEST)))),
    "deep arguments": (
        CHAT,
        chat({"role": "assistant", "function_call": {"name": "f", "arguments": nested(DEEPEST, "x")}}),
    ),
    "a deep tool": (CHAT, chat(user("x"), tools=[{"function": {"parameters": nested(DEEPEST, "properties")}}])),
}


@pytest.mark.parametrize("name", HARD)
def test_it_is_read_and_judged(name: str) -> None:
    path, body = HARD[name]
    for stream in (False, True):
        asked = body if isinstance(body, bytes) else {**body, "stream": stream}
        judge(call_of(asked, path))


@pytest.mark.parametrize("language", GREETINGS)
def test_a_question_in_any_language_is_read(language: str) -> None:
    text = GREETINGS[language]
    features = call_of(chat(user(text), stream=True))

    judge(features)
    assert len(text) / 8 < features.last_tokens < len(text)
    assert CHAIN.classify(features).call_class is CallClass.TTFT


PICTURES: dict[str, list[dict[str, Any]]] = {
    "openai": [{"type": "image_url", "image_url": {"url": IMAGE}}],
    "openai, as text": [{"type": "image_url", "image_url": IMAGE}],
    "anthropic": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE}}],
    "audio": [{"type": "input_audio", "input_audio": {"data": IMAGE, "format": "wav"}}],
    "file": [{"type": "file", "file": {"filename": "a.pdf", "file_data": IMAGE}}],
    "in a result": [{"type": "tool_result", "content": [{"type": "image", "source": {"data": IMAGE}}]}],
}


@pytest.mark.parametrize("kind", PICTURES)
def test_the_size_of_a_picture_is_not_taken_for_text(kind: str) -> None:
    small: list[dict[str, Any]] = json.loads(json.dumps(PICTURES[kind]).replace(IMAGE, IMAGE[:40]))
    large, little = (
        call_of(chat(user([{"type": "text", "text": "what is this?"}, *parts]), stream=True))
        for parts in (PICTURES[kind], small)
    )

    assert large.media == 1
    assert large.prompt_tokens == little.prompt_tokens < 30
    assert large.shape == little.shape
    assert CHAIN.classify(large) == CHAIN.classify(little)


def _steps(body: bytes, path: str) -> int:
    """Lines of Python that reading and judging take: what grows with a call shows here, on any machine."""
    route, count = find("POST", path), 0

    def line(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        CHAIN.classify(read_call(route, body, {}))
    finally:
        sys.settrace(before)
    return count


LONG_TEXT = "The train to the coast leaves at seven, and nobody has packed yet. "
GROWING: dict[str, Callable[[int], Any]] = {
    "messages": lambda count: chat(*[user("hi there"), {"role": "assistant", "content": "yes"}] * count),
    "empty messages": lambda count: chat(*[{}] * count),
    "parts": lambda count: chat(user([{"type": "text", "text": "word"}] * count)),
    "levels": lambda count: chat(user(nested(count))),
    "tools": lambda count: chat(user("x"), tools=[{"type": "function", "function": {"name": "f" * 30}}] * count),
    "tool calls": lambda count: chat({"role": "assistant", "tool_calls": [TOOL_CALL] * count}, user("go on")),
    "tool results": lambda count: chat(*[{"role": "tool", "content": "42"}] * count),
    "pictures": lambda count: chat(user([{"type": "image_url", "image_url": {"url": "data:,"}}] * count)),
    "stops": lambda count: chat(user("x"), stop=["\n"] * count),
    "fields": lambda count: chat(user("x"), **{f"field{number}": number for number in range(count)}),
    "lines": lambda count: chat(user("- item: 7\n" * count)),
    "words": lambda count: chat(user("why " * count)),
    "marks": lambda count: chat(user("```\n" * count)),
    "white space": lambda count: chat(user(" " * count)),
    "wide words": lambda count: chat(user("ночь " * count)),
    "system lines": lambda count: chat({"role": "system", "content": "- be kind\n" * count}, user("x")),
}


@pytest.mark.parametrize("what", GROWING)
def test_twice_as_much_is_at_most_twice_the_work(what: str) -> None:
    small, large = (_steps(raw(GROWING[what](count)), CHAT) for count in (200, 800))

    assert large <= 4 * small


@pytest.mark.parametrize("what", ["messages", "empty messages", "parts", "tool calls", "tool results", "pictures"])
def test_more_than_any_conversation_has_is_not_gone_through(what: str) -> None:
    many, more = (_steps(raw(GROWING[what](count)), CHAT) for count in (10_000, 40_000))

    assert more <= 1.1 * many


@pytest.mark.parametrize("what", ["lines", "words", "marks", "white space", "wide words", "system lines"])
def test_a_long_text_is_looked_at_no_longer_than_a_page(what: str) -> None:
    page, book = (_steps(raw(GROWING[what](count)), CHAT) for count in (2_000, 100_000))

    assert book <= 1.1 * page


@pytest.mark.parametrize("text", [LONG_TEXT, "в лес", '{"a": [1, 2]},\n', "x", "長い文章。"])
def test_a_megabyte_is_read_and_judged(text: str) -> None:
    features = call_of(chat(user(text * (2**20 // len(text.encode())))))

    judge(features)
    assert features.prompt_tokens > 2**20 / 40


def test_no_text_is_kept() -> None:
    secret = "xq7-marzipan-elephant"
    message = f"{secret} please summarise: {secret}\n\n{secret}: {secret}\n" * 20
    features = call_of(
        chat(
            {"role": "system", "content": message},
            user(message),
            {"role": "assistant", "content": message},
            user(message),
            tools=[{"function": {"name": secret}}],
            stop=[secret],
            user=secret,
            metadata={"a": secret},
        )
    )

    assert secret not in repr(features)
    assert secret not in repr(CHAIN.explain(features))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
TEXTS = st.text(max_size=60) | st.sampled_from([*GREETINGS.values(), "a: b\n\n", "```", "\ud83d", "{", "1. x\n2. y"])
PARTS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["text", "image_url", "tool_use", "tool_result", "thinking"]) | JSON,
            "text": TEXTS | JSON,
            "content": TEXTS | JSON,
            "input": JSON,
            "source": JSON,
        },
    )
    | JSON,
    max_size=3,
)
MESSAGE = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["system", "user", "assistant", "tool", "developer"]) | JSON,
        "content": TEXTS | PARTS | JSON,
        "tool_calls": st.lists(st.fixed_dictionaries({"function": JSON | st.just({"name": "f", "arguments": "{}"})}))
        | JSON,
        "name": JSON,
        "images": JSON,
    },
)
BODY = st.fixed_dictionaries(
    {
        "messages": st.lists(MESSAGE, min_size=1, max_size=5),
        "prompt": TEXTS | JSON,
        "input": TEXTS | PARTS | JSON,
    },
    optional={
        "query": TEXTS,
        "documents": st.lists(TEXTS) | JSON,
        "system": TEXTS | JSON,
        "instructions": TEXTS | JSON,
        "suffix": TEXTS | JSON,
        "tools": st.lists(JSON, max_size=3) | JSON,
        "tool_choice": JSON,
        "stream": st.booleans() | JSON,
        "stream_options": JSON,
        "response_format": JSON,
        "temperature": JSON,
        "top_p": JSON,
        "seed": JSON,
        "stop": st.lists(TEXTS | JSON, max_size=3) | JSON,
        "n": st.integers(-2, 9) | JSON,
        "max_tokens": st.integers(-2, 9000) | JSON,
        "options": JSON,
        "logprobs": JSON,
        "metadata": JSON,
        "user": JSON,
    },
)
PATHS = (
    CHAT,
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/embeddings",
    "/v1/rerank",
    "/api/chat",
    "/api/generate",
    "/completion",
    "/infill",
    "/tokenize",
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(PATHS), BODY | st.dictionaries(st.text(max_size=8), JSON, max_size=5))
def test_any_object_that_an_api_takes_gets_a_verdict(path: str, body: dict[str, Any]) -> None:
    try:
        features = call_of(json.dumps(body).encode(), path)
    except BadRequest:
        return
    judge(features)


def test_a_chain_without_a_model_judges_all_of_this_too() -> None:
    for path, body in HARD.values():
        verdict = Chain().classify(call_of(body, path))
        assert verdict.source in (Source.BUILTIN, Source.DEFAULT)
