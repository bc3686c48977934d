"""Every key that people can write, with its type, default and meaning.

The models are strict (no `"yes"` for a boolean, no number for a name), frozen, and refuse unknown keys. Descriptions
appear in the JSON Schema, so editors show them. Files are read by `router.settings.load`, which adds line and column.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from classifiers.api import CallClass
from classifiers.conditions import ConditionError, compile_condition
from policies import PolicyError, build
from router.settings.backend import Backend
from router.settings.checks import circles, dangling_names, repeated_names, unserved_classes
from router.settings.classes import Classes
from router.settings.dashboard import Dashboard
from router.settings.fields import (
    Address,
    Amount,
    ClassName,
    Count,
    Flag,
    HeaderName,
    HostName,
    ListenAddress,
    Many,
    Name,
    Network,
    Secret,
    Share,
    SocketMode,
    Text,
)
from router.settings.files import NamedFile
from router.settings.judging import BUILTIN_MODEL, Decisions, Model, unusable
from router.settings.outputs import shared_files
from router.settings.pipelines import Pipelines
from router.settings.problems import KeyErrors, Path
from router.settings.scalars import settled
from router.settings.section import Section
from router.settings.security import ClientKey, Cors, Tls, clashing_keys, open_doors, stranded_keys
from router.settings.traces import Traces
from router.settings.units import Bytes, PositiveSeconds, Seconds

_ENOUGH = 20
"""Mistakes of one rule that are worth looking for."""


def _conditions(conditions: dict[str, object]) -> dict[str, object]:
    """Each condition is compiled alone, so that all mistakes show at once."""
    found: list[tuple[Path, str]] = []
    for key, wanted in conditions.items():
        try:
            compile_condition({key: wanted})
        except ConditionError as error:
            found.append((tuple(error.key.split(".", 1)) if key == "header" else (key,), error.message))
        if len(found) == _ENOUGH:
            break
    if found:
        raise KeyErrors(found)
    return conditions


class Rule(Section):
    """`if` all of these hold, `then` it is that class."""

    if_: Annotated[dict[str, object], BeforeValidator(settled), AfterValidator(_conditions)] = Field(
        alias="if", description="Conditions on a call; all must hold."
    )
    then: ClassName = Field(description="Class of the calls that match.")


class Classify(Section):
    """How the class of a call is found; an explicit header of the client outranks all of this."""

    rules: Many[Rule] = Field((), description="The first rule that matches wins.")
    model: Model = Field(
        BUILTIN_MODEL,
        description="Learned model for calls on which no rule says anything: builtin, off, or the path of one.",
    )
    min_confidence: Share = Field(
        0.5,
        description="A model that is less sure than this leaves a call to the cautious class for its shape; 0 to 1.",
    )
    shadow: Model | None = Field(
        None,
        description="A model that judges beside the active one and decides nothing: builtin or a path. null: none.",
    )
    builtin: Flag = Field(
        True,
        description="Where no rule matches: judge what is plain from the client API and what was asked for; with "
        "model: off also by stream, size, tools and roles.",
    )
    default: ClassName = Field(CallClass.TTFT, description="Class of a call on which nothing has an opinion.")


class PolicySettings(BaseModel):
    """`use` names the policy; the other keys are its own options. A name alone is enough: `policy: least_loaded`."""

    model_config = ConfigDict(strict=True, frozen=True, extra="allow", hide_input_in_errors=True)

    use: Text = Field(
        "workload_aware", description="Name of a policy: built in, installed by a package, or MODULE:ATTRIBUTE."
    )

    @property
    def options(self) -> dict[str, object]:
        return dict(self.model_extra or {})

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"use": value} if isinstance(value, str) else settled(value)

    @model_validator(mode="after")
    def _builds(self) -> Self:
        try:
            build(self.use, self.options)
        except PolicyError as error:
            raise KeyErrors([((error.key,), error.message)]) from None
        return self


class Line(Section):
    """The router's own line, where calls wait for room."""

    max_waiting: Amount = Field(
        10_000, description="Calls that may wait at once; one more is answered 429 with Retry-After."
    )
    ageing: PositiveSeconds = Field(
        120.0, description="Who waited this long goes before everybody else, so that nothing starves."
    )
    queue_pings: PositiveSeconds | None = Field(
        None,
        description="Between comment lines that a streamed call gets while it waits here, so that nobody on the way "
        "gives up; what goes wrong after the first one is said inside the stream, with status 200. null: none.",
    )


