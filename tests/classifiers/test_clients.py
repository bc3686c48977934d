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
    ],
)
def test_families(headers: dict[str, str], family: str) -> None:
    assert getattr(client_of(headers), family) is True


def test_who_says_nothing_belongs_to_none() -> None:
    assert client_of({}) == Client()
    assert client_of({"x-stainless-async": "false", "user-agent": "Something/1.0"}) == Client()
