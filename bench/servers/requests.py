"""Requests of one connection, one after another, for servers that must cost less than those who are measured."""

from __future__ import annotations

import asyncio
from typing import cast

import httptools


class RequestProtocol(asyncio.Protocol):
    """Calls `requested` for each request that is complete; what is no HTTP ends the connection."""

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._target = b""
        self._body = bytearray()

    def requested(self, target: bytes, body: bytes) -> None:
        """Answer it, now or later."""
        raise NotImplementedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports do not derive from it

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.close()

    # --- called by the parser

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        target, body = self._target, bytes(self._body)
        self._target = b""
        self._body.clear()
        self.requested(target, body)
