"""The extender that is examined, and one call to it, timed."""

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final, final
from urllib.parse import urlsplit

from extender.client.http_extender.calling import ExtenderClient, read, trust_of
from extender.engine.framework import ExtenderError
from extender.values.config.configuration import Extender
from extender.values.golang.times import Duration
from reprieve.lab import limits

PATIENCE: Final = 2
"""Unanswered calls in a row after which no more are made; one is enough before the first answer."""

EXAMINATION_SECONDS: Final = 120.0
"""The time after which nothing more is asked."""

ProtocolSchema = Callable[[], Mapping[str, Any]]
"""Returns the JSON Schema of the extender protocol; called when an answer is looked at."""

NAMES: Final = ("doctor-node-1", "doctor-node-2", "doctor-node-3")

_HEADERS: Final = (
    ("Content-Type", "application/json"),
    ("Accept-Encoding", "identity"),
    ("User-Agent", "Go-http-client/1.1"),
)

_PORTS: Final = {"http": 80, "https": 443}

SECONDS_A_DAY: Final = 86_400


@final
@dataclass(frozen=True, slots=True)
class Reply:
    """The reply to one call."""

    status: int
    """0 where no answer came."""
    body: bytes
    seconds: float
    closes: bool
    """Whether it says that the connection ends with it."""
    failure: str = ""
    """Why no answer came, in kube-scheduler's words."""

    @property
    def is_ok(self) -> bool:
        """Whether the status is 200: kube-scheduler reads no other answer."""
        return self.status == HTTPStatus.OK

    @property
    def words(self) -> str:
        """The reply in short, for a message that says what is wrong."""
        return self.failure or f"status {self.status}: {self.body[:120].decode(errors='replace').strip()!r}"


@final
class ExaminedService:
    """One extender, called as kube-scheduler would. State: its connections and answers, and when examining began."""

    def __init__(
        self, extender: Extender, schema: ProtocolSchema, nodes: tuple[str, ...] = (), *, may_lack_verbs: bool = False
    ) -> None:
        """Opens nothing yet. With `may_lack_verbs` no configuration says which verbs it has. Raises TlsError."""
        self.extender = extender
        self.schema = schema
        self.nodes = nodes
        self.may_lack_verbs = may_lack_verbs
        self._trust = trust_of(extender)
        self._server_name = extender.tls_config.server_name if extender.tls_config is not None else ""
        self._client = ExtenderClient(replace(extender, http_timeout=Duration(int(self.seconds * 1e9))))
        self._unanswered = 0
        self._has_answered = False
        self._began = time.monotonic()
        self.given_up = ""
        """Why it is asked nothing more; empty while it is."""

    @property
    def seconds(self) -> float:
        """How long kube-scheduler waits for an answer."""
        seconds = self.extender.http_timeout.seconds or 5.0
        return min(seconds, limits.DOCTOR_SECONDS) if seconds > 0 else limits.DOCTOR_SECONDS

    @property
    def verifies_certificate(self) -> bool:
        """Whether kube-scheduler looks at the certificate at all."""
        return self._trust.verify_mode != ssl.CERT_NONE

    @property
    def in_full(self) -> bool:
        """Whether it is sent nodes in full, and not their names."""
        return not self.extender.node_cache_capable

    @property
    def names(self) -> Sequence[str]:
        """The names of the nodes that it is asked about: known ones, where it gets no more than names."""
        return NAMES if self.in_full or not self.nodes else self.nodes

    def url(self, verb: str) -> str:
        return f"{self.extender.url_prefix.rstrip('/')}/{verb}"

    async def ask(self, verb: str, body: bytes) -> Reply:
        """Sends one POST, and returns whatever comes of it. An extender that is silent or too slow is given up."""
        if not self.given_up and time.monotonic() - self._began > EXAMINATION_SECONDS:
            self.given_up = f"its answers have taken {EXAMINATION_SECONDS:.0f} s"
        if self.given_up:
            return Reply(0, b"", 0.0, False, f"not asked, because {self.given_up}")
        seconds = min(2 * self.seconds, limits.DOCTOR_SECONDS)
        began = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                response = await self._client.send("POST", self.url(verb), _HEADERS, body, min(1.0, seconds))
                try:
                    content = await read(response)
                finally:
                    await response.aclose()
        except TimeoutError:
            return self._no_answer(began, f"no answer within {seconds:g} s")
        except Exception as exc:  # whatever it is, it is found out in kube-scheduler's words
            return self._no_answer(began, await self._as_kube_scheduler_says(verb, body, exc))
        self._unanswered = 0
        self._has_answered = True
        closes = response.header("connection").lower() == "close"
        return Reply(response.status, content, time.monotonic() - began, closes)

    def _no_answer(self, began: float, why: str) -> Reply:
        seconds = time.monotonic() - began
        self._unanswered = self._unanswered + 1 if seconds >= self.seconds else 0
        if self._unanswered >= (PATIENCE if self._has_answered else 1):
            self.given_up = "the calls before got no answer"
        return Reply(0, b"", seconds, False, why)

    async def _as_kube_scheduler_says(self, verb: str, body: bytes, exc: Exception) -> str:
        try:
            await self._client.post(verb, body)
        except ExtenderError as again:
            return str(again)
        return f"once: {exc or type(exc).__name__}; asked again, it answered"

    @property
    def address(self) -> str:
        """The host and port; ValueError if the configuration names none."""
        url = urlsplit(self.extender.url_prefix)
        if not url.hostname:
            raise ValueError("no host")
        return f"{url.hostname}:{url.port or _PORTS.get(url.scheme, 80)}"

    async def connect(self) -> None:
        """Connects, and hangs up. Raises OSError if that fails, ValueError if the configuration names no address."""
        host, _, port = self.address.rpartition(":")
        connection = await asyncio.to_thread(socket.create_connection, (host, int(port)), self.seconds)
        connection.close()

    async def days_of_certificate(self) -> float:
        """Returns for how many days the certificate is valid. Raises OSError, or ssl.SSLError if it is not trusted."""
        url = urlsplit(self.extender.url_prefix)
        name = self._server_name or url.hostname
        async with asyncio.timeout(self.seconds):
            _, writer = await asyncio.open_connection(
                url.hostname, url.port or 443, ssl=self._trust, server_hostname=name
            )
        try:
            ends = writer.get_extra_info("peercert")["notAfter"]
        finally:
            writer.close()
        return (ssl.cert_time_to_seconds(ends) - time.time()) / SECONDS_A_DAY

    async def aclose(self) -> None:
        await self._client.aclose()
