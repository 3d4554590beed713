"""What would happen if: where pods would go, who would have to leave, and where those would find a place."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from extender.answers.trial import Trial
from extender.answers.types import NodesLike, QuestionError, WhatIf, WhatIfRequest
from extender.answers.what_if.simulation import Simulation
from extender.answers.what_if.what_if import what_if
from extender.engine import framework as fwk
from extender.engine.cache.cluster import Cluster
from extender.engine.plugins.node_name import NodeName
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.rules.trial_registry import TrialRegistry
from extender.testing import NodeBuilder, PodBuilder, make_framework, make_node, make_pod
from extender.values.config.configuration import Configuration
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import Condition
from extender.values.objects.pod import Pod, PodExtendedResourceClaimStatus, PodResourceClaim, ResourceRequirements
from tests.extender.engine.cache.snapshot_contents import view
from tests.kit.cluster import cluster_of
from tests.kit.devices import allocation_of, exactly, label_selector, make_claim, make_device_class, slice_of
from tests.kit.objects import pod, priority_class
from tests.kit.owners import make_budget, owned_by
from tests.kit.pod_specs import near

HIGH = priority_class("high", 1000)


def node(name: str, cpu: int = 4) -> NodeBuilder:
    return make_node(name).capacity(cpu=cpu, memory="8Gi", pods=110).label({"kubernetes.io/hostname": name})


def owned(pod: PodBuilder, kind: str = "ReplicaSet") -> Pod:
    """The pod, made by a controller."""
    plain_pod = pod.obj()
    return owned_by(plain_pod, kind, f"{plain_pod.name}-owner")


def running(name: str, on: str, cpu: int = 1, priority: int = 0, kind: str = "ReplicaSet") -> Pod:
    return owned(make_pod(name).req(cpu=cpu).node(on).priority(priority), kind)


def ask(about: Cluster, *create: Mapping[str, Any], **request: Any) -> WhatIf:
    return what_if(
        about.fork(), Configuration(), WhatIfRequest(create=[dict(obj) for obj in create], **request), TrialRegistry
    )


def places(answer: WhatIf) -> dict[str, str]:
    return {placement.pod.name: placement.node for placement in answer.placements}


def moves(answer: WhatIf) -> list[tuple[str, str, str, str, int]]:
    """(who, why, from where, to where, depth) of every eviction."""
    return [(move.victim.pod.name, move.why, move.node, move.lands_on, move.depth) for move in answer.evictions]


# Pods that come.


def test_a_pod_goes_where_the_scheduler_would_put_it() -> None:
    answer = ask(cluster_of(node("small", 1), node("large")), pod("web", 2))

    assert places(answer) == {"web": "large"}
    assert answer.placements[0].requests == {"cpu": "2"}
    assert (answer.summary, answer.unplaced, answer.is_complete) == ("default/web would go to large.", 0, True)


def test_pod_that_fits_nowhere_gets_the_message_of_the_scheduler() -> None:
    answer = ask(cluster_of(node("small", 1)), pod("web", 2))

    (placement,) = answer.placements
    assert placement.message == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    assert answer.summary == f"default/web would be unschedulable: {placement.message}"
    assert answer.unplaced == 1


def test_pods_are_placed_in_the_order_of_the_queue_and_take_room_from_each_other() -> None:
    """The important one comes first, whatever the order in which they are written."""
    answer = ask(cluster_of(node("n", 2)), HIGH, pod("low", 2), pod("urgent", 2, priorityClassName="high"))

    assert places(answer) == {"urgent": "n", "low": ""}
    assert not answer.evictions


def test_pods_that_wait_already_are_placed_if_they_are_asked_about() -> None:
    waiting = make_pod("waiting").req(cpu=1).obj()
    about = cluster_of(node("n", 2), pods=(waiting,))

    assert places(ask(about, pod("web"))) == {"web": "n"}
    answer = ask(about, pod("web", 2), include_pending=True)
    assert [(place.pod.name, place.cause, place.node) for place in answer.placements] == [
        ("waiting", "pending", "n"),
        ("web", "created", ""),
    ]


def test_a_pod_that_is_gated_is_not_placed() -> None:
    answer = ask(cluster_of(node("n")), pod("held", schedulingGates=[{"name": "example.com/quota"}]))

    assert answer.placements[0].message == "waiting for scheduling gates: [example.com/quota]"


def test_a_pod_of_another_scheduler_is_left_to_it() -> None:
    answer = ask(cluster_of(node("n")), pod("odd", schedulerName="volcano"))

    assert answer.placements[0].message == 'no profile here for schedulerName "volcano"'


# Pods that have to go.


def test_victims_are_named_and_so_is_where_they_would_land() -> None:
    about = cluster_of(
        node("n1", 3), node("n2", 1), pods=(running("etl", "n1"), running("big", "n1", 2, priority=2000))
    )

    answer = ask(about, HIGH, pod("web", 1, priorityClassName="high", nodeSelector={"kubernetes.io/hostname": "n1"}))

    assert places(answer) == {"web": "n1", "etl": "n2"}
    (eviction,) = answer.evictions
    assert (eviction.victim.owner, eviction.returns) == ("ReplicaSet/etl-owner", True)
    assert eviction.by and eviction.by.name == "web"
    assert moves(answer) == [("etl", "preempted", "n1", "n2", 1)]
    placement = answer.placements[0]
    assert [victim.pod.name for victim in placement.evicts] == ["etl"]
    assert placement.preemption is not None
    assert placement.preemption.node == "n1"
    assert placement.message == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector."
    )
    assert answer.summary == "default/web would go to n1, and default/etl would be evicted from n1 and land on n2."


def test_evictions_cascade_as_far_as_priorities_reach() -> None:
    about = cluster_of(
        node("n1", 2), node("n2", 2), pods=(running("middle", "n1", 2, priority=500), running("low", "n2", 2))
    )

    answer = ask(about, HIGH, pod("web", 2, priorityClassName="high", nodeSelector={"kubernetes.io/hostname": "n1"}))

    assert moves(answer) == [("middle", "preempted", "n1", "n2", 1), ("low", "preempted", "n2", "", 2)]
    assert [move.by and move.by.name for move in answer.evictions] == ["web", "middle"]
    assert answer.evictions[1].message.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert places(answer) == {"web": "n1", "middle": "n2", "low": ""}


def test_a_pod_of_its_own_does_not_come_back() -> None:
    alone = make_pod("alone").req(cpu=2).node("n").obj()

    answer = ask(
        cluster_of(node("n", 2), node("free", 2).unschedulable(), pods=(alone,)),
        HIGH,
        pod("web", 2, priorityClassName="high"),
    )

    (eviction,) = answer.evictions
    assert (eviction.returns, eviction.lands_on) == (False, "")
    assert places(answer) == {"web": "n"}


def test_a_pod_that_came_along_may_have_to_go_again() -> None:
    """The important one cannot be placed until another has come; by then a third has taken the room."""
    leader = pod("leader", priorityClassName="high")
    leader["metadata"]["labels"] = {"app": "db"}

    answer = ask(
        cluster_of(node("n", 3)),
        HIGH,
        pod("urgent", 2, priorityClassName="high", affinity=near(app="db")),
        leader,
        pod("web", 2),
    )

    assert places(answer) == {"urgent": "n", "leader": "n", "web": ""}
    (eviction,) = answer.evictions
    assert (eviction.victim.pod.name, eviction.by and eviction.by.name, eviction.returns) == ("web", "urgent", False)
    assert answer.placements[2].message == "it is evicted and not recreated (no owner)"


def test_refused_pod_is_retried_when_room_appears() -> None:
    """The first pod fits only beside the second, which is less important and comes later."""
    follower = pod("follower", priorityClassName="high", affinity=near(app="db"))
    leader = pod("leader")
    leader["metadata"]["labels"] = {"app": "db"}

    answer = ask(cluster_of(node("n1"), node("n2")), HIGH, follower, leader)

    assert places(answer)["follower"] == places(answer)["leader"] != ""


def test_nominated_pod_gets_the_room_of_terminating_victims() -> None:
    victim = make_pod("victim").req(cpu=2).node("n").terminating().obj()
    condition = Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    victim = replaced(victim, status=replaced(victim.status, conditions=[condition]))
    waiting = make_pod("waiting").req(cpu=2).priority(10).nominated_node("n").obj()

    answer = ask(cluster_of(node("n", 2), pods=(victim, waiting)), include_pending=True)

    assert (places(answer), answer.evictions) == ({"waiting": "n"}, ())
    assert answer.placements[0].message.endswith(
        "preemption: not eligible due to a terminating pod on the nominated node."
    )


def test_devices_are_given_out_one_by_one() -> None:
    """One device a node, and three pods with a claim of a template each: the important one and one of the others get
    theirs.
    """
    exactly = {"name": "r", "exactly": {"deviceClassName": "any"}}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one"},
        "spec": {"spec": {"devices": {"requests": [exactly]}}},
    }
    claims: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one"}]}
    low = [pod(f"low-{number}", **claims) for number in range(2)]
    about = cluster_of(node("n1"), node("n2"), resource_slices=DEVICES, device_classes=(make_device_class("any"),))

    answer = ask(about, HIGH, template, *low, pod("high", priorityClassName="high", **claims))

    assert {places(answer)["high"], places(answer)["low-0"]} == {"n1", "n2"}
    assert answer.placements[1].message.startswith("0/2 nodes are available: 2 cannot allocate all claims.")


ON_N1 = allocation_of({"device": "gpu", "pool": "n1"}, node_selector=label_selector("kubernetes.io/hostname", "n1"))
DEVICES = slice_of("n1", "gpu"), slice_of("n2", "gpu")
USED_BY_WEB = [{"resource": "pods", "name": "web", "uid": "default/web"}]


def test_evicted_pod_releases_its_devices() -> None:
    """The claim was for a device of the first node; it can be one of the second then."""
    claim = make_claim("mine", exactly(), allocation=ON_N1, reservedFor=USED_BY_WEB)
    web = running("web", "n1")
    using = replaced(
        web, spec=replaced(web.spec, resource_claims=[PodResourceClaim(name="gpu", resource_claim_name="mine")])
    )
    objects = {"resource_slices": DEVICES, "device_classes": (make_device_class("any"),), "resource_claims": (claim,)}

    assert moves(ask(cluster_of(node("n1"), node("n2"), pods=(using,), **objects), drain_nodes=["n1"])) == [
        ("web", "drained", "n1", "n2", 1)
    ]


GPU = "example.com/gpu"
BACKED = make_device_class("gpu", backs=GPU)
SPECIAL = {
    "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "default/web", "controller": True}],
}
"""Metadata of a claim that the scheduler has made for pod web."""


def test_devices_for_extended_resources_are_given_out_one_by_one() -> None:
    """As for claims; there are none to be written, because the scheduler makes them."""
    wanting: dict[str, Any] = {"containers": [{"name": "c", "image": "web:1", "resources": {"limits": {GPU: "1"}}}]}
    about = cluster_of(node("n1"), node("n2"), resource_slices=DEVICES, device_classes=(BACKED,))

    answer = ask(about, *(pod(f"pod-{number}", **wanting) for number in range(3)))

    assert {places(answer)["pod-0"], places(answer)["pod-1"]} == {"n1", "n2"}
    assert answer.placements[2].message.startswith("0/2 nodes are available: 2 cannot allocate all claims.")


def test_evicted_pod_releases_the_devices_of_its_extended_resources() -> None:
    """With the claim that the scheduler made for them: it makes another one for the next node."""
    web = running("web", "n1")
    requesting = replaced(web.spec.containers[0], resources=ResourceRequirements(requests={GPU: "1"}))
    status = PodExtendedResourceClaimStatus(resource_claim_name="web-extended-resources-1")
    web = replaced(
        web,
        spec=replaced(web.spec, containers=[requesting]),
        status=replaced(web.status, extended_resource_claim_status=status),
    )
    claim = make_claim(
        "web-extended-resources-1",
        exactly(device_class="gpu"),
        metadata=SPECIAL,
        allocation=ON_N1,
        reservedFor=USED_BY_WEB,
    )
    objects = {"resource_slices": DEVICES, "device_classes": (BACKED,), "resource_claims": (claim,)}

    assert moves(ask(cluster_of(node("n1"), node("n2"), pods=(web,), **objects), drain_nodes=["n1"])) == [
        ("web", "drained", "n1", "n2", 1)
    ]


def test_leftover_special_claim_of_an_earlier_attempt_is_deleted_first() -> None:
    """As the scheduler does at the pod's next attempt."""
    waiting = make_pod("web").req({GPU: "1"}).obj()
    claim = make_claim("left", exactly(device_class="gpu"), metadata=SPECIAL, allocation=ON_N1)
    foreign = replaced(claim, metadata=replaced(claim.metadata, name="others", uid="others", owner_references=[]))
    objects = {"resource_slices": DEVICES, "device_classes": (BACKED,), "resource_claims": (claim, foreign)}

    answer = ask(cluster_of(node("n1"), node("n2"), pods=(waiting,), **objects), include_pending=True)

    assert places(answer) == {"web": "n2"}


