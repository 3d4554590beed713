"""Victim policies from outside: recorded preempt calls of a kube-scheduler, and the GPU time that answers and records
say is lost.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from api.cli import app
from tests.api.test_recorded_calls import as_go_writes, preemptions
from tests.kit.objects import node, pod, priority_class, state_file
from tests.kit.service import TWELVE_NODES, items_of, serving

PODS = {item["metadata"]["uid"]: item for item in items_of(TWELVE_NODES) if item["kind"] == "Pod"}
WEB_IS_DEAR = {"perHour": "0.0", "fixed": 'labels[?"tier"].orValue("") == "web" ? 10.0 : 1.0'}


def configured(folder: Path, **args: Any) -> Path:
    """A KubeSchedulerConfiguration with a victim policy."""
    file = folder / "config.yaml"
    profile = {"pluginConfig": [{"name": "DefaultPreemption", "args": args}]}
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file.write_text(yaml.safe_dump({**header, "profiles": [profile]}))
    return file


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cluster of the recorded calls, before any victim had gone. Pods whose owners are not there would be collected
    as garbage.
    """
    file, items = tmp_path_factory.mktemp("twelve-nodes") / "state.json", items_of(TWELVE_NODES)
    for item in items:
        for left_out in ("ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds"):
            item["metadata"].pop(left_out, None)
    return state_file(file, *items)


def victims_with(
    state: Path, folder: Path, call: Mapping[str, Any], **args: Any
) -> tuple[dict[str, list[str]], dict[str, Any] | None]:
    """Returns the victims by node that the verb answers with under a policy, and the newest recorded preemption."""
    with serving(state=state, schedule=False, config=configured(folder, **args)) as service:
        answer = service.call("preempt", as_go_writes(call["body"])).json()["NodeNameToMetaVictims"]
        recorded = service.client.get("/v1/preemptions").json()["items"]
    return uids_of(answer), recorded[0] if recorded else None


def loss(uids: list[str]) -> int:
    return sum(10 if PODS[uid]["metadata"]["labels"].get("tier") == "web" else 1 for uid in uids)


def proposed_victims(call: Mapping[str, Any]) -> dict[str, list[str]]:
    return uids_of(call["body"]["NodeNameToMetaVictims"])


def uids_of(victims_by_node: Mapping[str, Any]) -> dict[str, list[str]]:
    return {name: [victim["UID"] for victim in victims["Pods"]] for name, victims in victims_by_node.items()}


each_call = pytest.mark.parametrize(
    "call", [call for call in preemptions() if call["nodeCacheCapable"]], ids=lambda call: str(call["seq"])
)


@each_call
def test_protected_pods_are_replaced_or_their_node_is_vetoed(state: Path, tmp_path: Path, call: dict[str, Any]) -> None:
    protected = {"selector": {"matchLabels": {"tier": "web"}}}
    answer, recorded = victims_with(state, tmp_path, call, protect=protected)

    assert answer.keys() < proposed_victims(call).keys()
    assert all(PODS[uid]["metadata"]["labels"]["tier"] != "web" for uids in answer.values() for uid in uids)
    if not answer:
        assert recorded is None
        return
    assert recorded is not None
    assert recorded["withoutPolicies"]["node"] in proposed_victims(call)
    assert {victim["pod"]["uid"] for victim in recorded["withoutPolicies"]["victims"]} == {
        *proposed_victims(call)[recorded["withoutPolicies"]["node"]]
    }


@each_call
def test_no_node_loses_more_than_with_the_victims_of_kube_scheduler(
    state: Path, tmp_path: Path, call: dict[str, Any]
) -> None:
    answer, _ = victims_with(state, tmp_path, call, cost=WEB_IS_DEAR)
    without_policy, _ = victims_with(state, tmp_path, call)

    assert answer.keys() == without_policy.keys()
    assert all(loss(uids) <= loss(without_policy[node]) for node, uids in answer.items())


