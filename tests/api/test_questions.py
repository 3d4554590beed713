"""What people ask under /v1, over a socket, of a service that decides for a small cluster of its own."""

import json
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import HTTPConnection

from api import starting
from api.app import create_app
from api.callers.access import Access
from api.callers.http_refusals import Refusal
from api.service_state import ServiceState
from api.settings.settings import Settings
from extender.answers.redaction import Visibility
from tests.kit import objects
from tests.kit.objects import priority_class
from tests.kit.service import LetsIn, Service, assert_is_refusal, serving, serving_app
from tests.kit.tables import cases
from tests.kit.waiting import until

PREEMPTED = "bank/batch-0"


def pod(
    name: str, cpu: str, *, namespace: str = "shop", node: str = "", priority: int = 0, **spec: Any
) -> dict[str, Any]:
    manifest = objects.pod(name, cpu, on=node, metadata={"namespace": namespace}, terminationGracePeriodSeconds=0)
    manifest["spec"] |= {"priority": priority, **spec}
    manifest["status"] = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"} if node else {"phase": "Pending"}
    return manifest


def deployment(name: str, spec: Mapping[str, Any], replicas: int = 1, **metadata: str) -> dict[str, Any]:
    """A Deployment of pods with this spec."""
    manifest = objects.workload("Deployment", name, {"spec": spec}, replicas=replicas)
    manifest["metadata"] |= metadata
    return manifest


def cluster() -> list[dict[str, Any]]:
    nodes = [
        objects.obj("Node", name=f"node-{n}", status={"allocatable": {"cpu": "4", "pods": "110"}}) for n in range(3)
    ]
    batch = [pod(f"batch-{place}", "3", namespace="bank", node=f"node-{place}", priority=place) for place in range(3)]
    namespaces = [objects.obj("Namespace", name=name) for name in ("shop", "bank")]
    waiting = [
        pod("urgent", "2", priority=1000),
        pod("too-large", "64"),
        pod("gated", "1", schedulingGates=[{"name": "later"}]),
    ]
    return [*namespaces, *nodes, *batch, *waiting]


@pytest.fixture(scope="module")
def deciding(dump: Path) -> Iterator[Service]:
    with serving(state=dump) as service:
        until(lambda: service.client.get("/v1/explain/shop/urgent").json().get("state") == "Scheduled")
        until(lambda: "unschedulable" in {item["queue"] for item in get(service, "/v1/queue")["items"]})
        yield service


def node_of(service: Service, name: str) -> str:
    """Where a pod of the namespace default is; empty while it waits."""
    return str(get(service, f"/api/v1/namespaces/default/pods/{name}")["spec"].get("nodeName", ""))


def get(service: Service, path: str, code: int = 200, **params: str) -> Any:
    answer = service.client.get(path, params=params)
    assert answer.status_code == code, answer.text
    return answer.json()


def test_a_pending_pod_is_explained(deciding: Service) -> None:
    answer = get(deciding, "/v1/explain/shop/too-large")

    assert answer["state"] == "Pending"
    assert answer["message"].startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert answer["waterfall"] == [
        {
            "plugin": "NodeResourcesFit",
            "reasons": [{"reason": "Insufficient cpu", "nodes": 3}],
            "refused": 3,
            "unresolvable": 3,
            "left": 0,
        }
    ]
    assert answer["nearest"][0]["lacks"][0]["resource"] == "cpu"
    assert answer["queue"]["refusedBy"] == ["NodeResourcesFit"]
    assert {"event": "Node/Add", "plugins": ["NodeResourcesFit"]} in answer["queue"]["wakesOn"]
    assert answer["attempts"][-1]["outcome"] == "Unschedulable"
    assert answer["attempts"][-1]["message"] == answer["message"]
    assert answer["picture"] is None


def test_the_picture_comes_when_it_is_asked_for(deciding: Service) -> None:
    picture = get(deciding, "/v1/explain/shop/too-large", picture="true")["picture"]

    assert sorted(picture["nodes"]) == ["node-0", "node-1", "node-2"]
    assert len(picture["cells"]) == 3


def test_explanation_of_a_gated_pod_names_the_gating_plugin(deciding: Service) -> None:
    body = get(deciding, "/v1/explain/shop/gated")

    assert (body["state"], body["queue"]["queue"], body["queue"]["gatedBy"]) == ("Gated", "gated", "SchedulingGates")


