"""Whether calls are traced, and where the spans go."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from router.settings.fields import Count, Secret, Share
from router.settings.problems import KeyErrors
from router.settings.section import Section

_PATTERN = "^https?://"


def _collector(url: str) -> str:
    if not url.startswith(("http://", "https://")) or not url.isprintable() or " " in url:
        raise ValueError("expected the OTLP address of a collector over HTTP, such as http://127.0.0.1:4318")
    if "@" in url:
        raise ValueError("credentials do not belong in a URL, which is shown in logs; use traces.headers")
    return url


CollectorUrl = Annotated[
    str,
    Field(max_length=1000),
    AfterValidator(_collector),
    WithJsonSchema({"type": "string", "pattern": _PATTERN, "examples": ["http://127.0.0.1:4318"]}),
]


class Traces(Section):
    """Each call as spans of OpenTelemetry: classify, queue, connect, first token, stream. Never text."""

    endpoint: CollectorUrl | None = Field(
        None, description="OTLP over HTTP, such as http://127.0.0.1:4318; needs twolane[traces]. null: no traces."
    )
    share: Share = Field(
        1.0, description="Calls that are traced, of those whose caller has not decided it (traceparent); 0 to 1."
    )
    per_minute: Count | None = Field(
        600,
        description="Of those, at most so many: a trace costs the router a quarter of what the call does. null: all.",
    )
    headers: dict[str, Secret] = Field(
        default_factory=dict, description="Sent to the collector with each batch, for its key."
    )

    def plain(self) -> dict[str, str]:
        """The headers as they are sent."""
        return {name: secret.get_secret_value() for name, secret in self.headers.items()}

    @model_validator(mode="after")
    def _installed(self) -> Self:
        if self.endpoint is not None and not _exporter():
            raise KeyErrors([(("endpoint",), "needs OpenTelemetry: pip install 'twolane[traces]', or write null")])
        return self


def _exporter() -> bool:
    try:
        return find_spec("opentelemetry.exporter.otlp.proto.http") is not None
    except ModuleNotFoundError:
        return False
