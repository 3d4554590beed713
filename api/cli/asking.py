"""Whom a command asks: a Reprieve that runs, a cluster through its API server, or a dump in a file."""

import os
import random
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Protocol, TypeVar, final
from urllib.parse import quote, urlsplit

import httpx
import msgspec
import typer

from api.cli.manifests import state_of
from api.refusals import Status
from api.settings import StartUpError
from api.starting import read_configuration
from extender.answers.pod_claims import templates_among
from extender.answers.questions import QuestionError, Questions
from extender.answers.types import Answer, Capacity, Explanation, Preemptions, WhatIf, WhatIfRequest
from extender.apiserver.client import Client
from extender.apiserver.credentials.target import CredentialsError, Target
from extender.apiserver.credentials.target_lookup import find_target
from extender.assembly.live_cluster import following
from extender.config import ConfigErrors, Configuration
from extender.embedded.state_file import StateFileError, load, read
from extender.objects.cluster_state import ClusterState
from extender.objects.decoding import DecodeError

DEFAULT_SERVER: Final = "http://127.0.0.1:8888"

DEFAULT_NAMESPACE: Final = "default"

STANDARD_INPUT: Final = Path("-")

SECONDS: Final = 60.0

A = TypeVar("A", bound=Answer)

Server = Annotated[str | None, typer.Option(help=f"A Reprieve that runs (REPRIEVE_SERVER, or {DEFAULT_SERVER}).", envvar="REPRIEVE_SERVER")]
Kubeconfig = Annotated[Path | None, typer.Option(help="Ask about the cluster of this kubeconfig; nothing has to run in it.")]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig (its current one).")]
Dump = Annotated[
    Path | None, typer.Option(help="Ask about a cluster in a file, as kubectl get -o json prints it, .gz welcome; - reads standard input.")
]
Config = Annotated[Path | None, typer.Option(help="KubeSchedulerConfiguration to ask about a kubeconfig or a dump with.")]
Token = Annotated[str | None, typer.Option(help="Token of the cluster, for a Reprieve that asks who you are.", envvar="REPRIEVE_TOKEN")]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Of what names none (that of the kubeconfig's context, where one is given, or default)."),
]


