"""What only a real server can show: who may do what, and what its restart looks like from outside."""

import asyncio
import json
from dataclasses import replace

import pytest

from extender.client import errors
from extender.client.client import Client
from extender.client.paths import path
from extender.values.targets.target import token
from tests.kit.control_plane import ControlPlane

PODS = path("", "v1", "pods")


def test_unknown_token_is_refused(control_plane: ControlPlane):
    async def ask() -> None:
        client = Client(replace(control_plane.target(), credentials=token("wrong")))
        with pytest.raises(errors.Unauthorized, match="Unauthorized"):
            await client.get(PODS)
        await client.aclose()

    asyncio.run(ask())


def test_forbidden_request_names_the_missing_right(control_plane: ControlPlane):
    async def ask() -> None:
        client = Client(control_plane.target("nobody"))
        with pytest.raises(errors.Forbidden, match='User "nobody" cannot list resource "pods"'):
            await client.get(PODS)
        await client.aclose()

    asyncio.run(ask())


def test_a_watch_ends_with_its_server_and_requests_go_on_with_the_next(control_plane: ControlPlane):
    async def restart() -> dict[str, object]:
        client = Client(control_plane.target())
        version = json.loads(await client.get(PODS))["metadata"]["resourceVersion"]
        lines = []
        try:
            async with client.watch(PODS, params={"watch": "1", "resourceVersion": version}, silence=60) as events:
                stopping = asyncio.ensure_future(asyncio.to_thread(control_plane.stop_api_server))
                lines += [line async for line in events]
        except errors.NoAnswer:
            pass  # cut instead of ended
        await stopping
        with pytest.raises((errors.Unreachable, errors.NoAnswer)):
            await client.create(path("", "v1", "nodes"), {})
        await asyncio.to_thread(control_plane.start_api_server)
        found: dict[str, object] = json.loads(await client.get(PODS))
        await client.aclose()
        return found

    assert asyncio.run(restart())["kind"] == "PodList"


def test_history_from_before_a_restart_is_gone(control_plane: ControlPlane):
    async def watch_from_the_beginning() -> errors.ApiError:
        await asyncio.to_thread(control_plane.stop_api_server)
        await asyncio.to_thread(control_plane.start_api_server)
        client = Client(control_plane.target())
        try:
            async with client.watch(PODS, params={"watch": "1", "resourceVersion": "1"}, silence=30) as events:
                event = json.loads(await anext(events))
        finally:
            await client.aclose()
        assert event["type"] == "ERROR"
        return errors.from_status(event["object"])

    error = asyncio.run(watch_from_the_beginning())

    assert isinstance(error, errors.Gone)
    assert "too old resource version: 1" in error.message