def test_a_pod_that_preempted_and_its_victim_tell_of_each_other(deciding: Service) -> None:
    (preemption,) = get(deciding, "/v1/preemptions", pod=PREEMPTED)["items"]

    assert (preemption["by"]["namespace"], preemption["by"]["name"], preemption["node"]) == ("shop", "urgent", "node-0")
    assert [victim["pod"]["name"] for victim in preemption["victims"]] == ["batch-0"]
    assert preemption["numCandidates"] == 3
    assert [candidate["node"] for candidate in preemption["candidates"]] == ["node-0", "node-1", "node-2"]
    assert [bool(candidate["whyNot"]) for candidate in preemption["candidates"]] == [False, True, True]
    assert preemption in [step["preemption"] for step in get(deciding, f"/v1/explain/{PREEMPTED}")["story"]["steps"]]
    assert get(deciding, "/v1/preemptions", pod="shop/urgent")["items"] == [preemption]


def test_decisions_come_newest_first_and_page_by_page(deciding: Service) -> None:
    everything = get(deciding, "/v1/decisions")["items"]
    ids = [item["id"] for item in everything]

    assert ids == sorted(ids, reverse=True)
    assert len(ids) >= 3
    first = get(deciding, "/v1/decisions", limit="1")["items"]
    assert [item["id"] for item in first] == ids[:1]
    assert [item["id"] for item in get(deciding, "/v1/decisions", before=str(ids[0]))["items"]] == ids[1:]
    assert {item["pod"]["name"] for item in get(deciding, "/v1/decisions", pod="shop/urgent")["items"]} == {"urgent"}


def test_the_history_is_filtered_as_that_of_the_page(deciding: Service) -> None:
    def names(**filters: Any) -> set[str]:
        return {group["attempt"]["pod"]["name"] for group in get(deciding, "/v1/history", **filters)["alike"]}

    assert {"urgent", "too-large"} <= names()
    assert names(name="shop/urg") == {"urgent"}
    assert names(plugin="NodeResourcesFit", name="too-l") == {"too-large"}
    assert names(namespace="elsewhere") == set()
    assert "too-large" not in names(outcome="scheduled")
    assert [row["by"]["name"] for row in get(deciding, "/v1/history", namespace="shop")["preemptions"]] == ["urgent"]
    assert_is_refusal(deciding.client.get("/v1/history?since=yesterday"), 422)
    assert_is_refusal(deciding.client.get("/v1/history?outcome=lost"), 400)


def test_decision_shows_which_plugin_refused_each_node(deciding: Service) -> None:
    decision = get(deciding, "/v1/decisions", pod="shop/too-large")["items"][-1]

    assert get(deciding, f"/v1/decisions/{decision['id']}") == decision
    picture = get(deciding, f"/v1/decisions/{decision['id']}", picture="true")["picture"]
    assert picture["plugins"] == ["NodeResourcesFit"]
    assert picture["nodes"] == ["node-0", "node-1", "node-2"]
    assert picture["cells"] == [[0], [0], [0]]
    assert picture["verdicts"][0]["reasons"] == ["Insufficient cpu"]


def test_a_decision_that_is_not_remembered_is_not_found(deciding: Service) -> None:
    assert_is_refusal(deciding.client.get("/v1/decisions/999999"), 404)


def test_the_queue_says_where_each_pod_waits(deciding: Service) -> None:
    answer = get(deciding, "/v1/queue")

    assert answer["deciding"] is True
    assert {item["pod"]["name"]: item["queue"] for item in answer["items"]} == {
        "too-large": "unschedulable",
        "gated": "gated",
    }
    assert answer["counts"]["gated"] == 1


def test_what_if_names_its_evictions_and_changes_nothing(deciding: Service) -> None:
    before = get(deciding, "/v1/cluster")
    very_high = priority_class("very-high", 5000)
    answer = deciding.post(
        "/v1/whatif", {"create": [very_high, pod("vip", "3", priority=5000, priorityClassName="very-high")]}
    )

    body = answer.json()
    assert answer.status_code == 200
    (placement,) = body["placements"]
    assert (placement["node"], [victim["pod"]["name"] for victim in placement["evicts"]]) == ("node-1", ["batch-1"])
    assert [eviction["why"] for eviction in body["evictions"]] == ["preempted"]
    assert get(deciding, "/v1/cluster") == before


def test_capacity_counts_the_pods_that_fit(deciding: Service) -> None:
    created = deciding.post("/v1/capacity", pod("one", "500m")).json()
    like = get(deciding, "/v1/capacity", pod="shop/urgent")

    assert (created["fits"], created["isLimit"]) == (8, False)
    assert created["stoppedBy"].startswith("0/3 nodes are available")
    assert (like["fits"], like["byNode"]) == (1, [{"node": "node-0", "pods": 1}])


