"""Nodes that are added get the pods of the cluster's DaemonSets before any other."""

from typing import Any

from extender.engine.cache.cluster import Cluster
from extender.testing import PodBuilder, make_node, make_pod
from extender.values.objects.cluster import ClusterState
from extender.values.objects.pod import Pod
from tests.extender.answers.what_if.test_what_if import ask, places
from tests.kit.objects import node, pod, workload
from tests.kit.owners import owned_by


def of_daemon_set(builder: PodBuilder) -> Pod:
    return owned_by(builder.obj(), "DaemonSet", "agent")


def cluster(*pods: Pod) -> Cluster:
    return Cluster.of(ClusterState(nodes=[make_node("n1").capacity(cpu=4, memory="8Gi", pods=110).obj()], pods=pods))


def places_with(about: Cluster, *create: dict[str, Any]) -> dict[str, str]:
    return places(ask(about, *create, include_pending=True))


def test_daemon_pod_takes_its_room_on_a_new_node_before_other_pods() -> None:
    about = cluster(of_daemon_set(make_pod("agent-x").req(cpu=1).node("n1")), make_pod("large").req(cpu=4).obj())

    answer = ask(about, node("n2", "4"), include_pending=True)

    assert places(answer) == {"agent-n2": "n2", "large": ""}
    assert len(answer.notes) == 1


def test_a_node_that_the_daemon_set_leaves_out_gets_none() -> None:
    picky = of_daemon_set(make_pod("agent-x").req(cpu=1).node("n1").node_selector({"disk": "ssd"}))

    assert places_with(cluster(picky), node("n2", "4")) == {}
    assert places_with(cluster(picky), node("n2", "4", labels={"disk": "ssd"})) == {"agent-n2": "n2"}
    taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    assert places_with(cluster(picky), node("n2", "4", labels={"disk": "ssd"}, taints=[taint])) == {}


def test_a_node_that_is_there_already_gets_none() -> None:
    about = cluster(of_daemon_set(make_pod("agent-x").req(cpu=1).node("n1")))

    answer = ask(about, node("n1", "4"))

    assert (places(answer), answer.notes) == ({}, ())


def test_a_daemon_set_that_is_written_makes_its_pods_itself() -> None:
    daemon_set = workload("DaemonSet", "agent", pod("agent", "2"))
    about = cluster(of_daemon_set(make_pod("agent-x").req(cpu=1).node("n1")))

    answer = ask(about, node("n2", "4"), daemon_set)

    assert [(placement.pod.name, placement.requests["cpu"]) for placement in answer.placements] == [("agent-n2", "2")]
    assert "an update of its pods is not simulated" in answer.notes[-1]