class Asked(Protocol):
    """Somebody who answers. See `extender.answers.questions.Questions`."""

    async def explain(self, namespace: str, name: str, *, picture: bool = False) -> Explanation | None:
        """None if there is no such pod."""
        ...

    async def what_if(self, request: WhatIfRequest) -> WhatIf:
        """What would become of every pod concerned."""
        ...

    async def capacity_of(self, pod: dict[str, Any], limit: int) -> Capacity:
        """How many of such a pod fit."""
        ...

    async def preemptions_of(self, pod: str | None, limit: int) -> Preemptions:
        """The last preemptions, newest first."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Source:
    """What the options of a command say."""

    server: str | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    dump: Path | None = None
    config: Path | None = None
    token: str | None = None
    namespace: str | None = None

    @property
    def default_namespace(self) -> str:
        """The namespace of what names none.

        Raises:
            StartUpError: the kubeconfig cannot be used.
        """
        if self.namespace or self.kubeconfig is None:
            return self.namespace or DEFAULT_NAMESPACE
        try:
            return self._target(self.kubeconfig).namespace
        except CredentialsError as exc:
            raise StartUpError(" ".join(str(exc).split())) from exc

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Asked]:
        """Somebody to ask until the end of the block.

        Raises:
            StartUpError: nobody can be asked; the message says what to do.
        """
        if self.dump is not None and self.kubeconfig is not None:
            raise StartUpError("--dump and --kubeconfig are two clusters: give one of them")
        try:
            if self.dump is not None:
                yield _Here(_questions_about(self.dump, read_configuration(self.config)))
            elif self.kubeconfig is not None:
                async with self._cluster(self.kubeconfig) as asked:
                    yield asked
            else:
                address = _address(self.server or os.environ.get("REPRIEVE_SERVER") or DEFAULT_SERVER)
                async with httpx.AsyncClient(base_url=address, timeout=SECONDS, headers=_bearer(self.token)) as client:
                    yield _Server(client, address)
        except (StateFileError, CredentialsError, QuestionError, DecodeError, ConfigErrors) as exc:
            raise StartUpError(" ".join(str(exc).split())) from exc

    @asynccontextmanager
    async def _cluster(self, kubeconfig: Path) -> AsyncIterator[Asked]:
        configuration = read_configuration(self.config)
        async with aclosing(Client(self._target(kubeconfig))) as client, following(configuration, client, rng=random.Random()) as found:
            await found.informers.wait_for_sync()
            yield _Here(found.questions)

    def _target(self, kubeconfig: Path) -> Target:
        return find_target(os.environ, file=kubeconfig, context=self.context or "")


@final
class _Here:
    """Answers in this process; nobody remembers anything."""

    def __init__(self, questions: Questions) -> None:
        self._questions = questions

    async def explain(self, namespace: str, name: str, *, picture: bool = False) -> Explanation | None:
        return await self._questions.explain(namespace, name, picture=picture)

    async def what_if(self, request: WhatIfRequest) -> WhatIf:
        return await self._questions.what_if(request)

    async def capacity_of(self, pod: dict[str, Any], limit: int) -> Capacity:
        return await self._questions.capacity_of(pod, limit)

    async def preemptions_of(self, pod: str | None, limit: int) -> Preemptions:
        raise StartUpError("only a Reprieve that runs remembers who preempted whom: give its address with --server")


@final
class _Server:
    """A Reprieve that runs."""

    def __init__(self, client: httpx.AsyncClient, address: str) -> None:
        self._client = client
        self._address = address

    async def explain(self, namespace: str, name: str, *, picture: bool = False) -> Explanation | None:
        path = f"/v1/explain/{quote(namespace, safe='')}/{quote(name, safe='')}"
        return await self._get(Explanation, path, {"picture": "true"} if picture else {})

    async def what_if(self, request: WhatIfRequest) -> WhatIf:
        return await self._post(WhatIf, "/v1/whatif", request)

    async def capacity_of(self, pod: dict[str, Any], limit: int) -> Capacity:
        return await self._post(Capacity, f"/v1/capacity?limit={limit}", pod)

    async def preemptions_of(self, pod: str | None, limit: int) -> Preemptions:
        params = {"limit": str(limit)} | ({"pod": pod} if pod else {})
        return await self._get(Preemptions, "/v1/preemptions", params) or Preemptions(items=())

    async def _get(self, kind: type[A], path: str, params: dict[str, str]) -> A | None:
        response = await self._sent(self._client.build_request("GET", path, params=params))
        return None if _is_about_a_pod(response) else self._read(kind, response)

    async def _post(self, kind: type[A], path: str, body: object) -> A:
        content, headers = msgspec.json.encode(body), {"Content-Type": "application/json"}
        return self._read(kind, await self._sent(self._client.build_request("POST", path, content=content, headers=headers)))

    async def _sent(self, request: httpx.Request) -> httpx.Response:
        try:
            return await self._client.send(request)
        except httpx.HTTPError as exc:
            what = "took too long to answer" if isinstance(exc, httpx.TimeoutException) else "cannot be reached"
            advice = "is it running, and is the address right? You may as well give --kubeconfig or --dump"
            if self._address == DEFAULT_SERVER:
                advice = "start one with `reprieve serve`, or give --server, --kubeconfig or --dump"
            raise StartUpError(f"Reprieve at {self._address} {what}; {advice}") from exc

    def _read(self, kind: type[A], response: httpx.Response) -> A:
        try:
            if response.status_code == httpx.codes.OK:
                return msgspec.json.decode(response.content, type=kind)
            message = msgspec.json.decode(response.content, type=Status).message
        except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
            raise self._somebody_else(response) from exc
        if response.status_code in (httpx.codes.NOT_FOUND, httpx.codes.METHOD_NOT_ALLOWED):
            raise self._somebody_else(response)
        raise StartUpError(f"{self._address}: {message}")

    def _somebody_else(self, response: httpx.Response) -> StartUpError:
        advice = "" if urlsplit(self._address).path in ("", "/") else "; give its address without a path"
        return StartUpError(f"{self._address} answered with status {response.status_code}, and not as a Reprieve does{advice}")


def _is_about_a_pod(response: httpx.Response) -> bool:
    """Whether this is a Reprieve that knows of no such pod: whoever serves no such path answers 404 as well."""
    if response.status_code != httpx.codes.NOT_FOUND:
        return False
    try:
        details = msgspec.json.decode(response.content, type=Status).details
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return isinstance(details, dict) and details.get("kind") == "pods"


def _address(given: str) -> str:
    """The address with its scheme.

    Raises:
        StartUpError: it is none.
    """
    address = given if "://" in given else f"http://{given}"
    try:
        parts = urlsplit(address)
        is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one or any(letter.isspace() for letter in address):
        raise StartUpError(f"{given}: not an address; write http://HOST:PORT")
    return address


def _questions_about(dump: Path, configuration: Configuration) -> Questions:
    objects = read(sys.stdin.buffer.read(), "standard input") if dump == STANDARD_INPUT else load(dump)
    return Questions.of(configuration, _state_of(dump, objects), templates_among(objects))


def _state_of(dump: Path, objects: list[dict[str, Any]]) -> ClusterState:
    try:
        return state_of(objects)
    except DecodeError as exc:
        raise StartUpError(f"{'standard input' if dump == STANDARD_INPUT else dump}: {' '.join(str(exc).split())}") from exc


def _bearer(token: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}