# Budgets.


def protected(name: str, on: str) -> Pod:
    return owned(make_pod(name).req(cpu=2).node(on).label(app="db"))


@pytest.mark.parametrize(("allowed", "violating"), [(0, [1, 1]), (1, [0, 1]), (2, [0, 0])])
def test_every_eviction_uses_up_the_budgets(allowed: int, violating: list[int]) -> None:
    """Two pods push one each from a node of its own; what the first uses up, the second does not have any more."""
    about = cluster_of(
        node("n1", 2),
        node("n2", 2),
        pods=(protected("a", "n1"), protected("b", "n2")),
        pdbs=(make_budget("keep", allowed, app="db"),),
    )

    answer = ask(about, HIGH, pod("x", 2, priorityClassName="high"), pod("y", 2, priorityClassName="high"))

    assert [len(move.victim.violates) for move in answer.evictions] == violating
    assert [place.preemption and place.preemption.num_pdb_violations for place in answer.placements[:2]] == violating
    sentences = {
        0: "",
        1: " violates PodDisruptionBudget default/keep.",
        2: " 2 evictions violate PodDisruptionBudget default/keep.",
    }
    assert answer.summary.endswith(sentences[sum(violating)])
    assert ("violate" in answer.summary) == any(violating)


# Nodes that go.


