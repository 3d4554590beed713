"""What serves a caller is in no cycle of references once it is over: what is in one while the collector begins to leave
everything alone is never found.
"""

import gc
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from api.documents.examples import SCENARIO
from tests.api.gated_plugin import installed
from tests.api.raw_http import Connection, head
from tests.api.serving import Service, serving
from tests.api.test_hang_up import NODE, asked, is_at_rest, pod
from tests.kit.waiting import until

IN_WORK = {
    "RequestResponseCycle", "LimitedProtocol", "Connection", "HttpRequestParser", "HttpResponseParser", "TCPTransport",
    "Task", "coroutine",
    "async_generator", "frame", "traceback", "Framework", "Gated", "Quarantine",
}  # fmt: skip
TIMES = 5


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """
    With a plugin from outside the tree.
    """
    folder = tmp_path_factory.mktemp("cycles")
    (folder / "cluster.json").write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "items": [NODE, pod(nodeName="n")]})
    )
    with installed(folder) as config, serving(state=folder / "cluster.json", config=config) as running:
        until(lambda: running.client.get("/readyz").status_code == 200)
        yield running


def watches(service: Service) -> None:
    caller = asked(service.port, "/api/v1/pods?watch=1", method="GET")
    assert caller._reader.readline() == b"HTTP/1.1 200 OK\r\n"
    caller.close()


def follows(service: Service) -> None:
    caller = asked(service.port, "/v1/stream", method="GET")
    assert caller._reader.readline() == b"HTTP/1.1 200 OK\r\n"
    caller.close()


def sends_half_a_body(service: Service) -> None:
    caller = Connection(service.port)
    caller.send(head("/extender/filter", Content_Length=100, Content_Type="application/json") + b"{")
    caller.close()


def asks_again_and_again(service: Service) -> None:
    caller = asked(service.port, "/livez", method="GET")
    caller.send(head("/v1/cluster", method="GET") * 3)
    caller.close()


def posts(path: str, body: Any) -> Callable[[Service], None]:
    def act(service: Service) -> None:
        assert service.post(path, body).status_code == 200

    return act


def gets(path: str) -> Callable[[Service], None]:
    def act(service: Service) -> None:
        assert service.client.get(path).status_code == 200

    return act


ACTS = {
    "watches, and hangs up": watches,
    "follows the cluster, and hangs up": follows,
    "hangs up in the middle of a body": sends_half_a_body,
    "hangs up before the answer": asks_again_and_again,
    "evaluates": posts("/v1/evaluate", SCENARIO),
    "asks what if": posts("/v1/whatif", {"create": [{**pod(), "metadata": {"name": "new", "namespace": "default"}}]}),
    "asks for room": posts("/v1/capacity?limit=2", pod()),
    "filters": posts("/extender/filter", {"Pod": pod(), "NodeNames": ["n"]}),
    "asks why": gets("/v1/explain/default/p"),
    "looks at the page": gets("/"),
}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_nothing_that_served_a_caller_is_in_a_cycle(service: Service, act: Callable[[Service], None]) -> None:
    act(service)
    until(lambda: is_at_rest(service))
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(TIMES):
            act(service)
        until(lambda: is_at_rest(service))
        gc.collect()
        found = {type(each).__name__ for each in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()

    assert found & IN_WORK == set()
