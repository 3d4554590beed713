"""An httpx client over the embedded API."""

import asyncio
import json

import httpx

from reprieve.cluster.in_memory import EmbeddedTransport
from reprieve.cluster.kube_api import KubeApi
from tests.reprieve.cluster.api_calls import PODS_PATH, add_pod, make_api, pod


def client(api: KubeApi) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=EmbeddedTransport(api), base_url="http://embedded")


async def test_requests_and_answers_are_carried_as_they_are() -> None:
    async with client(make_api()) as http:
        created = await http.post(
            PODS_PATH, json=pod("a", labels={"app": "x y".replace(" ", "-")}), headers={"User-Agent": "me/1"}
        )
        listed = await http.get("/api/v1/pods", params={"labelSelector": "app in (x-y, z)", "limit": 5})

    assert (created.status_code, created.headers["content-type"]) == (201, "application/json")
    assert created.json()["metadata"]["managedFields"][0]["manager"] == "me"
    assert [item["metadata"]["name"] for item in listed.json()["items"]] == ["a"]


async def test_a_watch_is_under_way_when_its_response_is_there(api: KubeApi) -> None:
    async with (
        client(api) as http,
        http.stream("GET", "/api/v1/pods", params={"watch": "1", "timeoutSeconds": "9"}) as watch,
    ):
        add_pod(api, "a")
        events = [json.loads(line) async for line in watch.aiter_lines()]

    assert [event["type"] for event in events] == ["ADDED"]


async def test_a_watch_ends_when_its_response_is_closed(api: KubeApi) -> None:
    async with client(api) as http, http.stream("GET", "/api/v1/pods", params={"watch": "1"}) as watch:
        lines = watch.aiter_lines()
        asyncio.get_running_loop().call_later(3, add_pod, api, "a")
        await anext(lines)

    assert asyncio.get_running_loop().time() == 3
