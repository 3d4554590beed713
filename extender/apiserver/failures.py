"""What an exception of the HTTP library means: the one place that knows them."""

import aiohttp
import httpx

from extender.apiserver.errors import ApiError, NoAnswer, NotKubernetes, Unreachable

TRANSPORT_ERRORS = (httpx.HTTPError, httpx.StreamError, aiohttp.ClientError, OSError)
"""All that a transport raises when a request fails, timeouts included."""

_NOTHING_SENT = (
    aiohttp.ClientConnectorError,  # refused, no such host, TLS, no way to the proxy
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,  # the proxy would not connect us
    aiohttp.InvalidURL,
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)


def failure(request: str, error: Exception) -> ApiError:
    """The `ApiError` for what a transport raised.

    Arguments:
        request: method and path, for the message.
        error: one of TRANSPORT_ERRORS.
    """
    # httpx-aiohttp calls every lost connection a ConnectTimeout; what really happened is the cause.
    cause = error.__cause__ if isinstance(error.__cause__, aiohttp.ClientError) else error
    if isinstance(cause, httpx.DecodingError):
        return NotKubernetes(f"{request}: the answer can not be decompressed")
    what = str(cause) or type(cause).__name__
    if isinstance(cause, _NOTHING_SENT):
        return Unreachable(f"{request}: {what}{_advice(cause)}")
    return NoAnswer(f"{request}: no answer: {what}", timed_out=isinstance(cause, TimeoutError | httpx.TimeoutException))


def _advice(cause: BaseException) -> str:
    if isinstance(cause, aiohttp.ClientConnectorCertificateError):
        return "; check certificate-authority and tls-server-name"
    return ""
