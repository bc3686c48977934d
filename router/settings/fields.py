"""The kinds of values that settings are made of: names, counts, lists, addresses, URLs, lanes and classes.

A validator's message says what was expected and what to do. It never repeats the value, which may be a secret.
"""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationInfo,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

from classifiers.api import SYNONYMS, CallClass
from policies.api import Lane
from router.settings.scalars import settled
from router.settings.section import Word
from router.settings.units import in_file

T = TypeVar("T")

NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
HOST_PATTERN: Final = r"^([A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63}$"
HEADER_PATTERN: Final = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$"
ADDRESS_PATTERN: Final = r"^(unix:/.+|(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):[0-9]{1,5})$"
URL_PATTERN: Final = r"^(unix:/.+|https?://(\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?(/|/v1/?)?)$"
ORIGIN_PATTERN: Final = r"^(\*|[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?)$"
SOCKET_MODE_PATTERN: Final = r"^0?[0-7]{3}$"
UNIX: Final = "unix:"
_LONGEST_SOCKET_PATH = 107
"""Bytes; the kernel has room for one more, which is zero."""
_HOST = re.compile(r"([A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63}\.?")

Many = Annotated[tuple[T, ...], Field(strict=False)]
"""A list in the file; its items stay strict."""
Flag = Annotated[bool, BeforeValidator(settled)]
Amount = Annotated[int, Field(ge=0), BeforeValidator(settled)]
"""A whole number from 0."""
Count = Annotated[int, Field(ge=1), BeforeValidator(settled)]
"""A whole number from 1."""
Weight = Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(settled)]
Share = Annotated[float, Field(ge=0, le=1), BeforeValidator(settled)]
Text = Annotated[str, Field(min_length=1, max_length=1000)]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=NAME_PATTERN)]
HeaderName = Annotated[str, Field(max_length=100, pattern=HEADER_PATTERN), AfterValidator(str.lower)]
"""Case does not matter in HTTP; kept in lower case."""

HostName = Annotated[str, Field(max_length=253, pattern=HOST_PATTERN), AfterValidator(str.lower)]
"""As it stands in a URL, without the port. Case does not matter."""


def _class_of(value: object) -> object:
    if isinstance(value, CallClass):
        return value
    if isinstance(value, str) and value in SYNONYMS:
        return SYNONYMS[value]
    raise ValueError("expected ttft, mixed or throughput (or another word for one of them: interactive, hop, batch)")


def _lane_of(value: object) -> object:
    if isinstance(value, str) and value in set(Lane):
        return Lane(value)
    raise ValueError("expected latency or throughput")


def _lanes_of(value: object) -> object:
    if value == "any":
        return (Lane.LATENCY, Lane.THROUGHPUT)
    return (value,) if isinstance(value, str) else value


def _different(words: tuple[T, ...]) -> tuple[T, ...]:
    if len(set(words)) < len(words):
        raise ValueError("the same word twice; name each once")
    return words


def _classes_of(value: object) -> object:
    if value == "any":
        return tuple(CallClass)
    return (value,) if isinstance(value, str | CallClass) else value


_LANE_SCHEMA: Final = {"type": "string", "enum": [str(lane) for lane in Lane]}

ClassName = Annotated[CallClass, BeforeValidator(_class_of), WithJsonSchema({"type": "string", "enum": list(SYNONYMS)})]
LaneName = Annotated[Lane, BeforeValidator(_lane_of), WithJsonSchema(_LANE_SCHEMA)]
Lanes = Annotated[
    tuple[LaneName, ...],
    Field(strict=False, min_length=1),
    BeforeValidator(_lanes_of),
    AfterValidator(_different),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "enum": ["any", *(str(lane) for lane in Lane)]},
                {"type": "array", "items": _LANE_SCHEMA, "minItems": 1, "uniqueItems": True},
            ]
        }
    ),
]
"""In order of preference; `any` is both, the latency lane first."""
ClassNames = Annotated[
    tuple[ClassName, ...],
    Field(strict=False, min_length=1),
    BeforeValidator(_classes_of),
    AfterValidator(_different),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "enum": ["any", *SYNONYMS]},
                {"type": "array", "items": {"type": "string", "enum": list(SYNONYMS)}, "minItems": 1},
            ]
        }
    ),
]
"""Some of the classes; `any` is all."""


_ADDRESS_EXPECTED: Final = "expected HOST:PORT, such as 127.0.0.1:8080, [::1]:8080 or 0.0.0.0:8080 (all interfaces)"