def test_a_drained_node_keeps_what_belongs_to_it() -> None:
    mirror = make_pod("static").node("n1").annotation({"kubernetes.io/config.mirror": "x"}).obj()
    about = cluster_of(
        node("n1"), node("n2"), pods=(running("web", "n1"), running("agent", "n1", kind="DaemonSet"), mirror)
    )

    answer = ask(about, drain_nodes=["n1"])

    assert moves(answer) == [("web", "drained", "n1", "n2", 1)]
    assert answer.summary == "default/web would be evicted from n1 and land on n2."


def test_drain_ends_with_the_command_of_kubectl() -> None:
    about = cluster_of(node("n1"), node("n2"), pods=(running("web", "n1"),))

    answer = ask(about, drain_nodes=["n1", "n2", "n1"])

    assert answer.notes == (
        "kubectl drain n1 n2 --ignore-daemonsets does the same, with --delete-emptydir-data where pods have emptyDir "
        "volumes",
    )


def test_command_of_a_drain_quotes_names_and_forces_pods_out_that_nothing_recreates() -> None:
    alone = [make_pod(name).req(cpu=1).node("n;1").obj() for name in ("a", "b")]

    (note,) = ask(cluster_of(node("n;1"), pods=(*alone, running("web", "n;1"))), drain_nodes=["n;1"]).notes

    assert note.startswith("kubectl drain 'n;1' --ignore-daemonsets --force does the same")
    assert note.endswith("without --force it refuses pods that nothing recreates, here default/a and 1 more")


