"""Addresses, URLs, names, lanes and classes."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ConfigDict, SecretStr, ValidationError, create_model

from classifiers.api import SYNONYMS, CallClass
from policies.api import Lane
from router.settings.fields import (
    Address,
    ClassName,
    Flag,
    HeaderName,
    Lanes,
    ListenAddress,
    Many,
    Name,
    Secret,
    ServerUrl,
    Weight,
)
from router.settings.scalars import Substituted
from router.settings.units import IN_FILE


def read(kind: Any, value: object) -> Any:
    """The value of a field of this kind in a file."""
    model = create_model("Section", __config__=ConfigDict(strict=True), value=(kind, ...))
    return getattr(model.model_validate({"value": value}, context=IN_FILE), "value")  # noqa: B009


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:8080", "127.0.0.1", 8080),
        ("[::1]:8080", "::1", 8080),
        ("[::]:0", "::", 0),
        ("localhost:65535", "localhost", 65535),
        ("gpu-box.lan:80", "gpu-box.lan", 80),
    ],
)
def test_an_address_is_host_and_port_and_reads_back(text: str, host: str, port: int) -> None:
    address = read(ListenAddress, text)
    assert address == Address(host=host, port=port)
    assert str(address) == text
    assert address.model_dump(mode="json") == text


@pytest.mark.parametrize(
    "value",
    [
        "8080",
        ":8080",
        "127.0.0.1",
        "127.0.0.1:",
        "22:22",
        "1:30:00",
        "::1:8080",
        "[127.0.0.1]:1",
        "[x]:1",
        "a b:1",
        "*:80",
        "127.0.0.1:99999",
        "127.0.0.1:-1",
        "127.0.0.1:8080\n",
        "http://127.0.0.1:80",
        "off",
        "",
        "300.1.1.1:80",
        8080,
        1.5,
        True,
        {"host": "127.0.0.1", "port": 1},
        ["127.0.0.1", 80],
    ],
)
def test_anything_else_is_no_address(value: object) -> None:
    with pytest.raises(ValidationError, match=r"expected HOST:PORT|a port up to 65535"):
        read(ListenAddress, value)


@pytest.mark.parametrize(
    "url",
    [
        "http://h",
        "https://h:8443",
        "http://127.0.0.1:8090/",
        "http://h:1/v1",
        "http://h:1/v1/",
        "http://[::1]:1",
        "http://a_b.c.:1",
    ],
)
def test_a_server_url_has_scheme_host_and_maybe_v1(url: str) -> None:
    assert read(ServerUrl, url) == url


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("127.0.0.1:8090", "expected http://HOST:PORT"),
        ("localhost:8090", "expected http://HOST:PORT"),
        ("HTTP://h", "expected http://HOST:PORT"),
        ("ftp://h", "expected http://HOST:PORT"),
        ("http://", "HOST is a name"),
        ("http://:80", "HOST is a name"),
        ("http://h:", "HOST is a name"),
        ("http://h:0", "HOST is a name"),
        ("http://a..b:1", "HOST is a name"),
        ("http://" + "a" * 64 + ":1", "HOST is a name"),
        ("http://bücher:1", "HOST is a name"),
        ("http://a b:1", "without spaces"),
        ("http://h\n:1", "without spaces"),
        ("http://h:99999", "a port of 1 to 65535"),
        ("http://h:x", "a port of 1 to 65535"),
        ("http://[::1:1", "brackets around an IPv6"),
        ("http://::1:8080", "expected"),
        ("http://user:pw@h:1", "use api_key"),
        ("http://token@h:1", "use api_key"),
        ("http://h:1/llm", "nothing after the port but /v1"),
        ("http://h:1/v1/chat/completions", "nothing after the port but /v1"),
        ("http://h:1?x=1", "nothing after the port but /v1"),
        ("http://h:1/v1#", "nothing after the port but /v1"),
        (8090, "string"),
        (None, "string"),
    ],
)
def test_anything_else_is_no_server_url(url: object, advice: str) -> None:
    with pytest.raises(ValidationError, match=advice):
        read(ServerUrl, url)


@pytest.mark.parametrize("name", ["a", "desk", "gpu-box.lan-8000", "0", "A_b", "no", "off", "0123", "a" * 64])
def test_a_name_is_letters_digits_and_a_few_signs(name: str) -> None:
    assert read(Name, name) == name


@pytest.mark.parametrize("name", ["", "-a", ".a", "a b", "a/b", "ü", "a\n", "a" * 65, 5, True, None])
def test_anything_else_is_no_name(name: object) -> None:
    with pytest.raises(ValidationError):
        read(Name, name)


def test_header_names_lose_their_case() -> None:
    assert read(HeaderName, "X-Team") == "x-team"
    for wrong in ("a b", "", "x:", "ü"):
        with pytest.raises(ValidationError):
            read(HeaderName, wrong)


@pytest.mark.parametrize("word", sorted(SYNONYMS))
def test_every_word_for_a_class_is_understood(word: str) -> None:
    assert read(ClassName, word) is SYNONYMS[word]
    assert read(ClassName, CallClass.MIXED) is CallClass.MIXED


@pytest.mark.parametrize("word", ["TTFT", "fast", "", 1, None, ["ttft"]])
def test_other_words_are_no_class(word: object) -> None:
    with pytest.raises(ValidationError, match="expected ttft, mixed or throughput"):
        read(ClassName, word)


@pytest.mark.parametrize(
    ("value", "lanes"),
    [
        ("any", (Lane.LATENCY, Lane.THROUGHPUT)),
        ("latency", (Lane.LATENCY,)),
        (["throughput", "latency"], (Lane.THROUGHPUT, Lane.LATENCY)),
        ((Lane.THROUGHPUT,), (Lane.THROUGHPUT,)),
    ],
)
def test_lanes_are_a_list_or_one_or_any(value: object, lanes: tuple[Lane, ...]) -> None:
    assert read(Lanes, value) == lanes


@pytest.mark.parametrize("value", [[], ["latency", "latency"], ["fast"], "fast", ["any"], None, 5, {"latency": 1}])
def test_other_lanes_are_refused(value: object) -> None:
    with pytest.raises(ValidationError):
        read(Lanes, value)


def test_a_list_fills_a_tuple_and_its_items_stay_strict() -> None:
    assert read(Many[Name], ["a", "b"]) == ("a", "b")
    for wrong in ([1], "ab", {"a": 1}, None):
        with pytest.raises(ValidationError):
            read(Many[Name], wrong)


def test_a_key_never_shows_and_must_fit_into_a_header() -> None:
    secret = read(Secret, "sk-1!")
    assert isinstance(secret, SecretStr)
    assert "sk-1" not in repr(secret)
    for wrong in ("", "sk 1", "sk-1\n", "schlüssel", 12):
        with pytest.raises(ValidationError) as caught:
            read(Secret, wrong)
        assert all(part not in str(caught.value.errors(include_input=False)) for part in ("sk", "schl"))


def test_numbers_and_booleans_may_come_from_variables() -> None:
    assert read(Flag, Substituted("true")) is True
    assert read(Weight, Substituted("2")) == 2.0
    for kind, wrong in (
        (Flag, "true"),
        (Flag, Substituted("yes")),
        (Weight, "2"),
        (Weight, Substituted("inf")),
        (Flag, 1),
    ):
        with pytest.raises(ValidationError):
            read(kind, wrong)
