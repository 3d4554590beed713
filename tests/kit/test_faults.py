"""Faults happen when and as their script says."""

import asyncio
import json
import socket
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from extender.client.client import Client
from extender.client.errors import ApiError, NoAnswer, NotKubernetes, Unreachable
from extender.values.targets.target import Target
from tests.extender.client.scripted import Scripted, answer, stream
from tests.extender.client.sockets import black_hole
from tests.kit.faults import Action, Fault, FaultyTransport, answers, watches
from tests.kit.faults.resets import ResettingProxy

SERVER = Target("http://server")


def event(name: str, kind: str = "ADDED") -> bytes:
    return json.dumps({"type": kind, "object": {"metadata": {"name": name}}}).encode() + b"\n"


async def test_faults_strike_when_it_is_their_turn() -> None:
    faults = FaultyTransport(
        Scripted(answer()),
        Fault(answers.status(500), verb="list", resource="pods", skip=1, times=2),
        Fault(answers.status(503), verb="list", resource="nodes"),
    )
    client = Client(SERVER, transport=faults)
    statuses = []
    for path in ("/api/v1/pods", "/api/v1/pods", "/api/v1/nodes", "/api/v1/pods", "/api/v1/pods", "/api/v1/nodes"):
        try:
            await client.get(path)
            statuses.append(200)
        except ApiError as exc:
            statuses.append(exc.status)
    await client.aclose()

    assert statuses == [200, 500, 503, 500, 200, 200]


async def test_faults_know_requests_as_rbac_does() -> None:
    faults = FaultyTransport(Scripted(answer(200, {"kind": "X"})))
    client = Client(SERVER, transport=faults)
    await client.get("/api/v1/namespaces/shop/pods/web")
    await client.create("/api/v1/namespaces/shop/pods/web/binding", {})
    await client.patch("/apis/apps/v1/namespaces/shop/deployments/web/status", {}, "application/merge-patch+json")
    await client.get("/api/v1/namespaces/shop")
    await client.update("/api/v1/nodes/n1", {})
    await client.delete("/apis/policy/v1/namespaces/shop/poddisruptionbudgets/web")
    await client.get("/version")
    await client.aclose()

    assert [(call.verb, call.resource, call.namespace, call.name, call.subresource) for call in faults.calls] == [
        ("get", "pods", "shop", "web", ""),
        ("create", "pods", "shop", "web", "binding"),
        ("patch", "deployments", "shop", "web", "status"),
        ("get", "namespaces", "", "shop", ""),
        ("update", "nodes", "", "n1", ""),
        ("delete", "poddisruptionbudgets", "shop", "web", ""),
        ("list", "", "", "", ""),
    ]


async def watched(action: Action, *chunks: bytes) -> list[str]:
    """Types and names of the events of a watch to which something happens; then the error that ended it."""
    client = Client(SERVER, transport=FaultyTransport(Scripted(stream(*chunks)), Fault(action, verb="watch")))
    events: list[str] = []
    try:
        async with client.watch("/api/v1/pods", params={"watch": "1"}, silence=5) as lines:
            async for line in lines:
                spoken: dict[str, Any] = json.loads(line)
                about = spoken["object"]
                events.append(f"{spoken['type']} {about.get('metadata', {}).get('name', about.get('code'))}")
    except ApiError as exc:
        events.append(type(exc).__name__)
    await client.aclose()
    return events


