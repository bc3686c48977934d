"""Every key that people can write, with its type, default and meaning.

The models are strict (no `"yes"` for a boolean, no number for a name), frozen, and refuse unknown keys. Descriptions
appear in the JSON Schema, so editors show them.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, WithJsonSchema, model_validator

from classifiers.api import SYNONYMS, CallClass
from policies.api import ClassRules, Lane
from router.settings.units import Bytes, Seconds


class _Model(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", validate_default=True)


def _class_of(value: object) -> object:
    if isinstance(value, CallClass):
        return value
    if isinstance(value, str) and value.lower() in SYNONYMS:
        return SYNONYMS[value.lower()]
    raise ValueError(f"expected a class: {', '.join(SYNONYMS)}")


def _lane_of(value: object) -> object:
    if isinstance(value, str) and value in set(Lane):
        return Lane(value)
    raise ValueError("expected a lane: latency or throughput")


ClassName = Annotated[
    CallClass, BeforeValidator(_class_of), WithJsonSchema({"type": "string", "enum": sorted(SYNONYMS)})
]
LaneName = Annotated[Lane, BeforeValidator(_lane_of), WithJsonSchema({"type": "string", "enum": [*Lane]})]
EngineName = Literal["auto", "llamacpp", "vllm", "sglang", "ollama", "lmstudio", "openai"]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Port = Annotated[int, Field(ge=0, le=65535)]


class Address(_Model):
    """Where to listen; written `HOST:PORT` in YAML."""

    host: str
    port: Port

    @model_validator(mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        host, colon, port = value.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        if not colon or not host or not port.isascii() or not port.isdigit():
            raise ValueError("expected HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080")
        return {"host": host, "port": int(port)}

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Backend(_Model):
    """One inference server."""

    name: Name = Field(description="Short name; appears in metrics, headers and logs.")
    url: str = Field(description="http://HOST:PORT, with or without /v1.")
    lane: LaneName | None = Field(None, description="latency or throughput; default: by the engine's kind.")
    engine: EngineName = Field("auto", description="Kind of server; auto: asked at start.")
    max_inflight: Annotated[int, Field(ge=1)] | None = Field(
        None, description="Most calls there at once; default: the slots of the engine, where it has slots."
    )
    context_tokens: Annotated[int, Field(ge=1)] | None = Field(None, description="Context of one slot; default: asked.")
    models: tuple[str, ...] | None = Field(None, description="Models it serves; default: asked.")
    api_key: SecretStr | None = Field(None, description="Sent to this backend as Bearer; write ${NAME} for a variable.")
    weight: Annotated[float, Field(gt=0)] = Field(1.0, description="Share relative to others in its lane.")
    forward_priority: bool = Field(False, description="Send the class as the engine's own priority field.")

    @model_validator(mode="after")
    def _url(self) -> Self:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError("url: expected http://HOST:PORT or https://HOST:PORT")
        return self


class Rule(_Model):
    """`if` all of these hold, `then` it is that class."""

    if_: dict[str, object] = Field(alias="if", description="Conditions; all must hold.")
    then: ClassName


class Classify(_Model):
    rules: tuple[Rule, ...] = Field((), description="First match wins; explicit headers outrank them.")
    builtin: bool = Field(True, description="Judge by surface, size, tools and stream where no rule matches.")
    default: ClassName = Field(CallClass.TTFT, description="Where nothing has an opinion.")


class Slo(_Model):
    ttft: Seconds | None = Field(None, description="Time to first token.")
    tpot: Seconds | None = Field(None, description="Mean time per output token after the first.")
    complete: Seconds | None = Field(None, description="Time to the end of the answer.")


Lanes = Annotated[
    tuple[LaneName, ...],
    BeforeValidator(lambda value: (Lane.LATENCY, Lane.THROUGHPUT) if value == "any" else value),
    Field(min_length=1, max_length=2),
    WithJsonSchema(
        {"anyOf": [{"const": "any"}, {"type": "array", "items": {"enum": [*Lane]}, "minItems": 1, "maxItems": 2}]}
    ),
]


class ClassSettings(_Model):
    """What calls of one class are promised. Left out: the default of that class."""

    slo: Slo = Field(default_factory=Slo)
    lanes: Lanes = Field((Lane.LATENCY, Lane.THROUGHPUT), description="Order of preference, or any.")
    keep_free: dict[LaneName, Annotated[int, Field(ge=0)]] = Field(
        default_factory=dict, description="Slots of a lane that calls of this class leave to others."
    )
    max_wait: Seconds = Field(30.0, description="Longest stay in the router's line.")

    def rules(self) -> ClassRules:
        return ClassRules(
            lanes=self.lanes,
            keep_free=self.keep_free,
            max_wait_s=self.max_wait,
            slo_ttft_s=self.slo.ttft,
            slo_tpot_s=self.slo.tpot,
            slo_complete_s=self.slo.complete,
        )


class Classes(_Model):
    ttft: ClassSettings = ClassSettings(slo=Slo(ttft=0.5, tpot=0.05), max_wait=30.0)
    mixed: ClassSettings = ClassSettings(slo=Slo(complete=6.0), max_wait=120.0)
    throughput: ClassSettings = ClassSettings(
        lanes=(Lane.THROUGHPUT, Lane.LATENCY), keep_free={Lane.LATENCY: 1}, max_wait=600.0
    )

    def of(self, call_class: CallClass) -> ClassSettings:
        match call_class:
            case CallClass.TTFT:
                return self.ttft
            case CallClass.MIXED:
                return self.mixed
            case CallClass.THROUGHPUT:
                return self.throughput


class PolicySettings(BaseModel):
    """`use` names the policy; the other keys are its own options."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow")

    use: str = "workload_aware"

    @property
    def options(self) -> dict[str, object]:
        return dict(self.model_extra or {})


