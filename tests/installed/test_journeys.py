"""Three people at work, each in a shell of an empty environment: one guards training jobs, one is on call, one tests
rules in CI.
"""

import json
import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.api.test_questions import deployment
from tests.installed.environment import Environment
from tests.installed.journey import Journey
from tests.kit import objects
from tests.kit.objects import priority_class
from tests.kit.ports import free_port

pytestmark = pytest.mark.slow

ZONE = "topology.kubernetes.io/zone"


def ago(**time: float) -> str:
    return (datetime.now(UTC) - timedelta(**time)).strftime("%Y-%m-%dT%H:%M:%SZ")


def node(name: str, zone: str = "a", **allocatable: str) -> dict[str, Any]:
    obj = objects.node(name, "8", labels={ZONE: zone})
    obj["status"]["allocatable"] |= allocatable
    return obj


def pod(
    name: str, namespace: str, requests: dict[str, str], node: str = "", *, started: str = "", **spec: Any
) -> dict[str, Any]:
    metadata: dict[str, Any] = {key: spec.pop(key) for key in ("labels", "annotations") if key in spec}
    obj = objects.pod(name, container={"resources": {"requests": requests, "limits": requests}})
    obj["spec"] |= spec | ({"nodeName": node} if node else {})
    obj["metadata"] |= {"namespace": namespace, **metadata}
    obj["status"] = {"phase": "Running", "startTime": started} if node else {}
    return obj


def write(file: Path, *manifests: dict[str, Any]) -> None:
    file.write_text(yaml.safe_dump_all(manifests))


@pytest.fixture
def shell(environment: Environment, tmp_path: Path) -> Journey:
    return Journey(environment, tmp_path)


# J2: a GPU cluster's administrator spares training jobs that are far from their last checkpoint.

POLICY = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: DefaultPreemption
    args:
      protect:
        selector: {matchLabels: {role: driver}}
        minRunTime: 20m
      cost:
        perHour: gpus
