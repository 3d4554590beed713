"""A request that is over is let go of at once, without the help of the garbage collector, which comes by rarely: in a
cycle of references it would hold its body until then, and so would all that come meanwhile.
"""

import gc
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from extender.values import limits
from tests.api.raw_http import Connection, head
from tests.api.test_hang_up import NODE, caller_with, is_at_rest, pod
from tests.kit.objects import node, state_file
from tests.kit.service import Service, serving
from tests.kit.waiting import until

KINDS = frozenset({"starlette.requests.Request", "api.serving.limits._Request"})
TIMES = 5


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    state = tmp_path_factory.mktemp("let-go") / "cluster.json"
    placed = pod(nodeName="n")
    placed["metadata"]["uid"] = "placed"
    items = [NODE, node("other", "8"), placed]
    state_file(state, *items)
    with serving(state=state, serve_bind=True) as running:
        until(lambda: running.client.get("/readyz").status_code == 200)
        yield running


def posts(path: str, body: Any) -> Callable[[Service], object]:
    return lambda service: service.post(path, body)


def gets(path: str) -> Callable[[Service], object]:
    return lambda service: service.client.get(path)


def hangs_up(method: str, path: str, body: Any = None) -> Callable[[Service], None]:
    content = b"" if body is None else json.dumps(body).encode()
    return lambda service: caller_with(service.port, path, content, method).close()


def follows(service: Service) -> None:
    caller = caller_with(service.port, "/v1/stream", method="GET")
    caller.socket.recv(1)
    caller.close()


def watches(service: Service) -> None:
    caller = caller_with(service.port, "/api/v1/pods?watch=1", method="GET")
    caller.socket.recv(1)
    caller.close()


def sends_half_a_body(service: Service) -> None:
    caller = Connection(service.port)
    caller.send(head("/v1/whatif", Content_Length=100, Content_Type="application/json") + b"{")
    caller.close()


CREATED = {"kind": "Pod", "apiVersion": "v1", **pod()}
unreadable = pod()
unreadable["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "many"}}
REQUESTS: dict[str, Callable[[Service], object]] = {
    "a verb": posts("/extender/filter", {"Pod": pod(), "NodeNames": ["n"]}),
    "a verb without a pod": posts("/extender/filter", {"NodeNames": ["n"]}),
    "a verb that cannot be answered": posts("/extender/filter", {"Pod": unreadable, "NodeNames": ["n"]}),
    "a verb that is no JSON": posts("/extender/filter", b"{"),
    "a verb with too many nodes": posts(
        "/extender/filter", {"Pod": pod(), "Nodes": {"items": [{"metadata": {"name": "n"}}] * (limits.NODES + 1)}}
    ),
    "a preemption with too long a name": posts("/extender/preempt", {"Pod": pod(), "NodeNameToMetaVictims": {"N": {}}}),
    "a verb of a caller who hangs up": hangs_up("POST", "/extender/filter", {"Pod": pod(), "NodeNames": ["n"]}),
    "a binding that fails": posts(
        "/extender/bind", {"PodName": "p", "PodNamespace": "default", "PodUID": "placed", "Node": "other"}
    ),
    "a what-if": posts("/v1/whatif", {"create": [CREATED]}),
    "a what-if that cannot be worked out": posts("/v1/whatif", {"create": [{"spec": {}}]}),
    "a what-if that is no JSON": posts("/v1/whatif", b"{"),
    "a what-if of a caller who hangs up": hangs_up("POST", "/v1/whatif", {"create": [CREATED]}),
    "a plan": posts("/v1/plan", {"pods": [CREATED]}),
    "a capacity": posts("/v1/capacity?limit=3", CREATED),
    "an evaluation that is refused": posts("/v1/evaluate", {"nodes": 1}),
    "why": gets("/v1/explain/default/p"),
    "why of no pod": gets("/v1/explain/default/none"),
    "the first page": gets("/"),
    "a page of no node": gets("/ui/nodes/none"),
    "the page's what-if": posts("/ui/what-if", {"manifest": json.dumps(CREATED)}),
    "no such path": gets("/v1/none"),
    "metrics": gets("/metrics"),
    "a list of the embedded cluster": gets("/api/v1/pods"),
    "an object that it refuses": posts("/api/v1/namespaces/default/pods", {"spec": {}}),
    "a watch": watches,
    "a stream": follows,
    "half a body": sends_half_a_body,
    "a body that is too long": posts("/v1/whatif", b" " * (16 * 2**20 + 1)),
}


@pytest.mark.parametrize("request_made", REQUESTS.values(), ids=REQUESTS)
def test_a_request_that_is_over_holds_nothing(service: Service, request_made: Callable[[Service], object]) -> None:
    request_made(service)  # loads what is loaded once
    gc.collect()
    earlier_requests = requests()  # of services that other tests use
    gc.disable()
    try:
        for _ in range(TIMES):
            request_made(service)
        with httpx.Client(base_url=f"http://127.0.0.1:{service.port}", trust_env=False) as later:
            later.get("/livez")  # connections are accepted in turn: those of callers who hung up have been
        until(lambda: is_at_rest(service))

        until(lambda: {*map(id, requests())} <= {*map(id, earlier_requests)}, "requests that are over are held")
    finally:
        gc.enable()


def test_a_request_is_seen_while_it_is_answered(service: Service) -> None:
    """Both kinds are named as they are named now, or the test above would look for nothing."""
    earlier_requests = requests()
    caller = caller_with(service.port, "/v1/stream", method="GET")
    try:
        caller.socket.recv(1)
        kinds = {name_of(request) for request in requests() if not any(request is other for other in earlier_requests)}
    finally:
        caller.close()

    assert kinds == KINDS


def name_of(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def requests() -> list[object]:
    return [value for value in gc.get_objects() if name_of(value) in KINDS]
