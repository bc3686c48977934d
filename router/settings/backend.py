"""One inference server, as people describe it."""

from __future__ import annotations

import ssl
from typing import Literal, Self

from pydantic import Field, model_validator

from router.settings.fields import UNIX, Count, Flag, LaneName, Many, Name, Secret, ServerUrl, Text, Weight
from router.settings.files import FilePath
from router.settings.problems import KeyErrors
from router.settings.section import Section
from router.settings.security import unverifiable
from router.tls import client_context

EngineName = Literal["auto", "llamacpp", "vllm", "sglang", "ollama", "lmstudio", "openai"]


class Backend(Section):
    """One inference server."""

    name: Name = Field(description="Short name of the server; appears in metrics, headers and logs.")
    url: ServerUrl = Field(
        description="http://HOST:PORT of the server, with or without /v1; also https://, or unix:/PATH."
    )
    lane: LaneName | None = Field(
        None, description="Role: latency (first token soon) or throughput (many at once). null: by the engine's kind."
    )
    engine: EngineName = Field("auto", description="Kind of server. auto: the server is asked at start.")
    max_inflight: Count | None = Field(
        None, description="Most calls there at once. null: the slots of the engine, where it has slots."
    )
    context_tokens: Count | None = Field(
        None, description="Tokens that one call may take there, prompt and answer. null: the server is asked."
    )
    models: Many[Text] | None = Field(None, description="Names of the models it serves. null: the server is asked.")
    api_key: Secret | None = Field(
        None, description="Key of this server, sent as Bearer; write ${NAME} to take it from the environment."
    )
    ca_file: FilePath | None = Field(
        None,
        description="PEM file of authorities that count in place of those of the system (https). null: the system's.",
    )
    insecure_skip_verify: Flag = Field(
        False, description="Take any certificate of an https server, so that anybody between can read and change calls."
    )
    weight: Weight = Field(
        1.0, description="How much it takes relative to others in its lane: 2 takes twice as many calls as 1."
    )
    forward_priority: Flag = Field(
        False, description="Also send the class as the engine's own priority field (vLLM and SGLang can use it)."
    )

    @property
    def base_url(self) -> str:
        """The URL that `/v1/...` is appended to: without a last slash, without its own `/v1`."""
        if self.socket_path:
            return "http://localhost"
        return self.url.rstrip("/").removesuffix("/v1").rstrip("/")

    @property
    def socket_path(self) -> str:
        """Of the unix socket that the server listens on; empty: it has a host and a port."""
        return self.url.removeprefix(UNIX) if self.url.startswith(UNIX) else ""

    def tls(self) -> ssl.SSLContext | None:
        """What its certificate is held to; None: it has none. A new one each time, which takes milliseconds."""
        if not self.url.startswith("https://"):
            return None
        authorities = self.ca_file.text if self.ca_file is not None else None
        return client_context(authorities=authorities, verify=not self.insecure_skip_verify)

    @model_validator(mode="after")
    def _verifies(self) -> Self:
        if found := [*unverifiable(self.url, self.ca_file, skip=self.insecure_skip_verify)]:
            raise KeyErrors(found)
        return self
