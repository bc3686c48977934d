"""What changed, and what a running router cannot take over."""

from __future__ import annotations

import pytest

from router.settings.diff import changed, restart_needed
from tests.router.settings.reading import settings, whole


def test_equal_settings_have_no_difference() -> None:
    text = "classes: {ttft: {max_wait: 2s}}\npolicy: {use: prefix_affinity, max_load_gap: 0.25}\n"
    assert changed(settings(text), settings(text)) == ()


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("classes: {ttft: {max_wait: 2s, slo: {tpot: 1s}}}", ("classes.ttft.slo.tpot", "classes.ttft.max_wait")),
        ("models: {chat: {desk: q}}", ("models.chat",)),
        ("policy: {use: prefix_affinity, max_load_gap: 1}", ("policy.use", "policy.max_load_gap")),
        ("headers: {class: [x]}", ("headers.class",)),
        ("admin: null", ("admin",)),
    ],
)
def test_changed_keys_are_named_in_the_order_of_the_file(text: str, keys: tuple[str, ...]) -> None:
    assert changed(settings(""), settings(text)) == keys


def test_a_new_key_of_a_backend_is_a_change_and_is_not_shown() -> None:
    old, new = (whole(f"backends: [{{name: a, url: 'http://h', api_key: {key}}}]") for key in ("k1", "k2"))
    assert changed(old, new) == ("backends[0].api_key",)


def test_another_number_of_backends_is_one_change() -> None:
    old = whole("backends: [{name: a, url: 'http://h'}]")
    new = whole("backends: [{name: a, url: 'http://h'}, {name: b, url: 'http://i'}]")
    assert changed(old, new) == ("backends",)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("listen: 127.0.0.1:9", ("listen",)),
        ("listen: 0.0.0.0:8080\nadmin: null\ninsecure: true", ("listen", "admin")),
        ("limits: {max_header: 1MiB, max_body: 1MiB}", ("limits.max_header",)),
        ("line: {ageing: 1s}\nexpose: none\nlog: {level: debug}", ()),
    ],
)
def test_only_sockets_and_what_they_were_built_with_need_a_restart(text: str, keys: tuple[str, ...]) -> None:
    assert restart_needed(settings(""), settings(text)) == keys
