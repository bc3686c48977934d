"""Headers give the family of a program."""

from __future__ import annotations

import pytest

from classifiers.clients import Client, client_of


@pytest.mark.parametrize(
    ("headers", "family"),
    [
        ({"user-agent": "Mozilla/5.0 (Macintosh) AppleWebKit/605.1"}, "browser"),
        ({"user-agent": "x/1", "origin": "https://chat.example"}, "browser"),
        ({"user-agent": "MyEditor VSCode/1.9"}, "app"),
        ({"user-agent": "node-fetch"}, "javascript"),
        ({"user-agent": "python-requests/2.32"}, "script"),
        ({"user-agent": "AsyncThing/Python 1"}, "asynchronous"),
        ({"x-stainless-async": "async:asyncio"}, "asynchronous"),
        ({"x-title": "Team Chat"}, "for_people"),
        ({"x-title": "Nightly evaluation"}, "job"),
        ({"x-title": "support agent"}, "flow"),
        ({"user-agent": "OpenAI/JS 4.73.0"}, "javascript"),
        ({"user-agent": "Bun/1.1"}, "javascript"),
        ({"user-agent": "curl/8.5.0"}, "script"),
        ({"user-agent": "Dart/3.2 (dart:io)"}, "app"),
        ({"user-agent": "swe-bench-runner/2"}, "job"),
        ({"x-title": "LibreChat"}, "for_people"),
        ({"x-title": "Open WebUI"}, "for_people"),
        ({"x-title": "llm.nvim"}, "for_people"),
        ({"x-title": "Tabby"}, "for_people"),
        ({"x-title": "callbot"}, "for_people"),
        ({"x-title": "nightly-jobs"}, "job"),
        ({"x-title": "crm_etl"}, "job"),
        ({"http-referer": "https://batch_eval.example"}, "job"),
        ({"x-title": "LangGraph"}, "flow"),
    ],
)
def test_families(headers: dict[str, str], family: str) -> None:
    assert getattr(client_of(headers), family) is True


def test_who_says_nothing_belongs_to_none() -> None:
    assert client_of({}) == Client()
    assert client_of({"x-stainless-async": "false", "user-agent": "Something/1.0"}) == Client()


@pytest.mark.parametrize(
    ("headers", "family"),
    [
        ({"http-referer": "https://mine.netlify.app"}, "job"),
        ({"http-referer": "http://localhost:3000/index.html"}, "job"),
        (
            {"user-agent": "Mozilla/5.0 (X11; Ubuntu; Linux x86_64) Gecko/20100101 Firefox/128.0"},
            "javascript",
        ),
        ({"user-agent": "standart/1.0"}, "app"),
        ({"x-title": "Workbench"}, "job"),
        ({"x-title": "medical retrieval"}, "job"),
        ({"x-title": "build"}, "for_people"),
        ({"x-title": "both tables of credits"}, "for_people"),
        ({"x-title": "photographs"}, "flow"),
    ],
)
def test_a_part_of_a_word_is_no_family(headers: dict[str, str], family: str) -> None:
    assert getattr(client_of(headers), family) is False
