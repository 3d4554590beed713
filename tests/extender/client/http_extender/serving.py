"""A small HTTP server on a real socket that answers exactly what it is told to, however wrong."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Served:
    """Where the server is, and what it has been asked."""

    address: str
    requests: list[Request] = field(default_factory=list)
    connections: int = 0


Writes = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Answers one request on the connection. It may end the connection; then no further request is read from it."""


def raw(answer: bytes, *, then_close: bool = False) -> Writes:
    """These very bytes."""

    async def write(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        if then_close:
            writer.close()

    return write


def answer(body: bytes | str, status: int = 200, **headers: str) -> bytes:
    content = body.encode() if isinstance(body, str) else body
    fields = {"Content-Type": "application/json", "Content-Length": str(len(content))} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    head = f"HTTP/1.1 {status} Said\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
    return head.encode() + content


def says(body: bytes | str, status: int = 200, **headers: str) -> Writes:
    return raw(answer(body, status, **headers))


def says_json(value: object) -> Writes:
    return says(json.dumps(value))


async def closes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def resets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


def hangs(after: bytes = b"") -> Writes:
    """Nothing more comes until the caller has gone."""

    async def write(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(after)
        await writer.drain()
        await reader.read()
        writer.close()

    return write


@asynccontextmanager
async def serving(write: Writes, tls: ssl.SSLContext | None = None) -> AsyncIterator[Served]:
    """A server for as long as the block runs."""
    served = Served("")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.connections += 1
        try:
            while not writer.is_closing() and (request := await _request(reader)) is not None:
                served.requests.append(request)
                await write(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    async with server:
        host, port = server.sockets[0].getsockname()
        served.address = f"{'https' if tls else 'http'}://{host}:{port}"
        yield served


async def _request(reader: asyncio.StreamReader) -> Request | None:
    line = await reader.readline()
    if not line:
        return None
    method, path, _ = line.decode().split()
    headers: dict[str, str] = {}
    while (header := (await reader.readline()).decode().strip()) != "":
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, path, headers, json.loads(body) if body else None)
