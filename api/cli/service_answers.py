"""Answers of a Reprieve service, over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any, Final, TypeVar, final
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from api.callers.http_refusals import FailureStatus
from api.fatal_errors import StartUpError
from extender.answers.types import Answer, Capacity, Explanation, Preemptions, WhatIf, WhatIfRequest

SECONDS: Final = 60.0

A = TypeVar("A", bound=Answer)


@asynccontextmanager
async def from_service(server: str | None, default: str, token: str | None) -> AsyncIterator["ServiceAnswers"]:
    """Yields the service at an address, which may lack its scheme; at the default one if none was given.

    Raises:
        StartUpError: this is not an address, or the token would cross the network in clear text.
    """
    address = _address(server or default)
    if token and not _is_private(address):
        raise StartUpError(f"{address}: the token is for https only; give an https:// address, or use kubectl port-forward")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(base_url=address, timeout=SECONDS, headers=headers) as client:
        yield ServiceAnswers(client, address, is_default=not server)


@final
class ServiceAnswers:
    """Sends questions to a service. An answer that no Reprieve would give is a StartUpError."""

    def __init__(self, client: httpx.AsyncClient, address: str, *, is_default: bool) -> None:
        self._client = client
        self._address = address
        self._is_default = is_default

    async def explain(self, namespace: str, name: str, *, picture: bool = False) -> Explanation | None:
        path = f"/v1/explain/{quote(namespace, safe='')}/{quote(name, safe='')}"
        return await self._get(Explanation, path, {"picture": "true"} if picture else {})

    async def what_if(self, request: WhatIfRequest) -> WhatIf:
        return await self._post(WhatIf, "/v1/whatif", request)

    async def capacity_of(self, pod: dict[str, Any], limit: int) -> Capacity:
        return await self._post(Capacity, f"/v1/capacity?limit={limit}", pod)

    async def preemptions_of(self, pod: str, limit: int) -> Preemptions:
        """Returns the last preemptions that a pod made or fell victim to, newest first."""
        params = {"limit": str(limit), "pod": pod}
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
            advice = "is it running, and is the address right? --kubeconfig or --dump need no service"
            if self._is_default:
                advice = "start one with `reprieve serve`, or give --server, --kubeconfig or --dump"
            raise StartUpError(f"Reprieve at {self._address} {what}; {advice}") from exc

    def _read(self, kind: type[A], response: httpx.Response) -> A:
        try:
            if response.status_code == httpx.codes.OK:
                return msgspec.json.decode(response.content, type=kind)
            message = msgspec.json.decode(response.content, type=FailureStatus).message
        except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
            raise self._not_a_reprieve(response) from exc
        if response.status_code in (httpx.codes.NOT_FOUND, httpx.codes.METHOD_NOT_ALLOWED):
            raise self._not_a_reprieve(response)
        raise StartUpError(f"{self._address}: {message}")

    def _not_a_reprieve(self, response: httpx.Response) -> StartUpError:
        advice = "" if urlsplit(self._address).path in ("", "/") else "; give its address without a path"
        return StartUpError(f"{self._address} answered with status {response.status_code}, and not as a Reprieve does{advice}")


def _is_about_a_pod(response: httpx.Response) -> bool:
    """Whether a Reprieve answered that there is no such pod. Any server answers 404 at a path that it does not have."""
    if response.status_code != httpx.codes.NOT_FOUND:
        return False
    try:
        details = msgspec.json.decode(response.content, type=FailureStatus).details
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return isinstance(details, dict) and details.get("kind") == "pods"


def _address(given: str) -> str:
    address = given if "://" in given else f"http://{given}"
    try:
        parts = urlsplit(address)
        is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one or any(letter.isspace() for letter in address):
        raise StartUpError(f"{given}: not an address; write http://HOST:PORT")
    return address


def _is_private(address: str) -> bool:
    """Whether nobody on the network can read what is sent to the address."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    try:
        return parts.scheme == "https" or ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
