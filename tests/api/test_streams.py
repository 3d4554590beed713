"""News for open pages: at once, on change, now and then, and until the service ends."""

import asyncio

from api.callers.streaming import PINGS_EACH, Streams
from extender.values import limits


async def test_a_stream_tells_the_version_at_once_and_whenever_it_changes() -> None:
    versions = iter(["1", "1", "2", "2"])
    streams = Streams()
    news = streams.follow(lambda: next(versions, "3"))
    messages = [await anext(news) for _ in range(4)]

    assert messages == [
        b"retry: 2000\n\n",
        b"event: version\ndata: 1\n\n",
        b"event: version\ndata: 2\n\n",
        b"event: version\ndata: 3\n\n",
    ]


async def test_a_stream_without_news_shows_that_it_is_there() -> None:
    news = Streams().follow(lambda: "same")
    await anext(news)
    await anext(news)
    began = asyncio.get_running_loop().time()
    message, waited = await anext(news), asyncio.get_running_loop().time() - began

    assert message == b": still here\n\n"
    assert waited == PINGS_EACH


async def test_streams_end_when_the_service_does() -> None:
    streams = Streams()
    news = streams.follow(lambda: "same")
    first = [await anext(news), await anext(news)]
    streams.close()

    assert len([*first, *[message async for message in news]]) == 2


async def test_number_of_streams_is_limited_and_a_closed_one_makes_room() -> None:
    streams = Streams()
    all_of_them = [streams.follow(lambda: "same") for _ in range(limits.STREAMS)]
    for news in all_of_them:
        await anext(news)
    full = streams.is_full
    await all_of_them[0].aclose()

    assert (full, streams.is_full) == (True, False)