def test_a_removed_node_takes_its_own_pods_with_it() -> None:
    pods = running("web", "n1", 2), running("api", "n1"), running("agent", "n1", kind="DaemonSet")
    about = cluster_of(node("n1"), node("n2", 1), pods=pods)

    answer = ask(about, remove_nodes=["n1"])

    assert moves(answer) == [("web", "node removed", "n1", "", 1), ("api", "node removed", "n1", "n2", 1)]
    assert answer.placements[0].message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert answer.unplaced == 1


def test_a_drain_waits_for_the_budgets_that_hold_it_up() -> None:
    """Nobody is evicted against them: what becomes of their pods is said of the time when they allow it. Those that may
    leave come first.
    """
    other_budget = make_budget("other", 0, app="db")
    other_budget = replaced(other_budget, metadata=replaced(other_budget.metadata, namespace="elsewhere"))
    pods = protected("a", "n1"), protected("b", "n1"), running("web", "n1")
    about = cluster_of(node("n1", 8), node("n2", 8), pods=pods, pdbs=(make_budget("keep", 1, app="db"), other_budget))

    answer = ask(about, drain_nodes=["n1"])

    assert [(move.victim.pod.name, move.waits_for, move.lands_on) for move in answer.evictions] == [
        ("a", (), "n2"), ("web", (), "n2"), ("b", ("keep",), "n2"),
    ]  # fmt: skip
    assert {place.pod.name: place.waits_for for place in answer.placements} == {"a": (), "web": (), "b": ("keep",)}
    assert not any(move.victim.violates for move in answer.evictions)
    assert answer.summary == (
        "2 pods would be evicted (2 would land elsewhere). "
        "The drain would wait for PodDisruptionBudget default/keep before default/b may leave n1; then it would land "
        "on n2."
    )


