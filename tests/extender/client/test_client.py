"""Requests: what is sent, what comes back, what is tried again. Sockets are in `test_sockets.py`, watches in
`test_watch.py`.
"""

import asyncio
import gzip
import json
import logging
import random
import ssl
from collections.abc import Awaitable, Callable

import httpx
import pytest

from extender.client import errors
from extender.client.client import MERGE_PATCH, Client, RateLimit
from extender.values.targets.target import Credentials, Identity, Target, token
from tests.extender.client.scripted import OK, Scripted, answer, html, never, refusal

PODS = "/api/v1/pods"
BINDING = "/api/v1/namespaces/default/pods/web/binding"


def client_of(
    server: Scripted, *, credentials: Credentials | None = None, rate_limit: RateLimit | None = None
) -> Client:
    target = Target("https://k8s.example:6443", credentials=credentials or token("canary"))
    return Client(target, transport=server, rng=random.Random(1), rate_limit=rate_limit)


# What is sent


async def test_get_accepts_compressed_json_and_sends_credentials_and_user_agent():
    server = Scripted()

    body = await client_of(server).get(PODS, params={"limit": "500", "fieldSelector": "spec.nodeName!=,a=b"})

    request = server.asked[0]
    assert json.loads(body) == OK
    assert (request.method, request.url.path) == ("GET", PODS)
    assert dict(request.url.params) == {"limit": "500", "fieldSelector": "spec.nodeName!=,a=b"}
    assert request.headers["accept"] == "application/json"
    assert request.headers["accept-encoding"] == "gzip"
    assert request.headers["authorization"] == "Bearer canary"
    assert request.headers["user-agent"] == "reprieve"


@pytest.mark.parametrize(
    ("act", "method", "body", "content_type"),
    [
        pytest.param(
            lambda client: client.create(BINDING, {"kind": "Binding"}),
            "POST",
            {"kind": "Binding"},
            "application/json",
            id="create",
        ),
        pytest.param(
            lambda client: client.create(BINDING, b'{"kind":"Raw"}'),
            "POST",
            {"kind": "Raw"},
            "application/json",
            id="bytes as they are",
        ),
        pytest.param(lambda client: client.update(BINDING, {"a": 1}), "PUT", {"a": 1}, "application/json", id="update"),
        pytest.param(
            lambda client: client.patch(BINDING, {"a": None}, MERGE_PATCH),
            "PATCH",
            {"a": None},
            MERGE_PATCH,
            id="patch",
        ),
        pytest.param(
            lambda client: client.delete(BINDING, uid="u", grace_period_seconds=0),
            "DELETE",
            {
                "kind": "DeleteOptions",
                "apiVersion": "v1",
                "preconditions": {"uid": "u"},
                "gracePeriodSeconds": 0,
            },
            "application/json",
            id="delete what was meant",
        ),
        pytest.param(
            lambda client: client.delete(BINDING),
            "DELETE",
            {"kind": "DeleteOptions", "apiVersion": "v1"},
            "application/json",
            id="delete whatever",
        ),
    ],
)
async def test_writes_carry_what_is_written(
    act: Callable[[Client], Awaitable[bytes]], method: str, body: object, content_type: str
):
    server = Scripted(answer(201))

    await act(client_of(server))

    request = server.asked[0]
    assert (request.method, request.headers["content-type"]) == (method, content_type)
    assert request.headers["accept-encoding"] == "identity"
    assert json.loads(request.content) == body


async def test_the_server_may_have_a_path_of_its_own():
    server = Scripted()

    await Client(Target("https://rancher.example/k8s/clusters/c-1"), transport=server).get(PODS)

    assert str(server.asked[0].url) == "https://rancher.example/k8s/clusters/c-1/api/v1/pods"


async def test_closing_the_client_closes_its_transport_and_nothing_goes_out_any_more():
    server = Scripted()

    client = client_of(server)

    await client.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await client.get(PODS)

    assert server.closed
    assert not server.asked


# What comes back


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(html(), id="a login page"),
        pytest.param(answer(200, b"null"), id="null"),
        pytest.param(answer(200, b"[]"), id="a list of JSON"),
        pytest.param(answer(200, b""), id="nothing"),
        pytest.param(answer(200, b'{"kind":"PodList","items":['), id="half"),
        pytest.param(answer(200, b'{"kind":"Pod\xff"}'), id="no UTF-8"),
        pytest.param(answer(200, {"kind": "Status", "status": "Success"}), id="a Status"),
        pytest.param(
            answer(200, {"metadata": {}, "kind": "Status", "status": "Failure", "code": 500}),
            id="a failure as a success",
        ),
        pytest.param(answer(200, b"x" * (1 << 21)), id="long, and no JSON"),
        pytest.param(answer(302, b"", location="https://login.example"), id="a redirection"),
    ],
)
async def test_answer_that_is_not_from_kubernetes_is_refused(reply: httpx.Response):
    server = Scripted(reply)

    with pytest.raises(errors.NotKubernetes):
        await client_of(server).get(PODS)

    assert len(server.asked) == 1


