"""Requests to one API server, and watches; and their rate limit: `qps` and `burst` of a clientConnection."""
# ruff: noqa: ASYNC109 - a timeout here is for one attempt of several, which `asyncio.timeout` around the call cannot
# express

import asyncio
import math
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from time import perf_counter
from typing import Any, final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from extender.client import errors
from extender.client.request_metrics import ATTEMPTS, DURATIONS, ERROR
from extender.client.transport.carrier import (
    Body,
    Carried,
    Carrier,
    ClientRequest,
    ClientResponse,
    Headers,
    Transport,
    WatchLines,
)
from extender.client.transport.connections import Connections
from extender.values import limits
from extender.values.targets.target import Identity, Target


@final
class RateLimit:
    """A token bucket: `burst` requests at once, `qps` a second in the long run, in order of arrival.

    Upstream: client-go/util/flowcontrol/throttle.go, NewTokenBucketRateLimiter.
    """

    def __init__(self, qps: float, burst: int) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"a rate limit needs a positive qps and burst, not {qps:g} and {burst}")
        self._qps = qps
        self._burst = burst
        self._tokens = float(burst)
        self._filled_at = -math.inf

    async def wait(self) -> None:
        """Returns when a request may be sent. A caller that is cancelled gives its token back."""
        now = asyncio.get_running_loop().time()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now
        self._tokens -= 1  # below zero by the number of callers that wait
        if self._tokens >= 0:
            return
        try:
            await asyncio.sleep(-self._tokens / self._qps)
        except asyncio.CancelledError:
            self._tokens += 1
            raise


JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

DEFAULT_MAX_RETRIES = 10
"""Upstream: client-go/rest/request.go, defaultMaxRetries."""