class Line(_Model):
    max_waiting: Annotated[int, Field(ge=0)] = Field(10_000, description="Calls in the router's line; more: 429.")
    ageing: Seconds = Field(30.0, description="Wait that lifts a call by one class, so that nothing starves.")


class Timeouts(_Model):
    """There is no limit on the length of an answer; pings of a backend count as life."""

    connect: Seconds = 5.0
    first_byte: Seconds = Field(600.0, description="From the request to the head of the response.")
    idle: Seconds = Field(300.0, description="Between two pieces of a response.")


class Health(_Model):
    interval: Seconds = Field(2.0, description="Between two probes of one backend.")
    timeout: Seconds = Field(5.0, description="Of one probe.")
    down_after: Annotated[int, Field(ge=1)] = Field(3, description="Failed probes in a row; flowing traffic is health.")
    break_after: Annotated[int, Field(ge=1)] = Field(5, description="Failed calls in a row take a backend out.")
    retry_after: Seconds = Field(10.0, description="Until one trial call may try a backend that was taken out.")
    load_half_life: Seconds = Field(5.0, description="After this age a scraped figure counts half.")


class Limits(_Model):
    max_body: Bytes = Field(100 * 2**20, description="Largest request body.")
    max_header: Bytes = Field(64 * 2**10, description="Longest header line.")


class HeaderNames(_Model):
    """Names under which clients may send hints, beside the standard ones. Lower case."""

    class_: tuple[str, ...] = Field((), alias="class", description="More names for x-twolane-class.")
    session: tuple[str, ...] = Field((), description="More names of headers that carry a session id.")


class Log(_Model):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "console", "json"] = Field("auto", description="auto: console on a terminal, else json.")
    calls: bool = Field(False, description="One line per call: class, reason, backend, outcome, times, tokens.")


class Settings(_Model):
    """The whole file."""

    listen: Address = Address(host="127.0.0.1", port=8080)
    admin: Address | None = Field(Address(host="127.0.0.1", port=8081), description="null: no admin port.")
    backends: tuple[Backend, ...] = Field(min_length=1)
    models: dict[str, dict[Name, str]] = Field(
        default_factory=dict, description="One public name, each server's own name."
    )
    passthrough: Name | None = Field(None, description="Backend that gets all paths the router does not know.")
    classify: Classify = Classify()
    classes: Classes = Classes()
    policy: PolicySettings = PolicySettings()
    line: Line = Line()
    timeouts: Timeouts = Timeouts()
    health: Health = Health()
    limits: Limits = Limits()
    headers: HeaderNames = HeaderNames()
    expose: Literal["full", "minimal", "none"] = Field("full", description="How much of a decision clients see.")
    shutdown_grace: Seconds = Field(30.0, description="How long running calls may finish after SIGTERM.")
    log: Log = Log()

    @model_validator(mode="after")
    def _names(self) -> Self:
        names = [backend.name for backend in self.backends]
        for index, name in enumerate(names):
            if name in names[:index]:
                raise ValueError(f"backends.{index}.name: a second backend called {name}; names must differ")
        for public, per_backend in self.models.items():
            for name in per_backend:
                if name not in names:
                    raise ValueError(f"models.{public}.{name}: no backend of that name (known: {', '.join(names)})")
        if self.passthrough is not None and self.passthrough not in names:
            raise ValueError(f"passthrough: no backend called {self.passthrough} (known: {', '.join(names)})")
        return self