def encoded(encoding: str, *pieces: bytes) -> Callable[[httpx.Request], Awaitable[httpx.Response]]:
    """Bytes that are said to be encoded so, as they come on a wire."""

    async def body():
        for piece in pieces:
            yield piece

    async def begin(_: httpx.Request) -> httpx.Response:
        return httpx.Response(
            200, headers={"content-type": "application/json", "content-encoding": encoding}, content=body()
        )

    return begin


async def test_a_gzip_bomb_is_given_up_at_the_cap():
    packed = gzip.compress(b" " * 10_000_000)
    pieces = (packed[start : start + 1000] for start in range(0, len(packed), 1000))

    with pytest.raises(errors.NotKubernetes) as caught:
        await client_of(Scripted(encoded("gzip", *pieces))).request("GET", PODS, max_bytes=1_000_000)

    assert "1000000" in caught.value.message


@pytest.mark.parametrize(
    ("encoding", "bytes_sent"),
    [
        pytest.param("gzip", b"this is not gzip", id="what claims to be gzip and is not"),
        pytest.param("gzip", gzip.compress(json.dumps(OK).encode())[:-9], id="half of it"),
        pytest.param("br", b"\x0b\x02\x80{}\x03", id="an encoding that was not accepted"),
    ],
)
async def test_answer_that_cannot_be_decompressed_is_refused(encoding: str, bytes_sent: bytes):
    with pytest.raises(errors.NotKubernetes) as caught:
        await client_of(Scripted(encoded(encoding, bytes_sent))).get(PODS)

    assert "cannot be decompressed" in caught.value.message


async def test_a_compressed_list_is_read():
    server = Scripted(encoded("gzip", gzip.compress(json.dumps(OK).encode())))

    assert json.loads(await client_of(server).get(PODS)) == OK


async def test_accepted_write_succeeds_whatever_its_body_says():
    assert await client_of(Scripted(answer(201, b'{"kind":"Sta'))).create(BINDING, {}) == b'{"kind":"Sta'


async def test_a_login_page_is_no_success_for_a_write_either():
    with pytest.raises(errors.NotKubernetes) as caught:
        await client_of(Scripted(html())).create(BINDING, {})

    assert caught.value.may_have_happened


# What is tried again


async def test_too_many_requests_wait_as_long_as_asked_and_a_little_longer():
    server = Scripted(refusal(429, "TooManyRequests", retry_after="7"), answer(201))

    await client_of(server).create(BINDING, {}, timeout=5)

    assert 7 <= server.times[1] <= 7 * 1.2


async def test_an_overloaded_server_that_says_when_is_asked_again_then_even_for_a_write():
    server = Scripted(refusal(503, "ServiceUnavailable", retry_after="1"), answer(201))

    await client_of(server).create(BINDING, {})

    assert len(server.asked) == 2
    assert server.times[1] >= 1


async def test_busy_server_is_asked_eleven_times_at_most():
    server = Scripted(refusal(429, "TooManyRequests", retry_after="1"))

    with pytest.raises(errors.TooManyRequests) as caught:
        await client_of(server).get(PODS)

    assert caught.value.retry_after == 1
    assert len(server.asked) == 11


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(refusal(500, "InternalError"), id="a bare 500"),
        pytest.param(refusal(429, "TooManyRequests"), id="429 without a time"),
        pytest.param(refusal(429, "TooManyRequests", retry_after="3600"), id="an hour is for the caller to wait"),
        pytest.param(
            refusal(429, "TooManyRequests", retry_after="Fri, 20 Nov 2026 10:00:00 GMT"), id="a date, as upstream"
        ),
        pytest.param(refusal(409, "Conflict", retry_after="1"), id="a conflict"),
        pytest.param(httpx.ConnectError("refused"), id="no connection"),
        pytest.param(httpx.ReadTimeout("slow"), id="a timeout"),
    ],
)
@pytest.mark.parametrize("act", [lambda client: client.get(PODS), lambda client: client.create(BINDING, {})])
async def test_other_failures_are_not_tried_again(
    reply: httpx.Response | Exception, act: Callable[[Client], Awaitable[bytes]]
):
    server = Scripted(reply)

    with pytest.raises(errors.ApiError):
        await act(client_of(server))

    assert len(server.asked) == 1


