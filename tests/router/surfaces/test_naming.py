"""What a body says of the conversation or task that it belongs to."""

from __future__ import annotations

import pytest

from router.surfaces.naming import session_of


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"metadata": {"session_id": "s1"}}, "session_id=s1"),
        ({"metadata": {"thread_id": "t1", "pipeline_id": "p1"}}, "pipeline_id=p1"),
        ({"metadata": {"user_id": "user_1f_account_ab_session_0b-9"}}, "session_id=0b-9"),
        ({"metadata": {"user_id": '{"device_id":"d","session_id":"0b-9"}'}}, "session_id=0b-9"),
        ({"litellm_session_id": "l1"}, "litellm_session_id=l1"),
        ({"conversation": "conv_1"}, "conversation=conv_1"),
        ({"conversation": {"id": "conv_1"}}, "conversation=conv_1"),
    ],
)
def test_a_session_is_found_where_clients_write_it(body: dict[str, object], found: str) -> None:
    assert session_of(body) == found


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"metadata": None},
        {"metadata": "s1"},
        {"metadata": {"session_id": 7, "thread_id": ""}},
        {"metadata": {"user_id": "somebody"}},
        {"metadata": {"user_id": "{broken"}},
        {"metadata": {"user_id": "[1]"}},
        {"metadata": {"user_id": '{"session_id": 5}'}},
        {"conversation": {"id": None}},
        {"litellm_session_id": []},
    ],
)
def test_what_is_no_session_is_none(body: dict[str, object]) -> None:
    assert session_of(body) == ""
