"""What may be shown of settings."""

from __future__ import annotations

import json

import yaml

from router.settings.load import parse, redacted
from tests.router.settings.reading import settings, whole


def test_keys_of_backends_are_hidden() -> None:
    shown = redacted(whole("backends: [{name: a, url: 'http://h:1', api_key: '${KEY}'}]", KEY="s3cret"))
    assert shown["backends"][0]["api_key"] == "**********"
    assert "s3cret" not in json.dumps(shown)


def test_what_looks_like_a_secret_in_rules_is_hidden_and_numbers_of_tokens_are_not() -> None:
    found = settings(
        "classify: {rules: [{if: {header: {x-auth-token: s3cret, x-team: a}, prompt_tokens: '>5'}, then: ttft}]}"
    )
    conditions = redacted(found)["classify"]["rules"][0]["if"]
    assert conditions == {"header": {"x-auth-token": "**********", "x-team": "a"}, "prompt_tokens": ">5"}


def test_names_of_models_are_no_secrets() -> None:
    assert redacted(settings("models: {token: {desk: secret}}"))["models"] == {"token": {"desk": "secret"}}


def test_values_read_as_in_the_file_and_can_be_read_back() -> None:
    found = settings(
        "classes: {ttft: {max_wait: 2s, slo: {tpot: 75ms}}}\nlimits: {max_body: 64MiB}\nlisten: '[::1]:80'\n"
        "policy: {use: prefix_affinity, max_load_gap: 0.25}\nheaders: {class: [X-Lane]}\n"
        "classify: {rules: [{if: {tools: true}, then: agent}]}\n"
    )
    shown = redacted(found)
    assert shown["listen"] == "[::1]:80"
    assert shown["classes"]["ttft"]["max_wait"] == "2s"
    assert shown["classes"]["throughput"]["keep_free"] == {"latency": 1}
    assert shown["limits"]["max_body"] == "64MiB"
    assert parse(yaml.safe_dump(shown), "shown", {}) == found
