"""An extender that follows a cluster over the network: it answers from live state, and never from a state that it
cannot vouch for.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.api.test_recorded_calls import answer_to, name_of, recorded_calls
from tests.kit.many_cases import each_case
from tests.kit.objects import node, pod
from tests.kit.ports import free_port
from tests.kit.service import TWELVE_NODES, Service, items_of, kubeconfig_for, serving
from tests.kit.waiting import until


def asking(*nodes: str) -> dict[str, object]:
    new = {"metadata": {"name": "new", "namespace": "default", "uid": "1"}, "spec": {"containers": []}}
    return {"Pod": new, "NodeNames": nodes}


def readiness(service: Service) -> int:
    return service.client.get("/readyz").status_code


@pytest.fixture(scope="module")
def follower(twelve_nodes: Service, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """An extender for the cluster in which the recorded calls were made, that knows it through its API alone."""
    with serving(
        kubeconfig=kubeconfig_for(twelve_nodes.port, tmp_path_factory.mktemp("follower")), serve_bind=True
    ) as service:
        until(lambda: readiness(service) == 200)
        yield service


@pytest.mark.slow
@each_case(recorded_calls, name_of=name_of)
def test_follower_answers_every_recorded_call_as_the_service_with_the_cluster_does(
    follower: Service, twelve_nodes: Service, case: dict[str, Any]
) -> None:
    # A pod of the cluster may end between the two questions, and is heard of a moment later.
    until(lambda: answer_to(follower, case) == answer_to(twelve_nodes, case))


def test_news_of_the_cluster_count(follower: Service, twelve_nodes: Service) -> None:
    request = asking("fresh")
    assert follower.call("filter", request).json()["FailedNodes"] == {"fresh": "node not known to the extender yet"}

    twelve_nodes.post("/api/v1/nodes", node("fresh")).raise_for_status()

    try:
        until(lambda: follower.call("filter", request).json()["NodeNames"] == ["fresh"])
    finally:
        twelve_nodes.client.delete("/api/v1/nodes/fresh").raise_for_status()


def test_pods_are_bound_through_the_api_server(follower: Service, twelve_nodes: Service) -> None:
    where = items_of(TWELVE_NODES)[0]["metadata"]["name"]
    created = twelve_nodes.post("/api/v1/namespaces/default/pods", pod("to-bind")).json()
    binding = {"PodName": "to-bind", "PodNamespace": "default", "PodUID": created["metadata"]["uid"], "Node": where}

    # The follower hears of the pod a moment later; before that it binds nothing.
    until(lambda: follower.call("bind", binding).json()["Error"] == "")
    repeated = follower.call("bind", binding)
    elsewhere = follower.call("bind", {**binding, "Node": items_of(TWELVE_NODES)[1]["metadata"]["name"]})
    other = follower.call("bind", {**binding, "PodUID": "00000000-0000-4000-8000-000000000000"})
    bound = twelve_nodes.client.get("/api/v1/namespaces/default/pods/to-bind").json()
    twelve_nodes.client.delete("/api/v1/namespaces/default/pods/to-bind?gracePeriodSeconds=0")

    assert bound["spec"]["nodeName"] == where
    assert repeated.json()["Error"] == ""
    assert f'already assigned to node "{where}"' in elsewhere.json()["Error"]
    assert other.json()["Error"]


@pytest.mark.slow
def test_a_cluster_that_goes_away_and_comes_back_is_never_answered_for_wrongly(tmp_path: Path) -> None:
    """Its history is lost, and when it is back it has other nodes."""
    port, request = free_port(), asking("a", "b")

    with ExitStack() as stack:
        with serving(state=state_with("a", tmp_path), port=port, schedule=False):
            follower = stack.enter_context(serving(kubeconfig=kubeconfig_for(port, tmp_path)))
            until(lambda: readiness(follower) == 200)
            assert follower.call("filter", request).json()["NodeNames"] == ["a"]

        until(lambda: readiness(follower) == 503)
        assert follower.call("filter", request).status_code == 503

        with serving(state=state_with("b", tmp_path), port=port, schedule=False):
            answers: list[httpx.Response] = []
            until(lambda: answers.append(follower.call("filter", request)) or answers[-1].status_code == 200)  # type: ignore[func-returns-value]
            assert [answer.json()["NodeNames"] for answer in answers if answer.status_code == 200] == [["b"]]
            assert readiness(follower) == 200


def state_with(name: str, folder: Path) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(node(name)))
    return path
