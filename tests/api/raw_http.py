"""HTTP by hand, for what a well-behaved client cannot do."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Connection:
    """One connection; reads give up after ten seconds."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._reader = self.socket.makefile("rb")

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> Answer:
        """The next answer. Its length has to be told: an answer without Content-Length fails here."""
        status = int(self._reader.readline().split()[1])
        headers = {}
        while (line := self._reader.readline().strip()) != b"":
            name, _, value = line.partition(b":")
            headers[name.decode().lower()] = value.strip().decode()
        return Answer(status, headers, b"" if status == 204 else self._reader.read(int(headers["content-length"])))

    def is_closed(self) -> bool:
        """Whether the other side has closed, or does so within the time."""
        try:
            return self._reader.read(1) == b""
        except ConnectionResetError:
            return True

    def rest(self) -> bytes:
        """What comes until the other side closes."""
        content = bytearray()
        with suppress(ConnectionResetError):
            while part := self._reader.read1():
                content += part
        return bytes(content)

    def close(self) -> None:
        self._reader.close()
        self.socket.close()


@contextmanager
def connected(port: int) -> Iterator[Connection]:
    connection = Connection(port)
    try:
        yield connection
    finally:
        connection.close()


def head(path: str, /, method: object = "POST", **headers: object) -> bytes:
    """A request's line and headers; underscores in names stand for hyphens."""
    fields = {"Host": "localhost", "Content_Type": "application/json"} | headers
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode()


def post(port: int, path: str, body: bytes, **headers: object) -> Answer:
    with connected(port) as connection:
        connection.send(head(path, Content_Length=len(body), **headers) + body)
        return connection.answer()


def assert_refused(answer: Answer, code: int) -> None:
    assert answer.status == code
    assert answer.headers["content-type"] == "application/json"
    assert (answer.json()["kind"], answer.json()["code"]) == ("Status", code)
