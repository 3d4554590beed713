"""Random situations in the form of the recorded ones: a pod, and a cluster with volumes, devices, taints and budgets."""

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from extender.testing import NodeBuilder, PodBuilder, label_term, make_pod, random_cluster
from extender.values.objects import grouping
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.kinds import KINDS
from extender.values.objects.meta import HasMetadata, LabelSelector
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL, Node
from extender.values.objects.pod import Pod, PodResourceClaim, TopologySpreadConstraint
from tests.kit.devices import (
    DRIVER,
    allocation_of,
    exactly,
    make_claim,
    make_device,
    make_device_class,
    make_slice,
    selecting,
)
from tests.kit.random_storage import random_cluster_with_volumes

_APPS = ("web", "db")
_TAINTS = ("node.kubernetes.io/disk-pressure", "node.cilium.io/agent-not-ready", "ToBeDeletedByClusterAutoscaler")


def random_scene(chance: random.Random) -> dict[str, Any]:
    """Returns a pod that asks for much, and a cluster that has little left; not every pod of them is refused."""
    cluster = random_cluster_with_volumes(chance) if chance.random() < 0.6 else random_cluster(chance)
    is_roomy = chance.random() < 0.85
    objects: list[HasMetadata] = [
        *(_node(node, chance, is_roomy=is_roomy) for node in cluster.nodes),
        *(_started(pod, chance) for pod in cluster.pods),
        _demanding(cluster.pod, chance),
        *cluster.objects,
        *(_budget(app, chance) for app in _APPS if chance.random() < 0.4),
        convert(grouping.Namespace, {"metadata": {"name": "default", "labels": {"team": "a"}}}),
    ]
    if chance.random() < 0.4:
        objects = _with_devices(objects, chance)
    scene: defaultdict[str, list[Any]] = defaultdict(list)
    for one in objects:
        document = msgspec.to_builtins(one)
        if isinstance(one, Pod) and not one.spec.node_name:
            pending = document
        else:
            scene[_LISTS[type(one)]].append(document)
    return {"pod": pending, "objects": {"nodes": [], "resourceClaims": [], "pvcs": [], **scene}}


def _with_devices(objects: Sequence[HasMetadata], chance: random.Random) -> list[HasMetadata]:
    """The objects with devices of nodes, and two claims that the pending pod names; one may be allocated."""
    nodes = [one for one in objects if isinstance(one, Node)]
    broken = {"taints": [{"key": "broken", "effect": "NoSchedule"}]}
    slices = [
        make_slice(
            *(
                make_device(f"d{number}", {"model": chance.choice("ab")}, **(broken if chance.random() < 0.3 else {}))
                for number in range(chance.randint(1, 3))
            ),
            name=node.name,
            pool=node.name,
            of=1 if chance.random() < 0.9 else 2,
            nodeName=node.name,
        )
        for node in nodes
        if chance.random() < 0.7
    ]
    selects = selecting(f'device.attributes["{DRIVER}"].model == "a"') if chance.random() < 0.4 else {}
    allocation = allocation_of({"device": "d0", "pool": nodes[0].name})
    users = [one for one in objects if isinstance(one, Pod) and one.spec.node_name == nodes[0].name][:1]
    claims = [
        make_claim("wanted", exactly(chance.randint(1, 3), **selects)),
        make_claim("also", exactly(1)),
        make_claim(
            "held",
            exactly(1),
            allocation=allocation,
            reservedFor=[{"resource": "pods", "name": user.name, "uid": user.uid} for user in users],
        ),
    ]
    names = ["wanted", *(["also"] if chance.random() < 0.3 else [])]
    references = [PodResourceClaim(name=name, resource_claim_name=name) for name in names]
    claiming_objects = [
        replaced(one, spec=replaced(one.spec, resource_claims=references))
        if isinstance(one, Pod) and not one.spec.node_name
        else one
        for one in objects
    ]
    return [*claiming_objects, make_device_class("any"), *slices, *claims]


_LISTS = {kind.type: kind.list_name for kind in KINDS}