@each_call
def test_budgets_are_kept_where_that_is_the_rule(state: Path, tmp_path: Path, call: dict[str, Any]) -> None:
    violating = {node for node, victims in call["body"]["NodeNameToMetaVictims"].items() if victims["NumPDBViolations"]}
    assert violating

    with serving(
        state=state, schedule=False, config=configured(tmp_path, protect={"neverViolateBudgets": True})
    ) as service:
        answer = service.call("preempt", as_go_writes(call["body"])).json()["NodeNameToMetaVictims"]

    assert answer.keys() < call["body"]["NodeNameToMetaVictims"].keys()
    assert all(victims["NumPDBViolations"] == 0 for victims in answer.values())


@each_call
def test_a_preemptor_that_has_to_wait_gets_no_node(state: Path, tmp_path: Path, call: dict[str, Any]) -> None:
    waits, _ = victims_with(state, tmp_path, call, delay={"default": "1h"})
    is_exempt, _ = victims_with(state, tmp_path, call, delay={"default": "1h", "byPriorityClass": {"high": "0s"}})
    without_policy, recorded = victims_with(state, tmp_path, call)

    assert waits == {}
    assert is_exempt == without_policy
    assert recorded is not None
    assert recorded["withoutPolicies"] is None


# GPU time.


def gpu_cluster(folder: Path) -> tuple[Path, Path]:
    """A dump of a node with two trainings, one of which has just written a checkpoint, and a pod that needs the GPUs of
    one.
    """

    def training(name: str, **annotations: str) -> dict[str, Any]:
        gpus = {"example.com/gpu": "4"}
        manifest = pod(name, nodeName="n", container={"resources": {"requests": gpus, "limits": gpus}})
        started = "2026-01-01T00:00:00Z" if name == "long" else "2026-01-02T00:00:00Z"
        manifest["metadata"] |= {"namespace": "default", "uid": name, "annotations": annotations}
        return manifest | {"status": {"phase": "Running", "startTime": started}}

    one = node("n", "9")
    one["status"]["allocatable"]["example.com/gpu"] = "8"
    high = priority_class("high", 1000)
    saved = {"reprieve.dev/last-checkpoint-time": "2099-01-01T00:00:00Z"}
    dump, wants = folder / "cluster.json", folder / "wants.json"
    state_file(dump, one, high, training("long", **saved), training("late"))
    new = {"priorityClassName": "high", "containers": training("new")["spec"]["containers"]}
    wants.write_text(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}, "spec": new}))
    return dump, wants


def reprieve(*arguments: object) -> str:
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False).stdout


def test_victims_says_what_is_lost_and_what_kube_scheduler_alone_would_lose(tmp_path: Path) -> None:
    dump, wants = gpu_cluster(tmp_path)
    config = configured(tmp_path, cost={"perHour": "gpus"})
    answer = json.loads(reprieve("victims", "-f", wants, "--dump", dump, "--config", config, "-o", "json"))
    (placement,) = answer["placements"]
    preemption = placement["preemption"]

    assert [victim["pod"]["name"] for victim in preemption["victims"]] == ["long"]
    assert (preemption["gpuHours"], answer["gpuHours"]) == (0.0, 0.0)
    assert [victim["pod"]["name"] for victim in preemption["withoutPolicies"]["victims"]] == ["late"]
    assert preemption["gpuHoursWithoutPolicies"] > 4 * 24
    assert preemption["gpuHoursWithoutPolicies"] == preemption["withoutPolicies"]["victims"][0]["gpuHours"]

    output = reprieve("victims", "-f", wants, "--dump", dump, "--config", config)
    assert "GPU time lost: 0.0 GPU-hours; kube-scheduler alone would evict default/late on n, and lose " in output


def test_without_policies_both_numbers_are_the_same(tmp_path: Path) -> None:
    dump, wants = gpu_cluster(tmp_path)
    answer = json.loads(reprieve("whatif", "-f", wants, "--dump", dump, "-o", "json"))
    preemption = answer["placements"][0]["preemption"]

    assert [victim["pod"]["name"] for victim in preemption["victims"]] == ["late"]
    assert preemption["withoutPolicies"] is None
    assert preemption["gpuHours"] == preemption["gpuHoursWithoutPolicies"] == answer["gpuHours"] > 0
    assert "GPU time lost: " in reprieve("whatif", "-f", wants, "--dump", dump)