class Timeouts(Section):
    """Of calls to backends. The length of an answer has no limit; pings of a backend count as life."""

    connect: PositiveSeconds = Field(5.0, description="Until a connection to the backend stands.")
    first_byte: PositiveSeconds = Field(600.0, description="From the request to the head of the response.")
    first_token: PositiveSeconds | None = Field(
        None, description="From the request to the first token of a stream; pings do not count. null: no limit."
    )
    idle: PositiveSeconds = Field(300.0, description="Between two pieces of a response.")


class Retries(Section):
    """Calls sent to a second backend, which is done only where the first certainly did not begin on them."""

    share: Share = Field(0.2, description="Retries per call, over about the last ten seconds; 0 to 1.")
    per_second: Amount = Field(10, description="Retries per second beside that share. Both 0: never.")


class Health(Section):
    """When a backend counts as up, busy or down."""

    interval: PositiveSeconds = Field(2.0, description="Between two probes of one backend.")
    timeout: PositiveSeconds = Field(5.0, description="Longest wait for the answer to one probe.")
    down_after: Count = Field(
        3, description="Failed probes in a row that take a backend out; traffic that flows counts as health."
    )
    break_after: Count = Field(
        5, description="Failed calls in a row that take a backend out; 4xx answers are not failures."
    )
    retry_after: PositiveSeconds = Field(
        10.0, description="Until one trial call may try a backend that failed calls took out."
    )
    load_half_life: PositiveSeconds = Field(5.0, description="Age at which a figure read from a server counts half.")


class Limits(Section):
    """What a client may send."""

    max_body: Bytes = Field(100 * 2**20, description="Largest request body, after decompression; more is answered 413.")
    max_header: Bytes = Field(64 * 2**10, description="Longest header line.")


class HeaderNames(Section):
    """More names of headers in which clients send hints, beside the standard ones."""

    class_: Many[HeaderName] = Field(
        (), alias="class", description="Headers that name the class of a call, as x-twolane-class does."
    )
    session: Many[HeaderName] = Field((), description="Headers that carry the id of a session or conversation.")
    tightest: Share = Field(
        0.5,
        description="Objectives that a call asks for in headers may be this share of those of its class, not less; "
        "1: no tighter, 0: as tight as it likes. Looser is always allowed.",
    )


class Log(Section):
    """What goes to stderr. Never prompts, answers or keys."""

    level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least severe level that is shown.")
    format: Literal["auto", "console", "json"] = Field(
        "auto", description="console for people, json for machines; auto: console on a terminal, else json."
    )
    audit: Flag = Field(
        True, description="Who changed what (reloads, drains), and an entry per key and hour; whatever the level."
    )
    calls: Flag = Field(False, description="One line per call: class, reason, backend, outcome, times, tokens.")


