"""A change after which InterPodAffinity admits a pod to a node that it refused before is worth another attempt."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from extender.engine.framework import ActionType, ClusterEvent, EventResource
from extender.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from extender.testing import PodBuilder, make_node, make_snapshot, refusals
from extender.values.objects.decoding import convert
from extender.values.objects.grouping import Namespace
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from tests.extender.engine.plugins.hint_calls import is_worth_a_try

NAMES, NODES = ("red", "blue", "none"), [make_node(name).label(host=name, zone=name[0]) for name in ("a1", "a2", "b1")]
POD, NAMESPACE = EventResource.ASSIGNED_POD, EventResource.NAMESPACE


def a_selector(chance: Random, key: str, values: Sequence[str]) -> dict[str, Any]:
    operator = chance.choice(("In", "NotIn", "Exists", "DoesNotExist"))
    chosen = chance.sample(values, chance.randint(1, 2)) if operator in ("In", "NotIn") else []
    return chance.choice([{"matchExpressions": [{"key": key, "operator": operator, "values": chosen}]}] * 4 + [{}])


def a_term(chance: Random) -> dict[str, Any]:
    scope: dict[str, Any] = {}
    if chance.random() < 0.7:
        scope["namespaceSelector"] = a_selector(chance, "team", ("x", "y"))
    if chance.random() < 0.3:
        scope["namespaces"] = [chance.choice(NAMES)]
    selector = a_selector(chance, "app", ("web", "db"))
    return {"labelSelector": selector, "topologyKey": chance.choice(("host", "zone")), **scope}


def labels(chance: Random, key: str, values: Sequence[str]) -> dict[str, str]:
    return {key: chance.choice(values)} if chance.random() < 0.7 else {}


def a_namespace(name: str, chance: Random) -> Namespace:
    return convert(Namespace, {"metadata": {"name": name, "labels": labels(chance, "team", ("x", "y"))}})


def a_pod(name: str, chance: Random, node: str = "", terms: int = 0) -> Pod:
    affinity: dict[str, Any] = {}
    for _ in range(terms):
        stanza = affinity.setdefault(chance.choice(("podAffinity", "podAntiAffinity")), {})
        stanza.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(a_term(chance))
    metadata = {
        "name": name,
        "uid": name,
        "namespace": chance.choice(NAMES),
        "labels": labels(chance, "app", ("web", "db")),
    }
    return convert(Pod, {"metadata": metadata, "spec": {"nodeName": node, "affinity": affinity}})


def a_change(chance: Random, pods: list[Pod], namespaces: list[Namespace]) -> tuple[ClusterEvent, Any, Any]:
    """What happens, the object before and after. The lists are changed."""
    place = chance.randrange(len(pods))
    old = pods[place]
    match chance.choice(("comes", "goes", "changes", "namespace")):
        case "comes":
            pods.append(new := a_pod("new", chance, chance.choice(NODES).obj().name))
            return ClusterEvent(POD, ActionType.ADD), None, new
        case "goes":
            del pods[place]
            return ClusterEvent(POD, ActionType.DELETE), old, None
        case "changes":
            metadata = {"name": old.name, "uid": old.uid, "namespace": old.namespace}
            pods[place] = convert(
                Pod, {"metadata": {**metadata, "labels": labels(chance, "app", ("web", "db"))}, "spec": old.spec}
            )
            return ClusterEvent(POD, ActionType.UPDATE_POD_LABEL), old, pods[place]
        case _:
            place = chance.randrange(len(namespaces))
            was, namespaces[place] = namespaces[place], a_namespace(namespaces[place].name, chance)
            return ClusterEvent(NAMESPACE, ActionType.UPDATE), was, namespaces[place]


@pytest.mark.parametrize("seed", range(8))
def test_change_that_admits_the_pod_to_a_node_is_worth_a_try(seed: int) -> None:
    chance, helped = Random(seed), 0
    for _ in range(150):
        namespaces = [a_namespace(name, chance) for name in NAMES]
        pods = [
            a_pod(f"p{place}", chance, chance.choice(NODES).obj().name, chance.choice((0, 0, 1, 2)))
            for place in range(chance.randint(1, 4))
        ]
        waiting = a_pod("waiting", chance, terms=chance.choice((0, 1, 2)))
        before = refused(waiting, pods, namespaces)
        event, old, new = a_change(chance, pods, namespaces)

        if before - refused(waiting, pods, namespaces):
            helped += 1
            assert is_worth_a_try(InterPodAffinity, PodBuilder(waiting), event, old, new, objects=namespaces), (
                f"{waiting} {old} {new}"
            )
    assert helped


def refused(pod: Pod, pods: Sequence[Pod], namespaces: Sequence[HasMetadata]) -> set[str]:
    return set(refusals(InterPodAffinity(), make_snapshot(*NODES, pods=pods, objects=namespaces), pod))
