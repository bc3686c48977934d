"""Settings from URLs alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.settings.command_line import from_urls
from router.settings.fields import Address
from router.settings.load import SettingsError


def names(*urls: str) -> list[str]:
    return [backend.name for backend in from_urls(urls).backends]


def test_urls_are_enough() -> None:
    found = from_urls(["http://127.0.0.1:8090", "http://gpu:8000/v1"])
    assert [(backend.name, backend.url, backend.lane) for backend in found.backends] == [
        ("local-8090", "http://127.0.0.1:8090", None),
        ("gpu-8000", "http://gpu:8000/v1", None),
    ]
    assert (str(found.listen), str(found.admin)) == ("127.0.0.1:8080", "127.0.0.1:8081")


def test_names_come_from_host_and_port() -> None:
    assert names("http://localhost:1", "http://[::1]:2", "https://llm.example.org", "http://10.0.0.5:8000") == [
        "local-1",
        "local-2",
        "llm.example.org",
        "10.0.0.5-8000",
    ]
    assert names("http://[fe80::1]:8000", "http://_x:1") == ["fe80-1-8000", "x-1"]


def test_names_differ_even_where_servers_look_alike() -> None:
    assert names("http://h:1", "http://h:1/v1", "http://h:1/") == ["h-1", "h-1-2", "h-1-3"]
    assert names("http://localhost:1", "http://127.0.0.1:1") == ["local-1", "local-1-2"]


def test_the_scheme_may_be_left_out() -> None:
    assert from_urls(["127.0.0.1:8090"]).backends[0].url == "http://127.0.0.1:8090"


@pytest.mark.parametrize("port", [8080, 8081])
def test_a_server_on_the_usual_port_of_the_router_makes_it_move(port: int) -> None:
    found = from_urls([f"http://localhost:{port}"])
    assert (str(found.listen), str(found.admin)) == ("127.0.0.1:8088", "127.0.0.1:8089")


def test_addresses_may_be_given() -> None:
    found = from_urls(["http://h:1"], listen=Address(host="127.0.0.2", port=80), admin=Address(host="::1", port=0))
    assert (str(found.listen), str(found.admin)) == ("127.0.0.2:80", "[::1]:0")


def test_to_listen_for_others_without_keys_has_to_be_said() -> None:
    with pytest.raises(SettingsError, match=r"--listen: others than this machine .* --insecure"):
        from_urls(["http://h:1"], listen="0.0.0.0:80")
    assert str(from_urls(["http://h:1"], listen="0.0.0.0:80", insecure=True).listen) == "0.0.0.0:80"


def test_a_unix_socket_is_named_after_its_file() -> None:
    (found,) = from_urls(["unix:/run/llama.sock"]).backends
    assert (found.name, found.url, found.socket_path) == ("llama", "unix:/run/llama.sock", "/run/llama.sock")


def test_each_wrong_url_is_told_by_its_number_and_never_repeated() -> None:
    with pytest.raises(SettingsError) as caught:
        from_urls(["http://ok:1", "http://u:s3cret@h:1", "ftp://h", "http://h:1/llm", "http://[x"])
    assert str(caught.value).splitlines() == [
        "URL 2: credentials do not belong in a URL, which is shown in logs; use api_key",
        "URL 3: expected http://HOST:PORT, https://HOST:PORT or unix:/PATH",
        "URL 4: expected nothing after the port but /v1; calls keep their own path and query",
        "URL 5: expected a port of 1 to 65535, and brackets around an IPv6 address",
    ]


def test_no_url_is_refused() -> None:
    with pytest.raises(SettingsError, match="URLs: expected at least 1 item"):
        from_urls([])


@given(st.lists(st.text() | st.from_regex(r"https?://[a-z0-9.:\[\]-]{0,12}(/v1)?", fullmatch=True), max_size=4))
def test_any_words_give_settings_or_problems(urls: list[str]) -> None:
    try:
        found = from_urls(urls)
    except SettingsError:
        return
    assert len({backend.name for backend in found.backends}) == len(urls)


def test_addresses_may_be_text_and_a_wrong_one_names_its_option() -> None:
    assert from_urls(["http://h:1"], listen="127.0.0.1:9000").listen.port == 9000
    with pytest.raises(SettingsError) as caught:
        from_urls(["http://h:1"], listen="9000")
    assert str(caught.value.problems[0]).startswith("--listen: expected HOST:PORT")
