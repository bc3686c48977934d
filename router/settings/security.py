"""Who may call, from where, and over what: keys of clients, pages of other origins, certificates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

from pydantic import Field, SecretStr, model_validator

from classifiers.api import CallClass
from policies.api import Lane
from router.settings.fields import (
    Address,
    ClassNames,
    Count,
    Lanes,
    Many,
    Name,
    Secret,
    WebOrigin,
    header_safe,
)
from router.settings.files import FilePath, NamedFile
from router.settings.problems import KeyErrors, Path
from router.settings.section import Section
from router.tls import BadCertificate, client_context, server_context


class ClientKey(Section):
    """One key of a client, and what its calls may do."""

    name: Name = Field(description="Who has the key; appears in metrics and logs, where the key itself never does.")
    key: Secret | None = Field(None, description="The key; write ${NAME} to take it from the environment.")
    key_file: FilePath | None = Field(None, description="File with the key on its only line, in place of `key`.")
    classes: ClassNames = Field(
        tuple(CallClass),
        description="Classes that its calls may have, or any. "
        "A call of another class gets the next less urgent one of these, else the nearest.",
    )
    lanes: Lanes = Field((Lane.LATENCY, Lane.THROUGHPUT), description="Lanes that its calls may use, or any.")
    calls_per_minute: Count | None = Field(
        None, description="Calls per minute, with bursts of as many. null: no limit."
    )
    tokens_per_minute: Count | None = Field(
        None, description="Tokens of prompts and answers per minute, with bursts of as many. null: no limit."
    )
    parallel: Count | None = Field(None, description="Calls at once, waiting ones included. null: no limit.")

    @model_validator(mode="after")
    def _one_key(self) -> Self:
        if self.key is None and self.key_file is None:
            raise KeyErrors([(("key",), "is missing; give it, or a key_file")])
        if self.key is not None and self.key_file is not None:
            raise KeyErrors([(("key_file",), "stands beside key; remove one of the two")])
        if self.key_file is not None:
            try:
                header_safe(SecretStr(self.key_file.line))
            except ValueError:
                raise KeyErrors([(("key_file",), "expected one line with the key in it, and no space")]) from None
        return self

    @property
    def secret(self) -> str:
        if self.key is not None:
            return self.key.get_secret_value()
        assert self.key_file is not None
        return self.key_file.line


class Cors(Section):
    """Web pages of other origins that may call from a browser."""

    origins: Many[WebOrigin] = Field(
        (), description='Origins such as https://chat.example, or "*" for every page. Empty: none, browsers refuse.'
    )


class Tls(Section):
    """Certificate of the router; both ports speak TLS then."""

    cert: FilePath = Field(description="PEM file with the certificate and those between it and its authority.")
    key: FilePath = Field(description="PEM file with the private key, without a passphrase.")

    @model_validator(mode="after")
    def _pair(self) -> Self:
        try:
            server_context(self.cert.path, self.key.path)
        except BadCertificate as error:
            raise KeyErrors([(("cert",), str(error))]) from None
        return self


def unverifiable(url: str, ca_file: NamedFile | None, *, skip: bool) -> Iterator[tuple[Path, str]]:
    """What the settings of one backend say of its certificate that cannot be."""
    given = [key for key, present in (("ca_file", ca_file is not None), ("insecure_skip_verify", skip)) if present]
    if not url.startswith("https://"):
        yield from (((key,), "only an https:// server has a certificate; change url or remove this") for key in given)
    elif len(given) > 1:
        yield ("insecure_skip_verify",), "a ca_file says what to verify; remove one of the two"
    elif ca_file is not None:
        try:
            client_context(authorities=ca_file.text)
        except UnicodeDecodeError:
            yield ("ca_file",), "is not text; expected certificates in PEM form"
        except BadCertificate as error:
            yield ("ca_file",), str(error)


def open_doors(
    listen: Address, admin: Address | None, *, keys: bool, admin_key: bool, insecure: bool
) -> Iterator[tuple[Path, str]]:
    """Ports that others than this machine can reach and that ask nobody who they are."""
    if not (listen.is_local or keys or insecure):
        yield (
            ("listen",),
            "others than this machine can reach this address, and no keys are set: whoever reaches it may use your "
            "servers. Add `keys`, or listen on 127.0.0.1, or write `insecure: true` (without a file: --insecure) "
            "where something in front of the router keeps strangers out",
        )
    if admin is not None and not (admin.is_local or admin_key):
        yield (
            ("admin",),
            "others than this machine can reach this address: add an `admin_key`, or use 127.0.0.1, or null for none",
        )


def clashing_keys(keys: Sequence[ClientKey]) -> Iterator[tuple[Path, str]]:
    """Two keys with one name, or one key with two names."""
    names: set[str] = set()
    secrets: dict[str, str] = {}
    for index, key in enumerate(keys):
        if key.name in names:
            yield ("keys", index, "name"), f"a second key called {key.name}; names must differ"
        elif key.secret in secrets:
            yield ("keys", index, "name"), f"has the same key as {secrets[key.secret]}; keys must differ"
        names.add(key.name)
        secrets[key.secret] = key.name


def stranded_keys(keys: Sequence[ClientKey], lanes: Mapping[CallClass, Sequence[Lane]]) -> Iterator[tuple[Path, str]]:
    """Keys whose calls of some class would have no lane: `lanes` says which ones each class uses."""
    for index, key in enumerate(keys):
        for call_class in key.classes:
            if not set(lanes[call_class]) & set(key.lanes):
                yield (
                    ("keys", index, "lanes"),
                    f"calls of class {call_class} use only the lane {' and '.join(lanes[call_class])} (classes."
                    f"{call_class}.lanes); add it, or take the class out of the classes of this key",
                )