@final
class Client:
    """Speaks HTTP/1.1 with one API server.

    Responses and errors of the server are returned or raised unchanged; a response that may not come from an API server
    at all is `NotKubernetes`. Redirects are not followed. Nothing that it raises or logs contains a secret.
    """

    def __init__(
        self,
        target: Target,
        *,
        transport: Transport | None = None,
        rng: random.Random | None = None,
        rate_limit: RateLimit | None = None,
        user_agent: str = "reprieve",
        fence: Callable[[], str | None] = lambda: None,
        write_seconds: float = math.inf,
    ) -> None:
        """Opens nothing yet.

        Arguments:
            transport: used instead of sockets; closed with this client.
            rate_limit: for requests; watches do not count, as upstream.
            fence: returns why a write that is about to be sent must not be; None if it may.
            write_seconds: the most seconds of one attempt at a write, whatever its timeout.
        """
        self._target = target
        self._host = urlsplit(target.server).netloc
        carrier: Carrier | None = None
        if transport is not None:
            from extender.client.transport.in_memory import TransportCarrier  # noqa: PLC0415 - httpx takes long to load

            carrier = TransportCarrier(transport, target.server)
        self._connections = Connections(target, carrier)
        self._rng = rng or random.Random()
        self._rate_limit = rate_limit
        self._user_agent = user_agent
        self._fence = fence
        self._write_seconds = write_seconds

    @classmethod
    def over(cls, transport: Transport) -> "Client":
        """Returns a client that reaches its API server by the transport only, without a socket."""
        return cls(Target("http://embedded"), transport=transport)

    @property
    def namespace(self) -> str:
        return self._target.namespace

    async def get(self, path: str, *, params: Mapping[str, str] | None = None, timeout: float = 30.0) -> bytes:
        """Returns an object, or a list."""
        return await self.request("GET", path, params=params, timeout=timeout)

    def create(self, path: str, obj: object, *, timeout: float = 30.0) -> Coroutine[Any, Any, bytes]:
        """Returns the created object. `path` is that of the resource, or of a subresource such as `binding`."""
        return self.request("POST", path, body=obj, timeout=timeout)

    async def update(self, path: str, obj: object, *, timeout: float = 30.0) -> bytes:
        return await self.request("PUT", path, body=obj, timeout=timeout)

    async def patch(self, path: str, patch: object, content_type: str, *, timeout: float = 30.0) -> bytes:
        """Returns the patched object. `content_type` is one of the patch types above."""
        return await self.request("PATCH", path, body=patch, content_type=content_type, timeout=timeout)

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        grace_period_seconds: int | None = None,
        timeout: float = 30.0,
    ) -> bytes:
        """Deletes an object if it still has this uid; raises Conflict otherwise."""
        options: dict[str, object] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        if grace_period_seconds is not None:
            options["gracePeriodSeconds"] = grace_period_seconds
        return await self.request("DELETE", path, body=options, timeout=timeout)

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = JSON,
        timeout: float = 30.0,
        max_bytes: int | None = None,
    ) -> bytes:
        """Returns the body of the response.

        It retries at most ten times: responses of 429 or 5xx with a Retry-After (after that many seconds and some
        jitter), and a GET whose connection was cut (after a second). After a 401 it tries once more with credentials
        read again.

        Arguments:
            body: bytes are sent as they are; anything else is encoded as JSON.
            timeout: seconds for one attempt, from the first byte out to the last in; at most half for the connection.
            max_bytes: decompressed; by default limits.READ_BYTES for a GET and limits.WRITE_BYTES for others.

        Raises ApiError; for a write, its `may_have_happened` tells whether it may have been performed.
        """
        content = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        headers = self._headers(compressed=method == "GET")
        if content:
            headers += (("Content-Type", content_type),)
        request = ClientRequest(method, _with_query(path, params or {}), headers, content)
        cap = max_bytes or (limits.READ_BYTES if method == "GET" else limits.WRITE_BYTES)
        if method != "GET":
            timeout = min(timeout, self._write_seconds)
        # A write is only retried when the server has refused it, so that it is never performed twice; see
        # `_wait_before_retry`.
        retries = 0
        is_second_identity = False
        began = perf_counter()
        try:
            while True:
                if self._rate_limit is not None:
                    await self._rate_limit.wait()
                try:
                    return await self._attempt(request, timeout, cap)
                except errors.Unauthorized:
                    if is_second_identity:
                        raise
                    is_second_identity = True
                except errors.ApiError as error:
                    wait = _wait_before_retry(method, error)
                    if wait is None or retries == DEFAULT_MAX_RETRIES:
                        raise
                    retries += 1
                    await asyncio.sleep(wait * (1 + 0.2 * self._rng.random()))
        finally:
            DURATIONS.observe(perf_counter() - began, method, self._host)

    @asynccontextmanager
    async def watch(self, path: str, *, params: Mapping[str, str], silence: float) -> AsyncIterator[WatchLines]:
        """Yields the lines of a watch with these params, `watch=1` among them, while the body of the `async with` runs.

        Only a 401 is retried, once, because the caller decides where to resume. The error of a 429 contains when. After
        `silence` seconds without a byte the connection counts as dead; bookmarks come every minute when requested. The
        iterator raises ApiError, too.
        """
        request = ClientRequest("GET", _with_query(path, params), self._headers(compressed=False))
        try:
            opened, body = await self._open_watch(request, silence)
        except errors.Unauthorized:
            opened, body = await self._open_watch(request, silence)
        async with opened:
            yield WatchLines(request, body, silence)

    async def aclose(self) -> None:
        """Closes all connections. Requests and watches in flight fail."""
        await self._connections.aclose()

    async def _attempt(self, request: ClientRequest, seconds: float, cap: int) -> bytes:
        is_write = request.method != "GET"
        pool, identity = await self._connections.lend()
        try:
            # Checked here, because the rate limit, retries and credentials may have taken time since the caller checked
            # it.
            if is_write and (why_not := self._fence()) is not None:
                raise errors.Fenced(why_not)
            with Carried(request, "no answer within", seconds):
                response = await self._send(pool.carrier, identity, request, seconds)
                try:
                    if not 200 <= response.status < 300:
                        raise await _refusal(request, response)
                    _check_content_type(request, response)
                    body = await Body(request, response).read(cap)
                finally:
                    await response.aclose()
        except errors.Unauthorized:
            self._connections.refuse(identity)
            raise
        finally:
            await self._connections.give_back(pool)
        if not is_write:
            _check_kind(request, body)
        return body

    async def _open_watch(self, request: ClientRequest, seconds: float) -> tuple[AsyncExitStack, Body]:
        async with AsyncExitStack() as stack:
            pool, identity = await self._connections.lend()
            stack.push_async_callback(self._connections.give_back, pool)
            # The head of the response comes as soon as the watch begins, long before its first event.
            try:
                with Carried(request, "no answer within", seconds):
                    response = await self._send(pool.carrier, identity, request, seconds)
                    stack.push_async_callback(response.aclose)
                    if response.status != 200:
                        raise await _refusal(request, response)
                    _check_content_type(request, response)
            except errors.Unauthorized:
                self._connections.refuse(identity)
                raise
            body = Body(request, response)
            return stack.pop_all(), body

    async def _send(
        self, carrier: Carrier, identity: Identity, request: ClientRequest, seconds: float
    ) -> ClientResponse:
        code = ERROR
        if identity.authorization is not None:
            request = request._replace(headers=(*request.headers, ("Authorization", identity.authorization)))
        try:
            # A timeout of the connection happens, for certain, before anything was sent.
            connect_seconds = min(seconds / 2, limits.CONNECT_SECONDS)
            deadline = asyncio.get_running_loop().time() + seconds
            response = await carrier.send(request, connect_seconds, deadline)
            code = str(response.status)
            return response
        finally:
            ATTEMPTS[code, request.method, self._host] += 1

    def _headers(self, *, compressed: bool) -> Headers:
        return (
            ("Accept", JSON),
            ("Accept-Encoding", "gzip" if compressed else "identity"),
            ("User-Agent", self._user_agent),
        )


