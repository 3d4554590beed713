"""News for open pages: at once, on change, now and then, and until the service ends."""

import asyncio

from api.ui.streams import PINGS_EACH, Streams
from extender.testing import virtual_time
from extender.values import limits


def test_a_stream_tells_the_version_at_once_and_whenever_it_changes() -> None:
    async def story() -> list[bytes]:
        versions = iter(["1", "1", "2", "2"])
        streams = Streams()
        news = streams.follow(lambda: next(versions, "3"))
        return [await anext(news) for _ in range(4)]

    assert virtual_time.run(story()) == [
        b"retry: 2000\n\n",
        b"event: version\ndata: 1\n\n",
        b"event: version\ndata: 2\n\n",
        b"event: version\ndata: 3\n\n",
    ]


def test_a_stream_without_news_shows_that_it_is_there() -> None:
    async def story() -> tuple[bytes, float]:
        news = Streams().follow(lambda: "same")
        await anext(news)
        await anext(news)
        began = asyncio.get_running_loop().time()
        return await anext(news), asyncio.get_running_loop().time() - began

    told, waited = virtual_time.run(story())

    assert told == b": still here\n\n"
    assert waited == PINGS_EACH


def test_streams_end_when_the_service_does() -> None:
    async def story() -> list[bytes]:
        streams = Streams()
        news = streams.follow(lambda: "same")
        first = [await anext(news), await anext(news)]
        streams.close()
        return [*first, *[each async for each in news]]

    assert len(virtual_time.run(story())) == 2


def test_number_of_streams_is_limited_and_a_closed_one_makes_room() -> None:
    async def story() -> tuple[bool, bool]:
        streams = Streams()
        all_of_them = [streams.follow(lambda: "same") for _ in range(limits.STREAMS)]
        for news in all_of_them:
            await anext(news)
        full = streams.is_full
        await all_of_them[0].aclose()
        return full, streams.is_full

    assert virtual_time.run(story()) == (True, False)
