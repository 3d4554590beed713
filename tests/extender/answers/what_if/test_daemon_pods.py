"""Nodes that are added get the pods of the cluster's DaemonSets before any other."""

from typing import Any

from extender.answers.types import WhatIf, WhatIfRequest
from extender.answers.what_if.what_if import what_if
from extender.cluster.trial_registry import TrialRegistry
from extender.engine.cache.cluster import Cluster
from extender.testing import PodBuilder, make_node, make_pod
from extender.values.config import Configuration
from extender.values.objects.cluster import ClusterState
from extender.values.objects.pod import Pod
from tests.kit.owners import owned_by


def of_daemon_set(pod: PodBuilder) -> Pod:
    return owned_by(pod.obj(), "DaemonSet", "agent")


def cluster(*pods: Pod) -> Cluster:
    return Cluster.of(ClusterState(nodes=[make_node("n1").capacity(cpu=4, memory="8Gi", pods=110).obj()], pods=pods))


def new_node(name: str = "n2", labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": status,
    }


def ask(about: Cluster, *create: dict[str, Any]) -> WhatIf:
    return what_if(
        about.fork(), Configuration(), WhatIfRequest(create=list(create), include_pending=True), TrialRegistry
    )


def places(answer: WhatIf) -> dict[str, str]:
    return {each.pod.name: each.node for each in answer.placements}


def test_daemon_pod_takes_its_room_on_a_new_node_before_other_pods() -> None:
    about = cluster(of_daemon_set(make_pod("agent-x").req(cpu=1).node("n1")), make_pod("large").req(cpu=4).obj())

    answer = ask(about, new_node())

    assert places(answer) == {"agent-n2": "n2", "large": ""}
    assert len(answer.notes) == 1


def test_a_node_that_the_daemon_set_leaves_out_gets_none() -> None:
    picky = of_daemon_set(make_pod("agent-x").req(cpu=1).node("n1").node_selector({"disk": "ssd"}))

    assert places(ask(cluster(picky), new_node())) == {}
    assert places(ask(cluster(picky), new_node(labels={"disk": "ssd"}))) == {"agent-n2": "n2"}
    taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    assert places(ask(cluster(picky), new_node(labels={"disk": "ssd"}, taints=[taint]))) == {}


def test_a_node_that_is_there_already_gets_none() -> None:
    about = cluster(of_daemon_set(make_pod("agent-x").req(cpu=1).node("n1")))

    answer = ask(about, new_node("n1"))

    assert (places(answer), answer.notes) == ({}, ())


def test_a_daemon_set_that_is_written_makes_its_pods_itself() -> None:
    container = {"name": "c", "image": "registry.example/agent:2", "resources": {"requests": {"cpu": "2"}}}
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"app": "agent"}}, "template": template}
    written = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"}, "spec": spec}
    about = cluster(of_daemon_set(make_pod("agent-x").req(cpu=1).node("n1")))

    answer = ask(about, new_node(), written)

    assert [(each.pod.name, each.requests["cpu"]) for each in answer.placements] == [("agent-n2", "2")]
    assert "an update of its pods is not followed here" in answer.notes[-1]
