"""The cluster that comes with the program is like one that runs: its pods are ready and have owners, its nodes say what a
kubelet says, nothing changes in it by itself, a drain shows where pods go, and who schedules in it evicts whom `why` names.
"""

import asyncio
import json
from collections import Counter
from typing import Any

import httpx
import pytest

from api.settings.settings import EXAMPLE_CLUSTER
from extender.rules.api_resources import CSI_NODES, NODES, POD_DISRUPTION_BUDGETS, PODS
from extender.rules.state_file import load_state
from extender.testing import virtual_time
from reprieve.cluster import own_cluster
from tests.api.in_process import reprieve
from tests.kit.service import running, serving
from tests.kit.waiting import DEADLINE, until

KUBELET_RESOURCES = {"cpu", "ephemeral-storage", "hugepages-1Gi", "hugepages-2Mi", "memory", "pods"}
KUBELET_CONDITIONS = {"MemoryPressure", "DiskPressure", "PIDPressure", "Ready"}


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [obj for obj in load_state(EXAMPLE_CLUSTER) if obj["kind"] == kind]


def true_conditions(obj: dict[str, Any]) -> set[str]:
    return {one["type"] for one in obj["status"].get("conditions") or () if one["status"] == "True"}


def test_its_controllers_find_nothing_to_do() -> None:
    async def names() -> tuple[set[str], set[str]]:
        async with own_cluster(load_state(EXAMPLE_CLUSTER)) as cluster:
            assert (cluster.report.refused, cluster.report.left_out) == ((), {})
            before = {pod["metadata"]["name"] for pod in cluster.api.registry.list(PODS)}
            await asyncio.sleep(60)
            return before, {pod["metadata"]["name"] for pod in cluster.api.registry.list(PODS)}

    before, after = virtual_time.run(names())

    assert before == after


def test_its_kubelets_and_budgets_find_nothing_to_write() -> None:
    async def statuses() -> tuple[dict[str, Any], dict[str, Any]]:
        async with own_cluster(load_state(EXAMPLE_CLUSTER)) as cluster:

            def now() -> dict[str, Any]:
                by_object = {
                    f"{resource.kind} {obj['metadata']['name']}": obj["status"]
                    for resource in (NODES, PODS)
                    for obj in cluster.api.registry.list(resource)
                }
                budgets = cluster.api.registry.list(POD_DISRUPTION_BUDGETS)
                return by_object | {obj["metadata"]["name"]: obj["status"]["disruptionsAllowed"] for obj in budgets}

            before = now()
            await asyncio.sleep(60)
            return before, now()

    before, after = virtual_time.run(statuses())

    assert before == after


def test_all_pods_run_and_are_ready_but_two_that_no_scheduler_has_tried() -> None:
    placed = [pod for pod in of_kind("Pod") if "nodeName" in pod["spec"]]
    pending = {pod["metadata"]["name"]: pod["status"] for pod in of_kind("Pod") if "nodeName" not in pod["spec"]}

    assert {pod["status"]["phase"] for pod in placed} == {"Running"}
    assert all({"Ready", "ContainersReady", "PodScheduled"} <= true_conditions(pod) for pod in placed)
    assert pending == {"web-6": {"phase": "Pending"}, "train-3": {"phase": "Pending"}}


@pytest.mark.parametrize("node", of_kind("Node"), ids=lambda node: node["metadata"]["name"])
def test_a_node_says_what_a_kubelet_says(node: dict[str, Any]) -> None:
    status, labels = node["status"], node["metadata"]["labels"]

    assert status["capacity"].keys() == status["allocatable"].keys() >= KUBELET_RESOURCES
    assert {one["type"] for one in status["conditions"]} == KUBELET_CONDITIONS
    assert true_conditions(node) == {"Ready"}
    assert {one["type"] for one in status["addresses"]} == {"InternalIP", "Hostname"}
    assert status["nodeInfo"]["architecture"] == labels["kubernetes.io/arch"]
    assert all(any("@sha256:" in name for name in image["names"]) for image in status["images"])


def test_every_node_says_how_many_volumes_can_be_attached() -> None:
    assert [obj["metadata"]["name"] for obj in of_kind(CSI_NODES.kind)] == [
        node["metadata"]["name"] for node in of_kind("Node")
    ]
    assert all(driver["allocatable"]["count"] for obj in of_kind(CSI_NODES.kind) for driver in obj["spec"]["drivers"])


def first_preemption_is_what_why_names(client: httpx.Client) -> None:
    answer = json.loads(reprieve("why", "shop/web-6", "--dump", str(EXAMPLE_CLUSTER), "-o", "json").stdout)

    items = until(lambda: client.get("/v1/preemptions").json()["items"])

    first, prediction = items[-1], answer["preemption"]
    assert (first["by"]["name"], first["node"], first["victims"][0]["pod"]["name"]) == ("web-6", "node-a3", "report-10")
    assert {key: first[key] for key in ("node", "victims", "candidates")} == {
        key: prediction[key] for key in ("node", "victims", "candidates")
    }


def test_a_service_evicts_first_whom_why_names() -> None:
    with serving() as service:
        first_preemption_is_what_why_names(service.client)


@pytest.mark.slow
def test_the_command_serve_evicts_first_whom_why_names() -> None:
    with running() as service, httpx.Client(base_url=service.url, timeout=DEADLINE, trust_env=False) as client:
        first_preemption_is_what_why_names(client)


def test_pods_of_all_sorts_of_owners_are_in_it() -> None:
    owners = Counter(
        (obj["metadata"].get("ownerReferences") or [{}])[0].get("kind")
        for obj in load_state(EXAMPLE_CLUSTER)
        if obj["kind"] == "Pod"
    )

    assert owners == {"DaemonSet": 12, "ReplicaSet": 10, "StatefulSet": 3, "Job": 12, None: 5}


def test_a_drain_shows_where_pods_land() -> None:
    output = reprieve("whatif", "--dump", str(EXAMPLE_CLUSTER), "--drain", "node-a2").stdout.decode()

    assert output.startswith("4 pods would be evicted (4 would land elsewhere).")
    assert "node-agent" not in output
