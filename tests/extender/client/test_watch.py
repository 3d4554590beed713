"""Watches: whole lines, as they come; an end that is told from a cut; silence that is noticed."""

import asyncio

import httpx
import pytest

from extender.client import errors
from extender.client.client import Client
from extender.testing import virtual_time
from extender.values import limits
from extender.values.targets.target import Target
from tests.extender.client.scripted import Scripted, answer, html, never, refusal, stream
from tests.extender.client.test_client import Renewed

PODS = "/api/v1/pods"


class Watched:
    """What a watch gave: its lines, what arrived with each, how it ended and when."""

    def __init__(self, server: Scripted, *, silence: float = 90.0, credentials: Renewed | None = None) -> None:
        self.lines: list[bytes] = []
        self.batches: list[list[bytes]] = []
        self.error: errors.ApiError | None = None
        self.ended_at = 0.0
        virtual_time.run(self._watch(server, silence, credentials))

    async def _watch(self, server: Scripted, silence: float, credentials: Renewed | None) -> None:
        target = Target("http://k8s", credentials=credentials) if credentials else Target("http://k8s")
        client = Client(target, transport=server)
        try:
            async with client.watch(
                PODS, params={"watch": "1", "allowWatchBookmarks": "true"}, silence=silence
            ) as lines:
                async for line in lines:
                    self.batches.append([line, *lines.arrived()])
                    self.lines += self.batches[-1]
        except errors.ApiError as error:
            self.error = error
        self.ended_at = asyncio.get_running_loop().time()
        await client.aclose()


def test_lines_come_whole_however_the_bytes_come():
    watched = Watched(Scripted(stream(b'{"a"', b":1}", b'\n{"b":2}\n{"c"', b":3}\n", b"\n", b'{"d":4}\n')))

    assert watched.lines == [b'{"a":1}', b'{"b":2}', b'{"c":3}', b'{"d":4}']
    assert watched.error is None


def test_lines_that_arrive_together_form_one_batch():
    watched = Watched(Scripted(stream(b"1\n2\n3\n", 1.0, b"4\n5", 1.0, b"6\n")))

    assert watched.batches == [[b"1", b"2", b"3"], [b"4"], [b"56"]]


def test_an_unfinished_line_is_dropped_at_the_end():
    watched = Watched(Scripted(stream(b'{"a":1}\n{"b":')))

    assert watched.lines == [b'{"a":1}']
    assert watched.error is None


@pytest.mark.parametrize(
    "cut",
    [
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("incomplete"),
        ConnectionResetError("reset"),
        RuntimeError("File descriptor 40 is used by transport"),
        ValueError("what a parser raises"),
    ],
)
def test_cut_connection_is_distinguished_from_an_end(cut: Exception):
    watched = Watched(Scripted(stream(b'{"a":1}\n{"b":', cut)))

    assert watched.lines == [b'{"a":1}']
    assert isinstance(watched.error, errors.NoAnswer)
    assert not watched.error.timed_out


def test_silence_means_that_the_connection_is_dead():
    watched = Watched(Scripted(stream(30.0, b"1\n", 89.0, b"2\n", 1_000_000.0)), silence=90)

    assert watched.lines == [b"1", b"2"]
    assert isinstance(watched.error, errors.NoAnswer)
    assert watched.error.timed_out
    assert watched.ended_at == 30 + 89 + 90


def test_bytes_of_an_unfinished_line_are_no_silence():
    watched = Watched(Scripted(stream(b"1", 60.0, b"2", 60.0, b"3\n")), silence=90)

    assert watched.lines == [b"123"]


def test_silence_before_the_answer_counts_too():
    watched = Watched(Scripted(never), silence=90)

    assert isinstance(watched.error, errors.NoAnswer)
    assert watched.ended_at == 90


async def test_time_that_the_reader_takes_is_no_silence():
    client = Client(Target("http://k8s"), transport=Scripted(stream(b"1\n", 1.0, b"2\n")))
    read = []
    async with client.watch(PODS, params={}, silence=90) as lines:
        async for line in lines:
            read.append(line)
            await asyncio.sleep(600)

    assert read == [b"1", b"2"]


def test_a_watch_may_go_on_for_ever():
    megabyte = b"x" * (1 << 20) + b"\n"

    watched = Watched(Scripted(stream(*[megabyte] * ((limits.WATCH_EVENT_BYTES >> 20) + 1))))

    assert len(watched.lines) == (limits.WATCH_EVENT_BYTES >> 20) + 1
    assert watched.error is None


def test_a_watch_is_not_compressed():
    """Compression would hold events back until there are enough of them."""
    server = Scripted(stream(b"1\n"))

    Watched(server)

    assert server.asked[0].headers["accept-encoding"] == "identity"


def test_an_event_without_an_end_is_given_up():
    megabyte = b"x" * (1 << 20)

    watched = Watched(Scripted(stream(*[megabyte] * ((limits.WATCH_EVENT_BYTES >> 20) + 1))))

    assert isinstance(watched.error, errors.NotKubernetes)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refusal(410, "Expired", "too old resource version"), errors.Gone),
        (refusal(403, "Forbidden"), errors.Forbidden),
        (refusal(500, "InternalError"), errors.ServerError),
        (answer(404, b"404 page not found"), errors.NotServed),
        (html(), errors.NotKubernetes),
        (answer(204, b""), errors.NotKubernetes),
        (httpx.ConnectError("refused"), errors.Unreachable),
        (httpx.ReadError("reset"), errors.NoAnswer),
    ],
)
def test_refused_watch_fails_with_the_kind_of_error_and_without_a_retry(
    reply: httpx.Response | Exception, kind: type[errors.ApiError]
):
    server = Scripted(reply)

    watched = Watched(server)

    assert type(watched.error) is kind
    assert len(server.asked) == 1


def test_a_server_that_wants_peace_says_for_how_long():
    server = Scripted(refusal(429, "TooManyRequests", retry_after="7"))

    watched = Watched(server)

    assert isinstance(watched.error, errors.TooManyRequests)
    assert watched.error.retry_after == 7
    assert watched.ended_at == 0


def test_a_refused_token_is_read_again_once():
    server = Scripted(refusal(401, "Unauthorized"), stream(b"1\n"))

    assert Watched(server, credentials=Renewed()).lines == [b"1"]
    assert [request.headers["authorization"] for request in server.asked] == ["Bearer 0", "Bearer 1"]
    assert isinstance(Watched(Scripted(refusal(401, "Unauthorized")), credentials=Renewed()).error, errors.Unauthorized)


class Endless(httpx.AsyncByteStream):
    """An event a second, until it is closed."""

    def __init__(self) -> None:
        self.closed = False

    async def __aiter__(self):
        while True:
            yield b"1\n"
            await asyncio.sleep(1)

    async def aclose(self) -> None:
        self.closed = True


async def test_leaving_ends_the_watch():
    body = Endless()

    async def begin(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "application/json"}, stream=body)

    async with Client(Target("http://k8s"), transport=Scripted(begin)).watch(PODS, params={}, silence=90) as lines:
        await anext(lines)

    assert body.closed


def test_exception_of_the_reader_passes_through_and_closes_the_watch():
    body = Endless()

    async def begin(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "application/json"}, stream=body)

    async def raise_within() -> None:
        async with Client(Target("http://k8s"), transport=Scripted(begin)).watch(PODS, params={}, silence=90):
            raise errors.Unauthorized("of another server")

    with pytest.raises(errors.Unauthorized, match="of another server"):
        virtual_time.run(raise_within())

    assert body.closed
