"""`pending` says why pods wait also where no scheduler has written a reason, as `why` does."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api.in_process import reprieve
from tests.api.test_commands_about_many_pods import node
from tests.api.test_questions import get, pod
from tests.kit.objects import state_file
from tests.kit.service import serving
from tests.kit.waiting import until


def reasons(*arguments: str) -> dict[str, list[str]]:
    """Reason -> the pods that wait for it."""
    answer = json.loads(reprieve("pending", *arguments, "-o", "json").stdout)
    return {
        group["reason"]: sorted(first["name"] for workload in group["workloads"] for first in workload["first"])
        for group in answer["reasons"]
    }


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    gated = pod("gated", "1")
    gated["spec"]["schedulingGates"] = [{"name": "quota"}]
    refused_pod = pod("told", "1")
    message = "0/1 nodes are available: 1 Insufficient licences."
    refused_pod["status"] = {"conditions": [{"type": "PodScheduled", "status": "False", "message": message}]}
    items: list[dict[str, Any]] = [node("n1", "4"), pod("big", "9"), pod("small", "1"), gated, refused_pod]
    path = tmp_path_factory.mktemp("waiting") / "cluster.yaml"
    return state_file(path, *items)


EXPECTED = {
    "Insufficient cpu": ["big"],
    "Insufficient licences": ["told"],
    "gated by SchedulingGates": ["gated"],
    "it would fit now, but no scheduler has placed it": ["small"],
}


def test_reasons_of_a_dump_are_worked_out(file: Path) -> None:
    assert reasons("--dump", str(file)) == EXPECTED


def test_reasons_of_a_cluster_without_a_scheduler_are_worked_out(file: Path) -> None:
    with serving(state=file, schedule=False) as service:
        until(lambda: get(service, "/v1/pending")["pods"] == 4)

        assert reasons("--server", f"127.0.0.1:{service.port}") == EXPECTED


def test_the_example_cluster_says_what_why_says() -> None:
    pods_by_reason = reasons("--dump", "api/examples/cluster.yaml")
    why = json.loads(reprieve("why", "shop/web-6", "--dump", "api/examples/cluster.yaml", "-o", "json").stdout)

    (reason,) = (reason for reason, pods in pods_by_reason.items() if "web-6" in pods)
    assert {refusal["reason"] for step in why["waterfall"] for refusal in step["reasons"]} >= {"Insufficient cpu"}
    assert "Insufficient cpu" in reason


def test_pods_are_without_a_reason_only_where_no_node_is_known(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(pod("alone", "1")))

    assert reasons("--dump", str(tmp_path / "pod.yaml")) == {"no nodes available to schedule pods": ["alone"]}