@pytest.mark.parametrize(
    ("action", "expected_events"),
    [
        pytest.param(watches.close_after(1), ["ADDED a"], id="closed"),
        pytest.param(watches.close_after(0), [], id="closed at once"),
        pytest.param(watches.reset_after(1, partial=5), ["ADDED a", "NoAnswer"], id="reset"),
        pytest.param(watches.silent_after(2), ["ADDED a", "ADDED b", "NoAnswer"], id="silent"),
        pytest.param(watches.error_after(1, 410), ["ADDED a", "ERROR 410"], id="an error event"),
        pytest.param(watches.skipping(watches.event_of("b")), ["ADDED a", "DELETED c"], id="skipped"),
        pytest.param(
            watches.skipping(watches.event_of("b", "DELETED")),
            ["ADDED a", "ADDED b", "DELETED c"],
            id="of another type",
        ),
        pytest.param(
            watches.repeating(2, watches.event_of("a")), ["ADDED a", "ADDED a", "ADDED b", "DELETED c"], id="repeated"
        ),
        pytest.param(watches.reordered(1, watches.event_of("a")), ["ADDED b", "ADDED a", "DELETED c"], id="late"),
        pytest.param(
            watches.reordered(9, watches.event_of("a")), ["ADDED b", "DELETED c", "ADDED a"], id="last of all"
        ),
        pytest.param(watches.rewound([event("z")]), ["ADDED z", "ADDED a", "ADDED b", "DELETED c"], id="from the past"),
        pytest.param(watches.delayed(3), ["ADDED a", "ADDED b", "DELETED c"], id="held"),
    ],
)
async def test_a_watch_goes_wrong(action: Action, expected_events: list[str]) -> None:
    assert await watched(action, event("a") + event("b"), event("c", "DELETED")) == expected_events


@pytest.mark.parametrize(
    ("action", "error"),
    [
        pytest.param(answers.refused(), Unreachable, id="refused"),
        pytest.param(answers.drop_before_commit(), NoAnswer, id="reset before"),
        pytest.param(answers.commit_then_drop(), NoAnswer, id="reset after"),
        pytest.param(answers.black_hole(), NoAnswer, id="no answer"),
        pytest.param(answers.delay(100), NoAnswer, id="too late"),
        pytest.param(answers.slow_body(1), NoAnswer, id="drop by drop"),
        pytest.param(answers.truncate(5), NoAnswer, id="half an answer"),
        pytest.param(answers.login_page(), NotKubernetes, id="a login page"),
    ],
)
async def test_a_request_goes_wrong(action: Action, error: type[ApiError]) -> None:
    client = Client(SERVER, transport=FaultyTransport(Scripted(), Fault(action, times=None)))

    with pytest.raises(error):
        await client.request("POST", "/api/v1/namespaces/default/pods", body={}, timeout=5)
    await client.aclose()


@pytest.mark.parametrize(
    ("action", "is_done"),
    [
        pytest.param(answers.drop_before_commit(), [False, False], id="reset before"),
        pytest.param(answers.commit_then_drop(), [True, True], id="reset after"),
        pytest.param(answers.commit_then(answers.status(500)), [True, True], id="done, and denied"),
        pytest.param(answers.commit_late(20), [False, True], id="done late"),
        pytest.param(answers.status(500), [False, False], id="refused"),
    ],
)
async def test_fault_decides_whether_the_server_acts(action: Action, is_done: list[bool]) -> None:
    """As the client sees it fail, and half a minute later."""
    server = Scripted()
    client = Client(SERVER, transport=FaultyTransport(server, Fault(action)))
    with pytest.raises(ApiError):
        await client.request("POST", "/api/v1/namespaces/default/pods", body={}, timeout=5)
    acted = [bool(server.asked)]
    await asyncio.sleep(30)
    await client.aclose()

    assert [*acted, bool(server.asked)] == is_done


async def test_a_server_goes_down_and_comes_up() -> None:
    faults = FaultyTransport(Scripted(stream(1000.0), answer()))
    client = Client(SERVER, transport=faults)
    errors = []

    async def watch() -> None:
        async with client.watch("/api/v1/pods", params={"watch": "1"}, silence=50) as lines:
            async for _ in lines:
                pass

    watching = asyncio.ensure_future(watch())
    await asyncio.sleep(1)
    faults.go_down()
    for ask in (watching, client.create("/api/v1/nodes", {})):
        try:
            await ask
        except ApiError as exc:
            errors.append(type(exc).__name__)
    faults.come_up()
    await client.create("/api/v1/nodes", {})
    await client.aclose()

    assert errors == ["NoAnswer", "Unreachable"]


def test_a_resetting_proxy_ends_though_its_server_accepts_nothing() -> None:
    with black_hole() as server, ResettingProxy(server, Random(1)).running() as proxy:
        callers = [socket.create_connection(("127.0.0.1", proxy.port)) for _ in range(3)]

    for caller in callers:
        with caller, suppress(ConnectionResetError):
            assert caller.recv(1) == b""