def _node(node: Node, chance: random.Random, *, is_roomy: bool) -> Node:
    """The node; a roomy one has no taints, most labels, and more than its pods ask for, so that few things refuse."""
    draft = NodeBuilder(node)
    if is_roomy:
        labels = {HOSTNAME_LABEL: node.name, ZONE_LABEL: chance.choice(("z1", "z2")), **node.labels}
        bare = replaced(node, spec=replaced(node.spec, taints=[], unschedulable=chance.random() < 0.04))
        draft = NodeBuilder(bare).label(labels).capacity({"cpu": 4, "pods": 20, "example.com/gpu": 2})
    if chance.random() < 0.06:
        draft = draft.taint(chance.choice(_TAINTS), "", "NoSchedule")
    return draft.obj()


def _started(pod: Pod, chance: random.Random) -> Pod:
    draft = PodBuilder(pod).start_time(f"2026-01-0{chance.randint(1, 9)}T00:00:00Z")
    steps: Sequence[Callable[[PodBuilder], PodBuilder]] = (
        lambda draft: draft.req(cpu=chance.choice((1, 2))),
        lambda draft: draft.pod_anti_affinity(chance.choice((HOSTNAME_LABEL, ZONE_LABEL)), app=chance.choice(_APPS)),
    )
    return _varied(draft, steps, 0.3, chance).obj()


def _demanding(pod: Pod, chance: random.Random) -> Pod:
    """The pending pod with some demands more, or with no others; mostly of a priority above that of others."""
    is_plain = chance.random() < 0.6
    if is_plain:
        volumes = pod.spec.volumes if chance.random() < 0.3 else []
        plain = make_pod(pod.name).req(cpu="500m").obj()
        pod = replaced(plain, spec=replaced(plain.spec, volumes=volumes))
    draft = PodBuilder(pod).label(app=chance.choice(_APPS)).priority(chance.choice((-1, 0, 1, 4)))
    steps: Sequence[Callable[[PodBuilder], PodBuilder]] = (
        lambda draft: draft.req(cpu=chance.choice((3, 4, 8))),
        lambda draft: draft.req({"example.com/gpu": chance.choice((1, 3))}),
        lambda draft: draft.node_selector(disk=chance.choice(("ssd", "hdd", "nvme"))),
        lambda draft: draft.node_affinity(
            label_term("rank", chance.choice(("Gt", "Lt")), "3"), label_term(ZONE_LABEL, "In", chance.choice("ab"))
        ),
        lambda draft: draft.pod_affinity(ZONE_LABEL, app=chance.choice(_APPS)),
        lambda draft: draft.pod_anti_affinity(chance.choice((HOSTNAME_LABEL, ZONE_LABEL)), app=chance.choice(_APPS)),
        lambda draft: draft.pod_affinity(ZONE_LABEL, app="web").pod_affinity(HOSTNAME_LABEL, app="db"),
        lambda draft: draft.pod_anti_affinity(HOSTNAME_LABEL, app="web").pod_anti_affinity(ZONE_LABEL, app="db"),
        lambda draft: draft.spread(1, chance.choice((HOSTNAME_LABEL, ZONE_LABEL)), app=chance.choice(_APPS)),
        lambda draft: _spread(draft, chance),
        lambda draft: _spread(draft, chance),
        lambda draft: _spread(draft, chance),
        lambda draft: draft.host_port(80),
        lambda draft: draft.preemption_policy("Never"),
        lambda draft: draft.gate("example.com/wait"),
    )
    return _varied(draft, chance.sample(steps, 1) if is_plain else steps, 0.8 if is_plain else 0.15, chance).obj()


def _spread(draft: PodBuilder, chance: random.Random) -> PodBuilder:
    """The pod spread over pods of its own app."""
    pod = draft.obj()
    constraint = TopologySpreadConstraint(
        max_skew=1,
        topology_key=chance.choice((HOSTNAME_LABEL, ZONE_LABEL, "rank")),
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": pod.labels["app"]}),
        min_domains=chance.choice((None, None, 3, 9)),
    )
    constraints = pod.spec.topology_spread_constraints
    return PodBuilder(replaced(pod, spec=replaced(pod.spec, topology_spread_constraints=[*constraints, constraint])))


def _varied(
    draft: PodBuilder, steps: Sequence[Callable[[PodBuilder], PodBuilder]], share: float, chance: random.Random
) -> PodBuilder:
    for step in steps:
        if chance.random() < share:
            draft = step(draft)
    return draft


def _budget(app: str, chance: random.Random) -> grouping.PodDisruptionBudget:
    return convert(
        grouping.PodDisruptionBudget,
        {
            "metadata": {"name": app, "namespace": make_pod().obj().namespace},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": chance.randint(0, 1)},
        },
    )