@pytest.mark.parametrize(
    ("num_pods", "size", "rest"),
    [
        (1, 1, "before default/p0 may leave n1; then it would be unschedulable."),
        (3, 4, "before 3 pods may leave (then 1 would land elsewhere, 2 would be unschedulable)."),
    ],
)
def test_drain_waits_for_a_spent_budget_and_evicts_no_pod(num_pods: int, size: int, rest: str) -> None:
    pods = tuple(protected(f"p{number}", "n1") for number in range(num_pods))

    answer = ask(
        cluster_of(node("n1", 8), node("n2", size - 1), pods=pods, pdbs=(make_budget("keep", 0, app="db"),)),
        drain_nodes=["n1"],
    )

    assert answer.summary == f"The drain would wait for PodDisruptionBudget default/keep {rest}"


def test_a_node_that_is_gone_asks_no_budgets() -> None:
    about = cluster_of(
        node("n1", 8), node("n2", 8), pods=(protected("a", "n1"),), pdbs=(make_budget("keep", 0, app="db"),)
    )

    answer = ask(about, remove_nodes=["n1"])

    assert [(move.victim.violates, move.waits_for) for move in answer.evictions] == [((), ())]
    assert answer.summary == "default/a would be evicted from n1 and land on n2."


def test_a_node_that_is_gone_leaves_its_budgets_less() -> None:
    about = cluster_of(
        node("n1", 8),
        node("n2", 8),
        node("n3", 8),
        pods=(protected("a", "n1"), protected("b", "n2")),
        pdbs=(make_budget("keep", 1, app="db"),),
    )

    answer = ask(about, remove_nodes=["n1"], drain_nodes=["n2"])

    assert [(move.victim.pod.name, move.waits_for) for move in answer.evictions] == [("a", ()), ("b", ("keep",))]


def test_a_node_that_is_added_takes_pods() -> None:
    added = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "new"},
        "status": {"capacity": {"cpu": "8", "pods": "10"}},
    }

    assert places(ask(cluster_of(node("n", 1)), added, pod("web", 4))) == {"web": "new"}


# Another configuration.


def test_another_configuration_decides_instead() -> None:
    about = cluster_of(node("busy"), node("idle"), pods=(running("web", "busy", 2),))
    args = {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}
    profile = {"schedulerName": "default-scheduler", "pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}
    disabled = {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{**profile, "plugins": disabled}],
    }

    assert places(ask(about, pod("api"))) == {"api": "idle"}
    assert places(ask(about, pod("api"), configuration=configuration)) == {"api": "busy"}


# ControllerLoops, and the end of all steps.