"""


def training(name: str, node: str, *, started: str, checkpoint: str = "", **labels: str) -> dict[str, Any]:
    annotations = {"volcano.sh/last-checkpoint-time": checkpoint} if checkpoint else {}
    return pod(
        name, "ml", {"nvidia.com/gpu": "8"}, node, started=started, priority=10, labels=labels, annotations=annotations
    )


def test_an_administrator_spares_training_far_from_its_checkpoint(shell: Journey) -> None:
    """kube-scheduler evicts the pod that started last. With the policy the one goes that has just saved its work."""
    write(
        shell.folder / "cluster.yaml",
        *(node(f"gpu-{number}", **{"nvidia.com/gpu": "8"}) for number in range(4)),
        training("driver", "gpu-0", started=ago(hours=1), role="driver"),
        training("young", "gpu-1", started=ago(minutes=2)),
        training("unsaved", "gpu-2", started=ago(hours=6)),
        training("saved", "gpu-3", started=ago(hours=9), checkpoint=ago(minutes=3)),
    )
    write(shell.folder / "urgent.yaml", pod("urgent", "ml", {"nvidia.com/gpu": "8"}, priority=1000))
    (shell.folder / "policy.yaml").write_text(POLICY)

    alone = shell.type("reprieve victims -f urgent.yaml --dump cluster.yaml")
    with_policy = shell.type("reprieve victims -f urgent.yaml --dump cluster.yaml --config policy.yaml")
    answer = json.loads(shell.type("reprieve victims -f urgent.yaml --dump cluster.yaml --config policy.yaml -o json"))

    assert "would evict 1 pod on gpu-1" in alone and "ml/young" in alone
    assert "would evict 1 pod on gpu-3" in with_policy and "ml/saved" in with_policy
    [placement] = answer["placements"]
    candidates = {candidate["node"] for candidate in placement["preemption"]["candidates"]}
    assert candidates == {"gpu-2", "gpu-3"}  # the driver and the young pod are protected


# J4: somebody on call at 03:12.


def test_operator_on_call_finds_the_reason_a_fix_and_the_preempted_pod(shell: Journey) -> None:
    write(
        shell.folder / "cluster.yaml",
        priority_class("high", 1000),
        node("node-a-1", "a"), node("node-b-1", "b"), node("node-b-2", "b"),
        pod("etl-4", "batch", {"cpu": "6"}, "node-b-1", started=ago(minutes=3), priority=0),
        pod("db-0", "payments", {"cpu": "6"}, "node-b-2", started=ago(hours=5), priority=5000),
        pod("etl-1", "batch", {"cpu": "6"}, "node-a-1", started=ago(hours=5), priority=0),
        pod("api-7f9", "payments", {"cpu": "3"}, priority=10, preemptionPolicy="Never", nodeSelector={ZONE: "b"}),
    )  # fmt: skip
    write(shell.folder / "pod.yaml", pod("api-new", "payments", {"cpu": "3"}, nodeSelector={ZONE: "b"}))
    port, kube = free_port(), free_port()
    server = f"http://127.0.0.1:{port}"
    with shell.beside(f"reprieve serve --state cluster.yaml --port {port} --kubernetes-port {kube}") as serving:
        serving.until_ready(f"{server}/readyz")
        on_call = {"REPRIEVE_SERVER": server}

        groups = shell.type("reprieve pending", also=on_call)
        why = shell.type("reprieve why payments/api-7f9 -o wide", also=on_call)
        trial = shell.type("reprieve whatif -f pod.yaml --priority-class high --preempt", also=on_call)
        shell.type("kubectl-reprieve whatif -f pod.yaml --priority-class high --no-preempt", fails=True, also=on_call)
        assert "No pending pods" not in groups and "payments" in groups
        assert "Pending" in why and "node(s) didn't match Pod's node affinity/selector" in why
        assert "It would fit if" in why and "retried on" in why and "preemptionPolicy=Never" in why
        assert "batch/etl-4" in trial and "node-b-1" in trial

        high = pod("api-high", "payments", {"cpu": "3"}, nodeSelector={ZONE: "b"}, priorityClassName="high")
        write(shell.folder / "high.yaml", high)
        pods = f"{server}/api/v1/namespaces/payments/pods"
        shell.type(f"curl -sf -H 'Content-Type: application/yaml' --data-binary @high.yaml {pods}")
        command = "reprieve who-preempted batch/etl-4 --since 2d"
        shell.type(f"until {command}; do sleep 0.2; done", also=on_call)
        last = shell.type(command, also=on_call)
        assert "for payments/api-high (priority 1000)" in last
    print(shell.report())


# J6: an engineer of CI keeps scheduling rules as tests.

RULE = """
name: web is spread, and production stays
given:
  nodes: {count: 6, zones: [a, b, c], cpu: 4}
  existing: running.yaml
when: {apply: web.yaml}
then:
  - {pods: app=web, placed: 3, spread: {by: zone, maxSkew: 1}}
  - {noPreemptionOf: priorityClass=prod}
  - {pending: 0}
"""


def test_an_engineer_of_ci_gates_a_change_by_rules(shell: Journey) -> None:
    rules = shell.folder / "tests"
    rules.mkdir()
    (rules / "spread.yaml").write_text(RULE)
    prod = priority_class("prod", 10)
    write(rules / "running.yaml", prod, pod("prod-0", "shop", {"cpu": "3"}, priorityClassName="prod", priority=10))
    constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    spread = {**constraint, "labelSelector": {"matchLabels": {"app": "web"}}}

    def change(cpu: str) -> None:
        spec = objects.pod("web", cpu, topologySpreadConstraints=[spread])["spec"]
        write(rules / "web.yaml", deployment("web", spec, 3))

    change("1")
    shell.type("reprieve verify tests --golden golden.yaml --update")
    shell.type("reprieve verify tests --golden golden.yaml --k8s 1.34,1.37 --junit out.xml")
    assert len(ET.parse(shell.folder / "out.xml").getroot().findall(".//testcase")) == 2
    assert ET.parse(shell.folder / "out.xml").getroot().find(".//failure") is None

    change("5")
    output = shell.type("reprieve verify tests --golden golden.yaml --junit out.xml", fails=True)
    failure = ET.parse(shell.folder / "out.xml").getroot().find(".//failure")

    assert "Insufficient cpu" in output
    assert "as in golden.yaml" in output
    assert failure is not None and "Insufficient cpu" in "".join(failure.itertext()) + failure.get("message", "")
