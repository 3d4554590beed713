"""Answers of a Reprieve service over HTTP. A silent one is given up in seconds, one that works on an answer later."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any, Final, Literal, TypeVar, cast, final
from urllib.parse import urlsplit

import httpx
import msgspec

from extender.answers.catalogue import ClusterQuestion, PodsQuestion, Question
from extender.answers.types import AboutService
from extender.values import limits
from reprieve.errors import SourceAwayError, StartUpError

REACH_SECONDS: Final = 5.0
"""The time in which a service has to answer what takes it no time."""
ANSWER_SECONDS: Final = 120.0
"""The time for the answer to a question, once the service is known to answer."""
LOCAL_SECONDS: Final = 1.0
"""The time in which a service on this machine has to say which cluster it follows."""

A = TypeVar("A")


class _FailureStatus(msgspec.Struct):
    """What each refusal of a Reprieve says: parts of a metav1.Status."""

    message: str
    reason: str
    code: int
    details: Any = None


@asynccontextmanager
async def from_service(
    server: str | None, default: str, token: str | None, tell: Callable[[str], None] = lambda _: None
) -> AsyncIterator["ServiceAnswers"]:
    """Yields the service at an address, or the default one. Raises StartUpError, also for a token in clear text.

    `tell` is called once with each warning that the service gives beside its answers.
    """
    address = _address(server or default)
    if token and not _is_private(address):
        raise StartUpError(
            f"{address}: the token is sent over https only; give an https:// address, or use kubectl port-forward"
        )
    async with _client(address, token) as client:
        service = ServiceAnswers(client, address, tell, is_default=not server)
        await service.reach()
        yield service


async def names_in_service(
    server: str | None, default: str, token: str | None, kind: Literal["pods", "nodes", "namespaces"], namespace: str
) -> list[tuple[str, str]]:
    """Returns the names that the service knows, each with its namespace. Raises as `from_service`."""
    async with from_service(server, default, token) as service:
        if kind == "nodes":
            return [("", node.name) for node in (await service.ask(ClusterQuestion())).nodes]
        pods = await service.ask(PodsQuestion(namespace=namespace if kind == "pods" else "", limit=limits.PODS_LISTED))
    if kind == "namespaces":
        return [("", namespace_pods.namespace) for namespace_pods in pods.namespaces]
    return [(pod.pod.namespace, pod.pod.name) for pod in pods.items]


async def cluster_followed_by(address: str, token: str | None) -> str | None:
    """Returns the URL of the cluster that this machine's service follows; None without one, or if it does not tell."""
    try:
        async with asyncio.timeout(LOCAL_SECONDS), _client(address, token) as client:
            response = await client.get("/v1/about")
            return msgspec.json.decode(response.content, type=AboutService).cluster or None
    except (httpx.HTTPError, TimeoutError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _client(address: str, token: str | None) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    # How long an answer may take is said around the whole request: one that arrives byte by byte would never be late.
    return httpx.AsyncClient(base_url=address, timeout=None, headers=headers)  # noqa: S113


@final
class ServiceAnswers:
    """Sends questions to a service. An answer that no Reprieve would give is a StartUpError."""

    remembers: Final = True

    def __init__(
        self, client: httpx.AsyncClient, address: str, tell: Callable[[str], None], *, is_default: bool
    ) -> None:
        self._client = client
        self._address = address
        self._is_default = is_default
        self._tell = tell
        self._told = {""}

    async def ask(self, question: Question[A]) -> A:
        """Returns the answer; None if what the question is about does not exist, where the question says so."""
        method, path, parameters = question.address()
        body = None if not question.row.body else msgspec.json.encode(getattr(question, question.row.body))
        headers = {} if body is None else {"Content-Type": "application/json"}
        response = await self._sent(
            self._client.build_request(method, path, params=parameters, content=body, headers=headers)
        )
        self._warn(response.headers.get("warning", ""))
        if _is_lacking(question.row.lacking[0], response):
            return cast("A", None)
        return cast("A", self._read(question.answer_type(), response))

    def _warn(self, warning: str) -> None:
        """Tells each warning of the service once."""
        if warning not in self._told:
            self._told.add(warning)
            self._tell(warning.removeprefix("299 - ").strip('"'))

    async def reach(self) -> None:
        """Returns once the service has answered anything. Raises SourceAwayError if it does not, in time."""
        await self._sent(self._client.build_request("GET", "/v1/about"), REACH_SECONDS)

    async def _sent(self, request: httpx.Request, seconds: float = ANSWER_SECONDS) -> httpx.Response:
        try:
            async with asyncio.timeout(seconds):
                return await self._client.send(request)
        except TimeoutError as exc:
            raise self._away(f"has not answered within {seconds:.0f} s") from exc
        except httpx.HTTPError as exc:
            if "certificate" in str(exc).lower():
                what = f"has a certificate that is not trusted here ({exc})"
                raise self._away(what, "SSL_CERT_FILE=FILE trusts the authorities in FILE") from exc
            what = (
                "cannot be reached"
                if isinstance(exc, httpx.ConnectError)
                else "closed the connection during its answer"
            )
            raise self._away(what) from exc

    def _away(
        self, what: str, advice: str = "is it running, and is the address right? --kubeconfig or --dump need no service"
    ) -> SourceAwayError:
        if self._is_default:
            advice = "start one with `reprieve serve`, or give --server, --kubeconfig or --dump"
        return SourceAwayError(f"Reprieve at {self._address} {what}; {advice}")

    def _read(self, kind: Any, response: httpx.Response) -> Any:
        code = response.status_code
        try:
            if code == httpx.codes.OK:
                return msgspec.json.decode(response.content, type=kind)
            message = msgspec.json.decode(response.content, type=_FailureStatus).message
        except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
            raise self._not_a_reprieve(response) from exc
        if code in (httpx.codes.NOT_FOUND, httpx.codes.METHOD_NOT_ALLOWED):
            raise self._not_a_reprieve(response)
        if code == httpx.codes.UNAUTHORIZED:
            raise SourceAwayError(f"{self._address}: {message}; give --token, such as $(kubectl create token NAME)")
        if code == httpx.codes.FORBIDDEN:
            raise SourceAwayError(
                f"{self._address}: {message}; ask for a role that lets you list pods there, or give another --token"
            )
        if code >= httpx.codes.INTERNAL_SERVER_ERROR:
            raise SourceAwayError(
                f"{self._address}: {message}; try again, or see its log; --kubeconfig or --dump need no service"
            )
        raise StartUpError(f"{self._address}: {message}")

    def _not_a_reprieve(self, response: httpx.Response) -> StartUpError:
        advice = "give its address without a path"
        if urlsplit(self._address).path in ("", "/"):
            advice = "is that the address of `reprieve serve` itself, not of a proxy in front of it?"
        return SourceAwayError(
            f"{self._address} answered with status {response.status_code}, which is not an answer of Reprieve; {advice}"
        )


def _is_lacking(kind: str, response: httpx.Response) -> bool:
    """Whether a Reprieve answered that there is no such object: any server answers 404 at a path that it lacks."""
    if response.status_code != httpx.codes.NOT_FOUND:
        return False
    try:
        details = msgspec.json.decode(response.content, type=_FailureStatus).details
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return isinstance(details, dict) and details.get("kind") == kind


def _address(server: str) -> str:
    address = server if "://" in server else f"http://{server}"
    try:
        parts = urlsplit(address)
        is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one or any(letter.isspace() for letter in address):
        raise StartUpError(f"{server}: not an address; write http://HOST:PORT")
    return address


def _is_private(address: str) -> bool:
    """Whether nobody on the network can read what is sent to the address."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    try:
        return parts.scheme == "https" or ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
