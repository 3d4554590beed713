"""The embedded API over real sockets and bare ASGI."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from api.callers.http_refusals import Refusal
from api.kubernetes import KubernetesApp
from extender.values import limits
from reprieve.cluster.kube_api import KubeApi
from tests.kit.cluster import make_registry
from tests.kit.service import in_a_thread
from tests.kit.waiting import DEADLINE

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def an_app() -> KubernetesApp:
    return KubernetesApp(KubeApi(make_registry("default", "kube-system")))


@contextmanager
def serving() -> Iterator[httpx.Client]:
    config = uvicorn.Config(an_app(), port=0, log_config=None, timeout_graceful_shutdown=1, lifespan="on")
    with (
        in_a_thread(uvicorn.Server(config)) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE, trust_env=False) as client,
    ):
        yield client


def test_objects_are_created_read_listed_bound_and_deleted_over_a_socket() -> None:
    with serving() as client:
        created = client.post(PODS, json=POD)
        listed = client.get("/api/v1/pods", params={"fieldSelector": "spec.nodeName="})
        bound = client.post(
            f"{PODS}/web/binding", json={"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n"}}
        )
        read = client.get(f"{PODS}/web")
        deleted = client.request("DELETE", f"{PODS}/web", json={"gracePeriodSeconds": 0})
        not_found = client.get(f"{PODS}/web")

    statuses = [answer.status_code for answer in (created, listed, bound, read, deleted, not_found)]
    assert statuses == [201, 200, 201, 200, 200, 404]
    assert [item["metadata"]["name"] for item in listed.json()["items"]] == ["web"]
    assert read.json()["spec"]["nodeName"] == "n"
    assert not_found.json()["reason"] == "NotFound"


TRANSCRIPT = json.loads((Path(__file__).parents[1] / "reprieve/cluster/transcript.json").read_text())


@pytest.mark.parametrize(
    "name",
    [
        "node-create-0",
        "node-get-404",
        "pod-list-empty",
        "pod-create",
        "pod-create-invalid-422",
        "pod-create-malformed-400",
        "lease-create",
    ],
)
def test_recorded_calls_are_answered_alike_over_a_socket(name: str) -> None:
    call, recorded = TRANSCRIPT[name]["request"], TRANSCRIPT[name]["response"]
    headers = {"Accept": call["accept"], "User-Agent": "Python-urllib/3.11"}
    content = b"" if call["body"] is None else json.dumps(call["body"], separators=(",", ":")).encode()
    if content:
        headers["Content-Type"] = call["contentType"]

    with serving() as client:
        answer = client.request(call["method"], call["path"], content=content, headers=headers)

    body = answer.json()
    assert answer.status_code == recorded["status"]
    assert {name: answer.headers[name] for name in ("Cache-Control", "Content-Type")} == {
        name: recorded["headers"][name] for name in ("Cache-Control", "Content-Type")
    }
    assert {key: value for key, value in body.items() if key != "metadata"} == {
        key: value for key, value in recorded["body"].items() if key != "metadata"
    }


def test_a_watch_streams_each_change_as_it_comes_and_ends_in_time() -> None:
    with (
        serving() as client,
        client.stream("GET", "/api/v1/pods", params={"watch": "1", "timeoutSeconds": "1"}) as watch,
    ):
        client.post(PODS, json=POD)
        events = [json.loads(line) for line in watch.iter_lines()]

    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [("ADDED", "web")]


def test_paths_and_queries_are_decoded_once() -> None:
    with serving() as client:
        selected = client.get("/api/v1/namespaces/%64efault/pods?labelSelector=app%20in%20(a%2Cb)")
        refused = client.get("/api/v1/pods?labelSelector=%2525")

    assert selected.status_code == 200
    assert refused.status_code == 400


def test_a_body_beyond_the_limit_is_refused() -> None:
    with serving() as client:
        answer = client.post(
            PODS, content=b" " * (limits.API_BODY_BYTES + 1), headers={"content-type": "application/json"}
        )

    assert answer.status_code == 413
    assert answer.json()["message"] == f"Request entity too large: limit is {limits.API_BODY_BYTES}"


class _Caller:
    """A bare ASGI caller that hangs up when told to."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.is_answered = asyncio.Event()
        self.hangs_up = asyncio.Event()
        self._asked = False

    async def receive(self) -> dict[str, Any]:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b""}
        await self.hangs_up.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(message)
        self.is_answered.set()


def _scope(path: str, query: bytes = b"") -> dict[str, Any]:
    return {"type": "http", "method": "GET", "path": path, "query_string": query, "headers": []}


async def test_a_watch_is_over_when_its_caller_hangs_up() -> None:
    caller = _Caller()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(an_app()(_scope("/api/v1/pods", b"watch=1"), caller.receive, caller.send))
        await caller.is_answered.wait()
        caller.hangs_up.set()

    assert [message["type"] for message in caller.sent] == ["http.response.start"]


@pytest.mark.parametrize("scope", [_scope("/api/v1/pods"), _scope("/nowhere")], ids=["served", "not served"])
async def test_a_caller_that_hangs_up_before_its_body_has_come_is_not_answered(scope: dict[str, Any]) -> None:
    caller = _Caller()
    caller._asked = True
    caller.hangs_up.set()

    await an_app()(scope, caller.receive, caller.send)

    assert caller.sent == []


async def test_answers_that_are_not_read_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.values.limits.API_REQUESTS", 1)
    app, may_go_on, codes = an_app(), asyncio.Event(), list[int]()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            codes.append(message["status"])
        else:
            await may_go_on.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(app(_scope(PODS), _Caller().receive, send))
        await asyncio.sleep(0)
        with pytest.raises(Refusal) as refused:
            await app(_scope(PODS), _Caller().receive, send)
        may_go_on.set()
    await app(_scope(PODS), _Caller().receive, send)

    assert [*codes, refused.value.code] == [200, 200, 429]


async def test_watches_end_when_the_server_is_about_to_stop() -> None:
    """Otherwise it would wait for them, and they never end."""
    app, caller = an_app(), _Caller()
    watching = asyncio.ensure_future(app(_scope("/api/v1/pods", b"watch=1"), caller.receive, caller.send))
    await caller.is_answered.wait()

    app.close()
    await asyncio.wait_for(watching, 10)

    assert [message["type"] for message in caller.sent] == ["http.response.start", "http.response.body"]