class Address(Word):
    """Where to listen; written `HOST:PORT` or `unix:/PATH` in YAML."""

    host: str = ""
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    path: str = ""
    """Of a unix socket; host and port mean nothing then."""

    @model_validator(mode="before")
    @classmethod
    def _split(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, str):
            if in_file(info):
                raise ValueError(f"{_ADDRESS_EXPECTED}, or unix:/PATH")
            return value
        if value.startswith(UNIX):
            return {"path": _socket_path(value)}
        host, _, port = value.rpartition(":")
        if re.fullmatch(ADDRESS_PATTERN, value) is None or not _listenable(host):
            raise ValueError(f"{_ADDRESS_EXPECTED}, or unix:/PATH")
        if int(port) > 65535:
            raise ValueError("expected a port up to 65535")
        return {"host": host.strip("[]"), "port": int(port)}

    @model_serializer(mode="plain", when_used="json")
    def _joined(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if self.path:
            return f"{UNIX}{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it, as far as the text tells."""
        if self.path or self.host == "localhost":
            return True
        return _is_ip_address(self.host) and ip_address(self.host).is_loopback


def _socket_path(text: str) -> str:
    path = text.removeprefix(UNIX)
    if not path.startswith("/") or path.endswith("/") or not path.isprintable():
        raise ValueError("expected the absolute path of a socket, such as unix:/run/twolane/twolane.sock")
    if len(path.encode()) > _LONGEST_SOCKET_PATH:
        raise ValueError(f"expected a path of at most {_LONGEST_SOCKET_PATH} bytes, which is all that sockets can have")
    return path


def _listenable(host: str) -> bool:
    """A name or an IP address; `22` is neither, though some resolvers take it for 0.0.0.22."""
    if host.startswith("["):
        return ":" in host and _is_ip_address(host[1:-1])
    return _is_ip_address(host) or any(char.isalpha() for char in host)


def _is_ip_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


ListenAddress = Annotated[
    Address,
    WithJsonSchema({"type": "string", "pattern": ADDRESS_PATTERN, "examples": ["127.0.0.1:8080", "0.0.0.0:8080"]}),
]


def _server_url(url: str) -> str:
    if url.startswith(UNIX):
        _socket_path(url)
        return url
    if not url.startswith(("http://", "https://")):
        raise ValueError("expected http://HOST:PORT, https://HOST:PORT or unix:/PATH")
    if not url.isprintable() or " " in url:  # urlsplit would drop line breaks without a word
        raise ValueError("expected http://HOST:PORT without spaces and line breaks")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("expected a port of 1 to 65535, and brackets around an IPv6 address") from None
    if "@" in parts.netloc:
        raise ValueError("credentials do not belong in a URL, which is shown in logs; use api_key")
    if port == 0 or parts.netloc.endswith(":") or not (_HOST.fullmatch(host) or _is_ip_address(host)):
        raise ValueError("expected http://HOST:PORT, where HOST is a name in ASCII letters or an IP address")
    if parts.path not in ("", "/", "/v1", "/v1/") or "?" in url or "#" in url:
        raise ValueError("expected nothing after the port but /v1; calls keep their own path and query")
    return url


ServerUrl = Annotated[
    str, Field(max_length=1000), AfterValidator(_server_url), WithJsonSchema({"type": "string", "pattern": URL_PATTERN})
]


def _web_origin(text: str) -> str:
    origin = text.lower()
    if re.fullmatch(ORIGIN_PATTERN, origin) is None:
        raise ValueError('expected an origin as browsers send it, such as https://chat.example:8443 (no path), or "*"')
    return origin


WebOrigin = Annotated[
    str,
    Field(max_length=300),
    AfterValidator(_web_origin),
    WithJsonSchema({"type": "string", "pattern": ORIGIN_PATTERN, "examples": ["http://localhost:5173", "*"]}),
]
"""In lower case, as browsers send it."""


def _network(text: str) -> str:
    if text == "unix":
        return text
    try:
        return str(ip_network(text))
    except ValueError:
        raise ValueError(
            "expected a network such as 10.0.0.0/8 or fd00::/8 (no bits beyond the mask), an address, or unix"
        ) from None


Network = Annotated[
    str,
    Field(max_length=50),
    AfterValidator(_network),
    WithJsonSchema({"type": "string", "minLength": 3, "examples": ["10.0.0.0/8", "127.0.0.1", "unix"]}),
]
"""`unix`: whoever may use a unix socket of the router."""


def _socket_mode(value: object) -> object:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or re.fullmatch(SOCKET_MODE_PATTERN, text) is None:
        raise ValueError("expected three octal digits: 600 (the owner), 660 (and the group) or 666 (everybody)")
    return text


SocketMode = Annotated[
    str,
    BeforeValidator(_socket_mode),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "pattern": SOCKET_MODE_PATTERN}, {"type": "integer", "enum": [600, 660, 666]}]}
    ),
]


def header_safe(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError("contains a space, a line break or a letter outside ASCII; check the key or its variable")
    return secret


Secret = Annotated[SecretStr, Field(min_length=1, max_length=10_000), AfterValidator(header_safe)]
"""Sent as a header; never shown."""
