"""Walk (a): POST /filter from kube-scheduler, from its bytes to ours. Read it beside ARCHITECTURE.md."""

from typing import Any

from api.settings.settings import Settings
from extender.testing import make_node, make_pod, make_verbs
from extender.values.objects.cluster import ClusterState
from extender.verbs import Verbs
from tests.kit.service import Service, serving

# The cluster as the service knows it: a node with room, a full one, a small one, and one that takes nobody.
CLUSTER = ClusterState(
    nodes=[
        make_node("roomy").capacity(cpu="8").obj(),
        make_node("full").capacity(cpu="4").obj(),
        make_node("small").capacity(cpu="1").obj(),
        make_node("closed").capacity(cpu="8").unschedulable().obj(),
    ],
    pods=[make_pod("busy").req(cpu="3").node("full").obj()],
)


def open_verbs(_: Settings) -> Verbs:
    return make_verbs(CLUSTER)


def filter_(service: Service, cpu: str = "2", **nodes: object) -> dict[str, Any]:
    """The pod comes in Kubernetes' own JSON and wants two cores. The keys beside it are spelled as Go spells its
    fields; absent ones are null.
    """
    pod = {
        "metadata": {"name": "web", "uid": "1"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]},
    }
    answer = service.call("filter", {"Pod": pod, "Nodes": None, "NodeNames": None} | nodes)
    assert answer.status_code == 200
    result: dict[str, Any] = answer.json()
    return result


def test_kube_scheduler_asks_where_a_pod_can_run() -> None:
    with serving(open_verbs) as service:
        # 1 kube-scheduler knows that we keep a cache of our own, and sends the names of the nodes that its own plugins
        # let pass.
        by_name = filter_(service, NodeNames=["small", "roomy", "closed", "full", "brand-new"])

        # Each node is in exactly one place. Those that fit keep their order. On the others it matters whether
        # preemption can help: pods on `full` could go; `small` is too small for good, `closed` is closed, and of
        # `brand-new` we have not heard yet.
        assert by_name == {
            "Nodes": None,
            "NodeNames": ["roomy"],
            "FailedNodes": {"full": "Insufficient cpu", "brand-new": "node not known to the extender yet"},
            "FailedAndUnresolvableNodes": {"small": "Insufficient cpu", "closed": "node(s) were unschedulable"},
            "Error": "",
        }

        # 2 Another kube-scheduler sends its nodes in full. What it says of them wins: `full` has been given more cores
        # since. What is on them is what we know: `busy` still takes three. The answer has the same form, and the nodes
        # in it are its own, byte for byte.
        larger = {"metadata": {"name": "full"}, "status": {"allocatable": {"cpu": "5", "pods": "10"}}, "ours": "kept"}
        tight = {"metadata": {"name": "roomy"}, "status": {"allocatable": {"cpu": "1", "pods": "10"}}}
        in_full = filter_(service, Nodes={"metadata": {}, "items": [larger, tight]})

        assert in_full["Nodes"]["items"] == [larger]
        assert in_full["NodeNames"] is None
        assert in_full["FailedAndUnresolvableNodes"] == {"roomy": "Insufficient cpu"}

        # 3 Nothing was written by asking: the first question has the same answer as before.
        assert filter_(service, NodeNames=["small", "roomy", "closed", "full", "brand-new"]) == by_name

        # 4 What cannot be answered is said in `Error` with status 200, for kube-scheduler reads no other body.
        assert "spec.containers[0].resources.requests[cpu]" in filter_(service, cpu="two", NodeNames=["roomy"])["Error"]
