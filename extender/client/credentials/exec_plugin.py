"""Credentials from a program that the kubeconfig names, as cloud providers need it."""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, final

import msgspec

from extender.values import limits
from extender.values.targets.target import Credentials, CredentialsError, Identity, bearer
from extender.values.targets.tls import KeyPair

API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class ExecEnv(msgspec.Struct):
    """An environment variable of an exec plugin."""

    name: str = ""
    value: str = ""


class Exec(msgspec.Struct, rename="camel"):
    """A program that returns credentials."""

    api_version: str = ""
    command: str = ""
    """A path, or a name that is looked up in PATH."""
    args: list[str] | None = None
    env: list[ExecEnv] | None = None
    """Variables added to our own environment."""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""

    def __repr__(self) -> str:  # arguments and environment may hold secrets
        return f"Exec({self.command!r})"


class _CredentialStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _CredentialStatus | None = None


_read = msgspec.json.Decoder(_ExecCredential)


@final
class ExecPlugin(Credentials):
    """Runs the program when credentials are needed, and again when they have expired by the wall clock or were refused.

    The program gets no terminal, and inherits stderr.

    Upstream: client-go/plugin/pkg/client/auth/exec/exec.go, Authenticator.
    """

    def __init__(
        self,
        config: Exec,
        cluster: Mapping[str, Any] | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Runs nothing yet. `cluster` is what the program is told of the cluster; None for nothing."""
        self._config = config
        self._cluster = cluster
        self._now = now
        self._identity: Identity | None = None
        self._expires = datetime.max.replace(tzinfo=UTC)
        self._lock = asyncio.Lock()

    async def identity(self, now: float) -> Identity:
        # Callers that come while the program runs wait for its one answer.
        async with self._lock:
            if self._identity is None or self._now() > self._expires:
                self._identity, self._expires = self._parsed(await self._run())
            return self._identity

    def invalidate(self, refused: Identity) -> None:
        if self._identity is refused:
            self._identity = None

    async def _run(self) -> bytes:
        config = self._config
        spec: dict[str, Any] = {"interactive": False}
        if self._cluster is not None:
            spec["cluster"] = self._cluster
        info = {"kind": "ExecCredential", "apiVersion": config.api_version, "spec": spec}
        added = {variable.name: variable.value for variable in config.env or ()}
        env = {**os.environ, **added, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        try:
            process = await asyncio.create_subprocess_exec(
                config.command, *(config.args or ()), env=env, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise self._error(f"cannot be run: {error.strerror}", hint=True) from error
        status: int | None = None
        try:
            async with asyncio.timeout(limits.EXEC_SECONDS):
                output = await _read_all(process)
                status = await process.wait()
        except TimeoutError as error:
            raise self._error(f"has not finished within {limits.EXEC_SECONDS:g} s") from error
        finally:
            if status is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # its children, too
                await process.wait()
        if status != 0:
            raise self._error(f"failed with exit code {status}", hint=True)
        return output

    def _parsed(self, output: bytes) -> tuple[Identity, datetime]:
        try:
            credential = _read.decode(output)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            # The decoder's message is not used, because it may quote a secret.
            raise self._error("wrote something else than an ExecCredential") from error
        if credential.kind != "ExecCredential" or credential.api_version != self._config.api_version:
            raise self._error(
                f"is configured to use API version {self._config.api_version}, plugin returned version "
                f"{credential.api_version or 'none'}"
            )
        status = credential.status
        if status is None:
            raise self._error("didn't return a status field")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._error("returned only certificate or key, not both")
        if not status.token and not status.client_key_data:
            raise self._error("didn't return a token or cert/key pair")
        pair = None
        if status.client_key_data:
            pair = KeyPair(status.client_certificate_data.encode(), status.client_key_data.encode())
        expires = status.expiration_timestamp or datetime.max.replace(tzinfo=UTC)
        authorization = (
            bearer(status.token, f"the token of exec plugin {self._config.command}") if status.token else None
        )
        return Identity(authorization, pair), expires if expires.tzinfo is not None else expires.replace(tzinfo=UTC)

    def _error(self, what: str, *, hint: bool = False) -> CredentialsError:
        advice = f"; {' '.join(self._config.install_hint.split())}" if hint and self._config.install_hint else ""
        return CredentialsError(f"exec plugin {self._config.command} {what}{advice}")

    def __repr__(self) -> str:
        return f"ExecPlugin({self._config.command!r})"


async def _read_all(process: asyncio.subprocess.Process) -> bytes:
    if process.stdout is None:
        return b""
    try:
        return await process.stdout.readexactly(limits.EXEC_OUTPUT_BYTES)
    except asyncio.IncompleteReadError as exc:
        return exc.partial
