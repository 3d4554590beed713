"""What only a real server can show: who may do what, and what its restart looks like from outside."""

import asyncio
import json
from contextlib import aclosing, suppress
from dataclasses import replace

import pytest

from extender.client import errors
from extender.client.client import Client
from extender.client.paths import path
from extender.values.targets.target import token
from tests.kit.control_plane import ControlPlane

PODS = path("", "v1", "pods")


async def test_unknown_token_is_refused(control_plane: ControlPlane):
    async with aclosing(Client(replace(control_plane.target(), credentials=token("wrong")))) as client:
        with pytest.raises(errors.Unauthorized, match="Unauthorized"):
            await client.get(PODS)


async def test_forbidden_request_names_the_missing_right(control_plane: ControlPlane):
    async with aclosing(Client(control_plane.target("nobody"))) as client:
        with pytest.raises(errors.Forbidden, match='User "nobody" cannot list resource "pods"'):
            await client.get(PODS)


async def test_a_watch_ends_with_its_server_and_requests_go_on_with_the_next(control_plane: ControlPlane):
    async with aclosing(Client(control_plane.target())) as client:
        version = json.loads(await client.get(PODS))["metadata"]["resourceVersion"]
        with suppress(errors.NoAnswer):  # cut instead of ended
            async with client.watch(PODS, params={"watch": "1", "resourceVersion": version}, silence=60) as events:
                stopping = asyncio.ensure_future(asyncio.to_thread(control_plane.stop_api_server))
                async for _ in events:
                    pass
        await stopping
        with pytest.raises((errors.Unreachable, errors.NoAnswer)):
            await client.create(path("", "v1", "nodes"), {})
        await asyncio.to_thread(control_plane.start_api_server)

        assert json.loads(await client.get(PODS))["kind"] == "PodList"


async def test_history_from_before_a_restart_is_gone(control_plane: ControlPlane):
    control_plane.stop_api_server()
    control_plane.start_api_server()
    async with (
        aclosing(Client(control_plane.target())) as client,
        client.watch(PODS, params={"watch": "1", "resourceVersion": "1"}, silence=30) as events,
    ):
        event = json.loads(await anext(events))

    assert event["type"] == "ERROR"
    error = errors.from_status(event["object"])
    assert isinstance(error, errors.Gone)
    assert "too old resource version: 1" in error.message
