"""An httpx client over the embedded API."""

import asyncio
import json
from typing import Any

import httpx

from extender.cluster.in_memory import EmbeddedTransport
from extender.cluster.kube_api import KubeApi
from extender.testing import virtual_time
from tests.extender.cluster.api_calls import PODS_PATH, add_pod, make_api, pod


def client(api: KubeApi) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=EmbeddedTransport(api), base_url="http://embedded")


def test_requests_and_answers_are_carried_as_they_are() -> None:
    async def story() -> tuple[httpx.Response, httpx.Response]:
        async with client(make_api()) as http:
            created = await http.post(
                PODS_PATH, json=pod("a", labels={"app": "x y".replace(" ", "-")}), headers={"User-Agent": "me/1"}
            )
            return created, await http.get("/api/v1/pods", params={"labelSelector": "app in (x-y, z)", "limit": 5})

    created, listed = virtual_time.run(story())

    assert (created.status_code, created.headers["content-type"]) == (201, "application/json")
    assert created.json()["metadata"]["managedFields"][0]["manager"] == "me"
    assert [item["metadata"]["name"] for item in listed.json()["items"]] == ["a"]


def test_a_watch_is_under_way_when_its_response_is_there() -> None:
    async def story() -> list[Any]:
        api = make_api()
        async with (
            client(api) as http,
            http.stream("GET", "/api/v1/pods", params={"watch": "1", "timeoutSeconds": "9"}) as watch,
        ):
            add_pod(api, "a")
            return [json.loads(line) async for line in watch.aiter_lines()]

    assert [event["type"] for event in virtual_time.run(story())] == ["ADDED"]


async def test_a_watch_ends_when_its_response_is_closed() -> None:
    api = make_api()
    async with client(api) as http, http.stream("GET", "/api/v1/pods", params={"watch": "1"}) as watch:
        lines = watch.aiter_lines()
        asyncio.get_running_loop().call_later(3, add_pod, api, "a")
        await anext(lines)

    assert asyncio.get_running_loop().time() == 3