class EvictsAnybody(fwk.PostFilterPlugin):
    """Pushes out whoever is on the first node, important or not; as two schedulers do that do not know of each
    other.
    """

    async def post_filter(self, state: fwk.CycleState, pod: Pod, statuses: fwk.NodeStatuses) -> fwk.PostFilterResult:
        snapshot = state.snapshot
        victims = tuple(snapshot.pod_at(slot) for slot in snapshot.pods.on_node[0])
        candidate = fwk.Candidate(node=snapshot.nodes.objects[0].name, victims=victims, num_pdb_violations=0)
        return fwk.PostFilterResult(fwk.SUCCESS, candidate.node, candidate)


class NeverReserves(fwk.ReservePlugin):
    """Finds too late that a pod cannot be where it was put."""

    def reserve(self, state: fwk.CycleState, pod: Pod, node: str) -> fwk.Status:
        return fwk.unschedulable("license server is down") if pod.name == "web" else fwk.SUCCESS

    def unreserve(self, state: fwk.CycleState, pod: Pod, node: str) -> None:
        """Nothing was kept."""


def played(about: Cluster, *plugins: Any, pods: tuple[Pod, ...]) -> Simulation:
    simulation = Simulation(Trial(about, {"default-scheduler": make_framework(*plugins, live=about.cache)}))
    for new_pod in pods:
        about.changed(None, new_pod)
        simulation.submit(new_pod, "created")
    asyncio.run(simulation.run())
    return simulation


def test_mutual_preemption_is_distinguished_from_progress() -> None:
    about = cluster_of(node("n", 2), pods=(running("b", "n", 2),))

    simulation = played(about, NodeName, NodeResourcesFit, EvictsAnybody, pods=(owned(make_pod("a").req(cpu=2)),))

    (loop,) = simulation.loops
    assert loop.text == (
        "default/a evicts default/b from n, then default/b evicts default/a from n, "
        "then default/a would evict default/b from n again, and so on forever"
    )
    assert [pod.name for pod in loop.pods] == ["a", "b"]
    assert [(move.victim.pod.name, move.lands_on) for move in simulation.evictions] == [("b", "n"), ("a", "")]
    assert simulation.is_complete


def test_a_pod_that_can_never_use_the_room_it_makes_stops_making_it() -> None:
    about = cluster_of(node("n", 2), pods=(running("b", "n", 2),))

    simulation = played(
        about,
        NodeName,
        NodeResourcesFit,
        EvictsAnybody,
        NeverReserves,
        pods=(owned(make_pod("web").req(cpu=2).priority(10)),),
    )

    (loop,) = simulation.loops
    assert (
        loop.text
        == "default/web evicts default/b from n, then default/web would evict default/b from n again, and so on forever"
    )
    assert {place.pod.name: place.node for place in simulation.placements} == {"web": "", "b": "n"}


def test_answer_is_incomplete_when_the_steps_run_out() -> None:
    about = cluster_of(node("n", 8))
    request = WhatIfRequest(create=[pod(f"p{number}") for number in range(6)])

    answer = what_if(about, Configuration(), request, TrialRegistry, steps=4)

    assert (answer.is_complete, answer.unplaced) == (False, 2)
    assert [bool(placement.node) for placement in answer.placements] == [True] * 4 + [False] * 2


# What is asked changes nothing.


def test_equal_questions_have_equal_answers() -> None:
    pods = tuple(running(f"p{number}", f"n{number}", 2) for number in range(6))
    about = cluster_of(*(node(f"n{number}", 2) for number in range(6)), pods=pods)
    question = HIGH, pod("x", 2, priorityClassName="high"), pod("y", 2, priorityClassName="high")

    assert ask(about, *question) == ask(about, *question)