class Settings(Section):
    """The whole file."""

    listen: ListenAddress = Field(
        Address(host="127.0.0.1", port=8080),
        description="HOST:PORT for clients; 0.0.0.0 for all interfaces, port 0 for any free one; or unix:/PATH. "
        "Restart to change.",
    )
    admin: ListenAddress | None = Field(
        Address(host="127.0.0.1", port=8081),
        description="HOST:PORT or unix:/PATH of metrics, health, explain and reload; null: none. Restart to change.",
    )
    socket_mode: SocketMode = Field(
        "660", description="Who may use unix sockets of the router, as file permissions. Restart to change."
    )
    keys: Many[ClientKey] = Field(
        (),
        description="Keys of clients, sent as Bearer, x-api-key or api-key. Empty: everybody who gets here may call.",
    )
    insecure: Flag = Field(
        False, description="Listen beyond this machine without keys. Only behind something that keeps strangers out."
    )
    hosts: Many[HostName] = Field(
        (),
        description="Names by which this machine is called while there are no keys, such as that of a proxy in front; "
        "addresses, localhost, names without a dot, *.local and *.internal are taken anyway.",
    )
    admin_key: Secret | None = Field(
        None, description="Key of the admin port, sent as Bearer; needed where others than this machine can reach it."
    )
    tls: Tls | None = Field(
        None, description="Certificate of both ports, read again on reload; null: plain HTTP. Restart to switch."
    )
    cors: Cors = Field(Cors(), description="Web pages of other origins that may call from a browser.")
    trusted_proxies: Many[Network] = Field(
        (),
        description="Proxies in front whose X-Forwarded-* is passed on: networks, addresses, or unix. "
        "What others send of it is dropped.",
    )
    backends: Many[Backend] = Field(min_length=1, description="The inference servers, at least one.")
    models: dict[Text, dict[Name, Text]] = Field(
        default_factory=dict,
        description="Public names of models, each with the name that a backend knows it by: PUBLIC: {BACKEND: NAME}.",
    )
    passthrough: Name | None = Field(
        None, description="Name of the backend that gets all paths which the router does not know; null: they are 404."
    )
    classify: Classify = Field(Classify(), description="How the class of a call is found.")
    classes: Classes = Field(Classes(), description="What each class of calls is promised.")
    policy: PolicySettings = Field(
        default_factory=PolicySettings, description="How a backend is chosen: {use: NAME, OPTION: ...}, or the name."
    )
    line: Line = Field(Line(), description="The router's own line, where calls wait for room.")
    timeouts: Timeouts = Field(Timeouts(), description="Of calls to backends.")
    retries: Retries = Field(Retries(), description="How many calls may be sent to a second backend.")
    health: Health = Field(Health(), description="When a backend counts as up, busy or down.")
    limits: Limits = Field(Limits(), description="What a client may send.")
    pipelines: Pipelines = Field(Pipelines(), description="Tasks of several calls.")
    headers: HeaderNames = Field(HeaderNames(), description="More names of headers in which clients send hints.")
    expose: Literal["full", "minimal", "none"] = Field(
        "full", description="How much of a decision the response headers tell: full, minimal (class and id) or none."
    )
    shutdown_grace: Seconds = Field(30.0, description="How long running calls may go on after SIGTERM.")
    log: Log = Field(Log(), description="What goes to stderr.")
    traces: Traces = Field(Traces(), description="Where spans of calls go.")
    decisions: Decisions = Field(Decisions(), description="The decision log, a file to learn from.")
    dashboard: Dashboard = Field(Dashboard(), description="The page at the admin port.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        names = [backend.name for backend in self.backends]
        lanes = {each: self.classes.of(each).lanes for each in CallClass}
        found = [
            *repeated_names(names),
            *dangling_names(names, self.models, self.passthrough),
            *circles(self.listen, self.admin, [backend.url for backend in self.backends]),
            *open_doors(
                self.listen,
                self.admin,
                keys=bool(self.keys),
                admin_key=self.admin_key is not None,
                insecure=self.insecure,
            ),
            *clashing_keys(self.keys),
            *unusable(model=self.classify.model, shadow=self.classify.shadow),
            *unserved_classes(lanes, [backend.lane for backend in self.backends]),
            *stranded_keys(self.keys, lanes),
            *shared_files(self._outputs(), (file.path for file in self.named_files())),
        ]
        if found:
            raise KeyErrors(found)
        return self

    def _outputs(self) -> Iterator[tuple[Path, FilePath]]:
        """Files that the router writes, each with its key."""
        log, history = self.decisions.file, self.dashboard.history
        if log is not None:
            yield ("decisions", "file"), log
            yield ("decisions", "file"), log.with_name(f"{log.name}.salt")
        if history is not None:
            yield ("dashboard", "history"), history

    def named_files(self) -> Iterator[NamedFile]:
        """Files that these settings are made of, beside their own."""
        for key in self.keys:
            if key.key_file is not None:
                yield key.key_file
        for model in (self.classify.model, self.classify.shadow):
            if model is not None and model.file is not None:
                yield model.file
        for backend in self.backends:
            if backend.ca_file is not None:
                yield backend.ca_file
        if self.tls is not None:
            yield from (self.tls.cert, self.tls.key)
