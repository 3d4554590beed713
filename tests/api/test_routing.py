"""A scheduler answers probes before its routes are loaded, for the first other request, and all else as afterwards."""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Final

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette

from api.app import create_app
from api.routing import routed
from api.settings.settings import Settings

GOOD: Final = {"host": "127.0.0.1"}
FOREIGN: Final = {**GOOD, "origin": "http://elsewhere.example"}
PATHS: Final = (
    "/healthz", "/healthz/ping", "/readyz/nope", "/livez/", "/readyz/ping/x", "/healthz%2Fping", "/metrics", "/metrics/",
    "/metrics/slis", "/metrics/resources", "/", "/nothing", "/v1/queue", "/extender/filter", "/configz", "/ui/what-if",
)  # fmt: skip


def scheduler(allowed: str = "/*") -> Starlette:
    """A service that schedules and has not started yet; it knows nobody, and all may call the allowed paths."""
    return create_app(Settings(schedule=True, authorization_always_allow_paths=allowed))


def play(app: Starlette, story: Callable[[httpx.AsyncClient], Awaitable[None]], root_path: str = "") -> None:
    async def tell() -> None:
        transport = httpx.ASGITransport(app, root_path=root_path)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            await story(client)

    asyncio.run(tell())


@pytest.mark.parametrize("allowed", ["/*", "/healthz"], ids=["all may call", "callers are asked"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("headers", [GOOD, {"host": "elsewhere.example"}, FOREIGN], ids=["good", "host", "origin"])
def test_every_answer_is_the_same_before_and_after_routes_are_loaded(
    allowed: str, method: str, headers: dict[str, str]
) -> None:
    app = scheduler(allowed)
    unloaded, loaded = app.router.default, routed(app.state.settings, app.state)

    async def story(client: httpx.AsyncClient) -> None:
        for path in PATHS:
            app.router.default = unloaded
            before = await client.request(method, path, headers=headers)
            app.router.default = loaded
            after = await client.request(method, path, headers=headers)
            assert (path, before.status_code, before.headers, before.content) == (
                path,
                after.status_code,
                after.headers,
                after.content,
            )

    play(app, story)


def test_routes_are_loaded_once_for_many_that_come_at_once() -> None:
    app, earlier_threads = scheduler(), {*threading.enumerate()}

    async def story(client: httpx.AsyncClient) -> None:
        answers = await asyncio.gather(*(client.get(f"/nothing/{number}") for number in range(10)))
        probe = await client.get("/livez/ping")

        assert [answer.status_code for answer in (*answers, probe)] == [404] * 10 + [200]
        assert len({*threading.enumerate()} - earlier_threads) == 1

    play(app, story)


def test_routes_that_cannot_be_loaded_are_an_error_of_the_request_and_are_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = scheduler()

    async def story(client: httpx.AsyncClient) -> None:
        with monkeypatch.context() as broken:
            broken.setitem(sys.modules, "api.routing", None)
            failed = await asyncio.gather(*(client.get("/nothing") for _ in range(3)))
            probe = await client.get("/livez/ping")
        after = await client.get("/nothing")

        assert [answer.status_code for answer in (*failed, probe, after)] == [500, 500, 500, 200, 404]
        assert "internal error, id " in failed[0].text

    play(app, story)


def test_a_caller_that_is_gone_keeps_no_other_from_loading() -> None:
    app = scheduler()

    async def story(client: httpx.AsyncClient) -> None:
        first, second = (asyncio.ensure_future(client.get("/nothing")) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()

        assert (await second).status_code == 404

    play(app, story)


@pytest.mark.parametrize("is_loaded", [False, True])
def test_probes_are_answered_behind_a_proxy_that_puts_them_below_a_path(*, is_loaded: bool) -> None:
    """As `uvicorn --root-path /x` tells the service."""
    app = scheduler()
    if is_loaded:
        app.router.default = routed(app.state.settings, app.state)

    async def story(client: httpx.AsyncClient) -> None:
        paths = ("/livez/ping", "/readyz/nope", "/healthz?exclude=ping", "/metrics/slis")
        answers = [await client.get(f"/x{path}") for path in paths]

        assert [answer.status_code for answer in answers] == [200, 404, 200, 200]
        assert isinstance(app.router.default, FastAPI) is is_loaded

    play(app, story, "/x")
