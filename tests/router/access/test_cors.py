"""Which pages may read answers."""

from __future__ import annotations

from collections.abc import Callable

from router.access.cors import Cors
from router.wire.exchange import RawHeaders

PAGE = "http://localhost:5173"


class Asked:
    """As much of an exchange as is looked at."""

    path = "/v1/chat/completions"
    query = ""
    peer = "127.0.0.1"
    started = gone = tls = False
    stalls = 0
    straight: Callable[[bytes], None] | None = None

    def __init__(self, method: str = "OPTIONS", **headers: str) -> None:
        self.method = method
        self._headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.raw_headers: RawHeaders = [(name.encode(), value.encode()) for name, value in self._headers.items()]

    def header(self, name: str) -> str | None:
        return self._headers.get(name)

    async def body(self, limit_bytes: int) -> bytes:
        raise AssertionError("a preflight has no body")

    def start(self, status: int, reason: bytes, headers: RawHeaders, *, length: int | None) -> None:
        raise AssertionError("nothing is answered here")

    def write(self, data: bytes) -> bool:
        raise AssertionError("nothing is answered here")

    async def drained(self) -> None:
        raise AssertionError("nothing is answered here")

    def finish(self) -> None:
        raise AssertionError("nothing is answered here")

    def abort(self) -> None:
        raise AssertionError("nothing is answered here")


def preflight(cors: Cors, origin: str = PAGE, **more: str) -> dict[str, str] | None:
    found = cors.preflight(Asked(origin=origin, access_control_request_method="POST", **more))
    return None if found is None else {name.decode().lower(): value.decode() for name, value in found}


def allowed(cors: Cors, origin: str | None) -> list[str]:
    return [value.decode() for name, value in cors.headers(origin) if name == b"Access-Control-Allow-Origin"]


def test_names_of_headers_with_an_odd_blank_are_not_repeated() -> None:
    answer = preflight(Cors([PAGE]), access_control_request_headers="x-one,\xa0x-two")
    assert answer is not None
    assert "x-one" not in answer["access-control-allow-headers"]


def test_an_allowed_origin_is_named_and_caches_are_told() -> None:
    cors = Cors([PAGE])
    assert allowed(cors, PAGE) == [PAGE]
    assert (b"Vary", b"Origin") in cors.headers(PAGE)
    assert allowed(cors, "HTTP://LOCALHOST:5173") == ["HTTP://LOCALHOST:5173"]


def test_other_origins_are_told_nothing_but_caches_are() -> None:
    cors = Cors([PAGE])
    for origin in ("http://localhost:5174", "http://evil.example", "null", "http://localhost:5173.evil.example", None):
        assert cors.headers(origin) == [(b"Vary", b"Origin")]


def test_a_star_is_everybody_and_no_cookies() -> None:
    cors = Cors(["*", PAGE])
    assert allowed(cors, "http://any.example") == ["*"]
    assert b"Access-Control-Allow-Credentials" not in dict(cors.headers("http://any.example"))


def test_a_preflight_allows_the_headers_that_were_asked_for() -> None:
    answer = preflight(Cors([PAGE]), access_control_request_headers="authorization,content-type, x-stainless-os")
    assert answer is not None
    assert answer["access-control-allow-headers"] == "authorization,content-type, x-stainless-os"
    assert "POST" in answer["access-control-allow-methods"]


def test_what_is_no_list_of_names_is_not_repeated() -> None:
    for wrong in ("a\r\nSet-Cookie: x", "a b", "<script>", "a,," + "b" * 101, ",".join("a" * 200)):
        answer = preflight(Cors([PAGE]), access_control_request_headers=wrong)
        assert answer is not None
        assert answer["access-control-allow-headers"] == "authorization, content-type, x-api-key, api-key"


def test_a_page_elsewhere_may_reach_a_private_network_only_where_it_asks() -> None:
    answer = preflight(Cors([PAGE]), access_control_request_private_network="true")
    assert answer is not None
    assert answer["access-control-allow-private-network"] == "true"
    assert "access-control-allow-private-network" not in (preflight(Cors([PAGE])) or {})


def test_only_an_allowed_origin_with_a_real_question_is_answered() -> None:
    cors = Cors([PAGE])
    assert preflight(cors, "http://evil.example") is None
    assert cors.preflight(Asked(origin=PAGE)) is None
    assert cors.preflight(Asked(access_control_request_method="POST")) is None
    assert cors.preflight(Asked("POST", origin=PAGE, access_control_request_method="POST")) is None