def _with_query(path: str, params: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(params, quote_via=quote)}" if params else path


def _wait_before_retry(method: str, error: errors.ApiError) -> float | None:
    """Returns the seconds to wait; None if another try would be of no use, or might perform a write twice.

    Upstream: client-go/rest/with_retry.go, IsNextRetry.
    """
    if isinstance(error, errors.NoAnswer):
        return 1.0 if method == "GET" and not error.timed_out else None
    if isinstance(error, errors.TooLargeResourceVersion):
        return None  # the caller decides which version to request next
    if (
        error.retry_after is None
        or error.retry_after > limits.RETRY_AFTER_SECONDS
        or not (error.status == 429 or error.status >= 500)
    ):
        return None
    return error.retry_after


async def _refusal(request: ClientRequest, response: ClientResponse) -> errors.ApiError:
    try:
        body = await Body(request, response).read(limits.ERROR_BYTES)
    except errors.NotKubernetes:
        body = b""
    # Whole seconds only, as client-go/rest/request.go, retryAfterSeconds.
    text = response.header("retry-after")
    retry_after = float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
    return errors.from_response(str(request), response.status, body, retry_after=retry_after)


def _check_content_type(request: ClientRequest, response: ClientResponse) -> None:
    """Raises NotKubernetes for a response that is not JSON, such as a login page."""
    content_type = response.header("content-type")
    if content_type not in ("", JSON) and content_type.partition(";")[0].strip().lower() != JSON:
        raise errors.NotKubernetes(
            f"{request}: answered {response.status} with {content_type[:64]!r} instead of JSON", status=response.status
        )


class _Kind(msgspec.Struct):
    kind: str = ""
    message: str = ""


_read_kind = msgspec.json.Decoder(_Kind)


def _check_kind(request: ClientRequest, body: bytes) -> None:
    """Raises NotKubernetes if the body is a Status or no JSON object, where an object was requested."""
    if len(body) > limits.ERROR_BYTES:
        # No Status is this long, and the caller decodes it anyway: reading it twice would take too long.
        head = _Kind() if body.lstrip()[:1] == b"{" else None
    else:
        try:
            head = _read_kind.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            head = None
    if head is None:
        raise errors.NotKubernetes(f"{request}: the answer is no JSON object", status=200)
    if head.kind == "Status":
        raise errors.NotKubernetes(f"{request}: answered with a Status: {head.message}", status=200)