def test_a_what_if_changes_nothing_while_the_cluster_goes_on() -> None:
    """Questions are worked out in threads; meanwhile pods come and go. In the end the cluster knows exactly what it was
    told.
    """
    pods = [running(f"p{number}", f"n{number % 4}") for number in range(8)]
    claims = (make_budget("keep", 1, app="db"),)
    about = cluster_of(*(node(f"n{number}") for number in range(4)), pods=tuple(pods), pdbs=claims)
    request = WhatIfRequest(
        create=[HIGH, pod("web", 4, priorityClassName="high")], drain_nodes=["n1"], remove_nodes=["n2"]
    )
    answers: list[WhatIf] = []
    for round_ in range(20):
        before = everything(about)
        fork = about.fork()
        thread = threading.Thread(
            target=lambda fork=fork: answers.append(what_if(fork, Configuration(), request, TrialRegistry))
        )
        thread.start()
        assert everything(about) == before
        changed = running(f"p{round_ % 8}", f"n{round_ % 4}", cpu=2 if round_ % 16 < 8 else 1)
        about.changed(pods[round_ % 8], changed)
        pods[round_ % 8] = changed
        after = everything(about)
        thread.join()
        assert everything(about) == after

    assert len(answers) == 20
    fresh = cluster_of(*(node(f"n{number}") for number in range(4)), pods=tuple(pods), pdbs=claims)
    assert everything(about)["pods"] == everything(fresh)["pods"]


def everything(about: Cluster) -> dict[str, Any]:
    """All that is known of a cluster."""
    tables = {
        name: dict(getattr(about.cache.objects, name))
        for name in ("pdbs", "pvcs", "pvs", "services", "namespaces", "replica_sets")
    }
    columns = view(about.cache.update_snapshot())
    return {
        "nodes": dict(about.nodes),
        "columns": columns,
        "pods": {name: sorted(pod["pod"].uid for pod in on_node["pods"]) for name, on_node in columns.items()},
        "pending": dict(about.pending),
        "assumed": about.cache.assumed_pods,
        "unreadable": dict(about.unreadable),
        **tables,
    }


def test_a_configuration_of_many_profiles_is_refused() -> None:
    profiles = [{"schedulerName": f"profile-{number}"} for number in range(101)]
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": profiles,
    }

    with pytest.raises(QuestionError, match="more than 100 profiles"):
        ask(cluster_of(node("n")), configuration=configuration)


# Nodes like one that exists.


def test_copies_of_a_node_take_pods_as_it_would_under_new_names() -> None:
    about = cluster_of(
        node("a", cpu=2).taint("dedicated", "gpu").label(disk="ssd"), pods=(running("full", "a", cpu=2),)
    )
    tolerant = pod("new", 2, tolerations=[{"operator": "Exists"}], nodeSelector={"disk": "ssd"})

    answer = ask(about, tolerant, add_nodes=[NodesLike(like="a", count=2)])

    assert places(answer)["new"] in ("a-new-1", "a-new-2")


def test_a_node_like_one_that_is_cordoned_is_not() -> None:
    assert places(ask(cluster_of(node("a").unschedulable()), pod("new"), add_nodes=[NodesLike(like="a")])) == {
        "new": "a-new-1"
    }


@pytest.mark.parametrize(
    ("additions", "words"),
    [
        ([NodesLike(like="b")], 'node "b" not found'),
        ([NodesLike(like="a", count=1000), NodesLike(like="a")], "more than 1000 nodes cannot be added at a time"),
    ],
)
def test_nodes_that_cannot_be_added(additions: list[NodesLike], words: str) -> None:
    with pytest.raises(QuestionError, match=words):
        ask(cluster_of(node("a")), add_nodes=additions)


def test_answer_about_new_nodes_says_how_many_pending_pods_would_fit() -> None:
    """Without asking: nobody adds nodes for their own sake."""
    waiting = tuple(make_pod(name).uid(name).req(cpu=cpu).obj() for name, cpu in (("one", 4), ("two", 4), ("huge", 9)))
    about = cluster_of(node("a"), pods=(running("full", "a", cpu=4), *waiting))

    answer = ask(about.fork(), add_nodes=[NodesLike(like="a")])
    none = ask(
        about.fork(),
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "tiny"}, "status": {"allocatable": {"cpu": "1"}}},
    )
    with_pending = ask(about.fork(), add_nodes=[NodesLike(like="a", count=2)], include_pending=True)

    assert answer.summary == "1 of 3 pending pods would now fit; include the pending pods to see where."
    assert none.summary == "None of the 3 pending pods would fit then."
    assert sorted(places(with_pending).values()) == ["", "a-new-1", "a-new-2"]
    assert "would now fit" not in with_pending.summary