async def test_a_resource_version_ahead_of_the_server_is_for_the_caller_to_handle():
    body = {
        "kind": "Status",
        "reason": "Timeout",
        "code": 504,
        "details": {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
    }
    server = Scripted(answer(504, body, retry_after="1"))

    with pytest.raises(errors.TooLargeResourceVersion):
        await client_of(server).get(PODS)

    assert len(server.asked) == 1


async def test_a_get_that_was_cut_is_asked_again_after_a_second():
    server = Scripted(httpx.ReadError("reset"), httpx.RemoteProtocolError("cut"), answer())

    await client_of(server).get(PODS)

    assert server.times[1] >= 1
    assert len(server.asked) == 3


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_write_that_was_cut_is_never_repeated(method: str):
    server = Scripted(httpx.ReadError("reset"))

    with pytest.raises(errors.NoAnswer) as caught:
        await client_of(server).request(method, BINDING, body={})

    assert (caught.value.timed_out, caught.value.may_have_happened) == (False, True)
    assert len(server.asked) == 1


@pytest.mark.parametrize(("method", "seconds"), [("GET", 60.0), ("POST", 5.0)])
async def test_a_black_hole_is_left_after_the_time_that_the_caller_gave(method: str, seconds: float):
    with pytest.raises(errors.NoAnswer) as caught:
        await client_of(Scripted(never)).request(method, PODS, timeout=seconds)

    assert caught.value.timed_out
    assert asyncio.get_running_loop().time() == seconds


async def test_a_body_that_drips_for_ever_is_left_too():
    async def drip(_: httpx.Request) -> httpx.Response:
        async def body():
            while True:
                await asyncio.sleep(1)
                yield b" "

        return httpx.Response(200, headers={"content-type": "application/json"}, content=body())

    with pytest.raises(errors.NoAnswer):
        await client_of(Scripted(drip)).get(PODS, timeout=60)

    assert asyncio.get_running_loop().time() == 60


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (httpx.ConnectError("refused"), errors.Unreachable),
        (httpx.ConnectTimeout("slow"), errors.Unreachable),
        (httpx.PoolTimeout("busy"), errors.Unreachable),
        (httpx.ProxyError("503 from the proxy"), errors.Unreachable),
        (httpx.WriteError("reset"), errors.NoAnswer),
        (httpx.WriteTimeout("slow"), errors.NoAnswer),
        (ConnectionResetError("reset"), errors.NoAnswer),
        (OSError("out of descriptors"), errors.NoAnswer),
        (ssl.SSLError(1, "bad record"), errors.NoAnswer),
        (RuntimeError("File descriptor 40 is used by transport"), errors.NoAnswer),
        (ValueError("what a parser raises"), errors.NoAnswer),
        (AttributeError("what nobody expects"), errors.NoAnswer),
    ],
)
async def test_errors_distinguish_whether_anything_was_sent(raised: Exception, kind: type[errors.ApiError]):
    with pytest.raises(errors.ApiError) as caught:
        await client_of(Scripted(raised)).create(BINDING, {})

    assert type(caught.value) is kind


# Credentials


class Renewed(Credentials):
    """Another token each time the last one was refused."""

    def __init__(self) -> None:
        self.number = 0
        self.current = Identity("Bearer 0")

    async def identity(self, now: float) -> Identity:
        return self.current

    def invalidate(self, refused: Identity) -> None:
        if refused is self.current:
            self.number += 1
            self.current = Identity(f"Bearer {self.number}")


async def test_a_refused_token_is_read_again_once_even_for_a_write():
    server = Scripted(refusal(401, "Unauthorized"), answer(201))

    await client_of(server, credentials=Renewed()).create(BINDING, {})

    assert [request.headers["authorization"] for request in server.asked] == ["Bearer 0", "Bearer 1"]


async def test_second_401_after_renewed_credentials_is_final():
    server = Scripted(refusal(401, "Unauthorized", "Unauthorized"))

    with pytest.raises(errors.Unauthorized):
        await client_of(server, credentials=Renewed()).get(PODS)

    assert len(server.asked) == 2


async def test_simultaneous_401s_renew_credentials_once():
    async def refuse_the_first(request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(1)
        return answer() if request.headers["authorization"] == "Bearer 1" else refusal(401, "Unauthorized")

    credentials = Renewed()
    client = client_of(Scripted(refuse_the_first), credentials=credentials)

    await asyncio.gather(*(client.get(PODS) for _ in range(20)))

    assert credentials.number == 1


async def test_secrets_are_not_shown(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    target = Target("https://k8s.example", credentials=token("canary"), proxy="http://me:canary@proxy.example")
    texts = [repr(target)]
    for reply in (
        refusal(401, "Unauthorized"),
        httpx.ConnectError("refused"),
        httpx.ReadError("reset"),
        html(),
        answer(500, b"{"),
    ):
        with pytest.raises(errors.ApiError) as caught:
            await client_of(Scripted(reply)).create(BINDING, {"data": "canary"})
        error = caught.value
        texts += [str(error), repr(error), repr(error.__cause__), repr(error.__context__)]

    texts.append(caplog.text)
    assert not [text for text in texts if "canary" in text]


# How fast


async def test_requests_keep_to_the_rate_and_so_do_their_repetitions():
    server = Scripted(refusal(429, "TooManyRequests", retry_after="1"), answer())

    client = client_of(server, rate_limit=RateLimit(qps=0.1, burst=1))
    for _ in range(3):
        await client.get(PODS)

    assert server.times == pytest.approx([0, 10, 20, 30], abs=1.5)