@pytest.mark.parametrize("path", ["/v1/explain/shop/nobody", "/v1/capacity?pod=shop/nobody", "/v1/cluster/nowhere"])
def test_question_about_what_is_not_there_is_refused(deciding: Service, path: str) -> None:
    assert_is_refusal(deciding.client.get(path), 404)


@cases(
    "body, code, words",
    ("cut off", b"{", 400, "not JSON"),
    ("a misspelt member", {"creat": []}, 400, "creat"),
    ("an object without metadata", {"create": [{"kind": "Pod"}]}, 422, "metadata"),
    ("an unknown node", {"drainNodes": ["nowhere"]}, 422, "nowhere"),
    ("another configuration", {"configuration": {"apiVersion": "v1", "kind": "Config"}}, 422, ""),
    ("no quantity", {"create": [pod("vip", "lots")]}, 422, "quantities must match"),
)
def test_senseless_what_if_is_refused_in_words(deciding: Service, body: object, code: int, words: str) -> None:
    answer = deciding.post("/v1/whatif", body)

    assert_is_refusal(answer, code)
    assert words in answer.json()["message"]


# Whose names are shown.


class Sees:
    """May list the pods of these namespaces."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    async def namespaces(self, among: Collection[str]) -> frozenset[str]:
        return self._names & frozenset(among)

    async def events(self, namespace: str) -> bool:
        return False


class _OnlyOwnNamespace(LetsIn):
    """Callers say their namespace as their token."""

    async def of(self, caller: HTTPConnection) -> Visibility:
        token = caller.headers.get("authorization", "").removeprefix("Bearer ")
        if not token:
            raise Refusal(401, "who asks?", {"WWW-Authenticate": "Bearer"})
        return Sees(token)


@contextmanager
def guarded_by(access: Access, **settings: Any) -> Iterator[Service]:
    """A service that asks who its callers are."""
    chosen = Settings(**{"port": 0, **settings})

    @asynccontextmanager
    async def opened() -> AsyncIterator[ServiceState]:
        async with starting.opens(chosen)() as opened_state:
            yield replace(opened_state, access=access)

    with serving_app(create_app(chosen, lambda _: opened), chosen) as service:
        yield service


@pytest.fixture(scope="module")
def guarded(dump: Path) -> Iterator[Service]:
    with guarded_by(_OnlyOwnNamespace(), state=dump) as service:
        until(lambda: as_(service, "shop", "/v1/preemptions").json().get("items"))
        yield service


def as_(service: Service, namespace: str, path: str) -> httpx.Response:
    return service.client.get(path, headers={"Authorization": f"Bearer {namespace}"})


@pytest.mark.parametrize(
    "path",
    [
        "/v1/explain/shop/urgent",
        "/v1/queue",
        "/v1/decisions",
        "/v1/preemptions",
        "/v1/capacity?pod=shop/urgent",
        "/v1/cluster",
        "/v1/pending",
    ],
)
def test_caller_without_token_is_refused(guarded: Service, path: str) -> None:
    answer = guarded.client.get(path)

    assert_is_refusal(answer, 401)
    assert answer.headers["www-authenticate"] == "Bearer"


def test_pods_of_other_namespaces_are_not_explained(guarded: Service) -> None:
    assert_is_refusal(as_(guarded, "bank", "/v1/explain/shop/urgent"), 403)
    assert_is_refusal(as_(guarded, "bank", "/v1/capacity?pod=shop/urgent"), 403)


def test_preemptor_is_hidden_from_callers_who_see_only_the_victim(guarded: Service) -> None:
    answer = as_(guarded, "bank", f"/v1/explain/{PREEMPTED}").json()

    (preemption,) = (step["preemption"] for step in answer["story"]["steps"] if step["what"] == "evicted")
    assert preemption["by"] == {"namespace": "", "name": "", "uid": "", "priority": 1000, "hidden": True} | {
        key: preemption["by"][key]
        for key in preemption["by"].keys() - {"namespace", "name", "uid", "priority", "hidden"}
    }
    assert preemption["victims"][0]["pod"]["name"] == "batch-0"
    assert "urgent" not in json.dumps(answer)


def test_victim_is_hidden_from_callers_who_see_only_the_preemptor(guarded: Service) -> None:
    of_others = ("preemptions", "decisions", "queue", "pending", "cluster", "cluster/node-1", "find?q=batch", "pods")
    for path in ("/v1/explain/shop/urgent", *(f"/v1/{name}" for name in of_others)):
        answer = as_(guarded, "shop", path)

        assert answer.status_code == 200
        assert "batch" not in answer.text
        assert "bank" not in answer.text
