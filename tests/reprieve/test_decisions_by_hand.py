"""What a trial decides is right by rules that are written down here once more, and share nothing with the scheduler.

Of the rules that pods of `drawn` have: requests, unschedulable nodes, taints, node selectors, spreading, and
anti-affinity of both sides. Budgets are there, and forbid nothing that must go.
"""

import random
from collections.abc import Container, Mapping
from typing import Any, Final

import pytest
from hypothesis import given, settings, strategies as st

from reprieve import Cluster, Trial
from tests.extender.answers.test_trial import NO_SHRINKING
from tests.kit.examples import examples
from tests.kit.objects import owner
from tests.reprieve.test_random_clusters import EACH_TIME

HOST, ZONE, CARD = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "example.com/card"
APPS: Final = ("web", "db", "queue")
Object = dict[str, Any]
Pods = Mapping[str, Object]
"""namespace/name -> pod."""
Where = Mapping[str, str]
"""namespace/name -> node; empty for pending pods."""


def drawn(chance: random.Random) -> list[Object]:
    nodes = [a_node(f"n{number}", chance) for number in range(chance.randint(2, 10))]
    running: list[Object] = []
    for number in range(chance.randint(0, 4 * len(nodes))):
        node = chance.choice(nodes)
        pod = a_pod(f"r{number}", chance, node=node["metadata"]["name"])
        on_node = [other for other in running if other["spec"]["nodeName"] == node["metadata"]["name"]]
        if not lacks(node, [*on_node, pod]):
            running.append(pod)
    waiting = [with_wishes(a_pod(f"w{number}", chance), chance) for number in range(chance.randint(1, 3 * len(nodes)))]
    budget = {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": chance.choice(APPS)}}},
        "status": {"disruptionsAllowed": chance.randint(0, 2)},
    }
    return [*nodes, *running, *waiting, budget]


def a_node(name: str, chance: random.Random) -> Object:
    labels = {HOST: name, ZONE: chance.choice("xyz")} | (
        {"disk": chance.choice(("ssd", "hdd"))} if by_chance(chance) else {}
    )
    taint = {
        "key": "team",
        "value": chance.choice(("red", "green")),
        "effect": chance.choice(("NoSchedule", "NoExecute", "PreferNoSchedule")),
    }
    spec: Object = {"taints": [taint]} if chance.random() < 0.25 else {}
    if chance.random() < 0.1:
        spec["unschedulable"] = True
    room = {"cpu": chance.choice((2, 4, 8)), "pods": chance.choice((3, 8, 110)), CARD: chance.choice((0, 2))}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": room}}


def a_pod(name: str, chance: random.Random, node: str = "") -> Object:
    metadata: Object = {"name": name, "namespace": "default", "uid": name, "labels": {"app": chance.choice(APPS)}}
    requests = {"cpu": chance.choice((1, 1, 2, 4))} | ({CARD: 1} if chance.random() < 0.15 else {})
    container = {"name": "c", "image": "i", "resources": {"requests": requests, "limits": requests}}
    spec: Object = {"containers": [container], "priority": chance.choice((0, 0, 1, 5, 20))}
    spec |= {"nodeName": node} if node else {}
    metadata |= {"ownerReferences": [owner()]} if by_chance(chance) else {}
    return {"kind": "Pod", "metadata": metadata, "spec": spec}


def with_wishes(pod: Object, chance: random.Random) -> Object:
    def of_app() -> Object:
        return {"matchLabels": {"app": chance.choice(APPS)}}

    spec = pod["spec"]
    if chance.random() < 0.25:
        spec["nodeSelector"] = {"disk": "ssd"}
    if chance.random() < 0.3:
        spec["tolerations"] = [chance.choice(({"key": "team", "operator": "Exists"}, {"key": "team", "value": "red"}))]
    if chance.random() < 0.25:
        skew, key = chance.randint(1, 2), chance.choice((HOST, ZONE))
        spread = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": of_app()}
        spec["topologySpreadConstraints"] = [spread]
    if chance.random() < 0.2:
        term = {"labelSelector": of_app(), "topologyKey": chance.choice((HOST, ZONE))}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return pod


def by_chance(chance: random.Random) -> bool:
    return chance.random() < 0.7


# The rules.


def lacks(node: Object, pods: list[Object]) -> str:
    """The resource of which the node has too little for these pods."""
    for name, room in node["status"]["allocatable"].items():
        used = len(pods) if name == "pods" else sum(requested(pod).get(name, 0) for pod in pods)
        if used > room:
            return str(name)
    return ""


def requested(pod: Object) -> Mapping[str, int]:
    requests: Mapping[str, int] = pod["spec"]["containers"][0]["resources"]["requests"]
    return requests


def tolerates(pod: Object, taint: Object) -> bool:
    return taint["effect"] == "PreferNoSchedule" or any(
        toleration.get("operator") == "Exists" or toleration.get("value") == taint["value"]
        for toleration in pod["spec"].get("tolerations", ())
    )


def terms_of(pod: Object) -> list[tuple[str, str]]:
    """(topology key, app) of the pods that it keeps away from."""
    affinity = pod["spec"].get("affinity", {}).get("podAntiAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", ())
    return [(term["topologyKey"], term["labelSelector"]["matchLabels"]["app"]) for term in terms]


def why_not(
    nodes: Mapping[str, Object], pods: Pods, where: Where, key: str, name: str, evicted: Container[str] = ()
) -> str:
    """Why the pod may not go to the node while the others are there, and these are gone; empty if it may."""
    pod, node = pods[key], nodes[name]
    placed = {other_key: on for other_key, on in where.items() if on and other_key != key and other_key not in evicted}
    if lack := lacks(node, [pod, *(pods[other_key] for other_key, on in placed.items() if on == name)]):
        return lack
    if node["spec"].get("unschedulable"):
        return "unschedulable"
    if not all(tolerates(pod, taint) for taint in node["spec"].get("taints", ())):
        return "taint"
    selector, labels = pod["spec"].get("nodeSelector", {}), node["metadata"]["labels"]
    if any(labels.get(label) != value for label, value in selector.items()):
        return "selector"
    mine = pod["metadata"]["labels"]["app"]
    for other, on in placed.items():
        its, their_labels = pods[other]["metadata"]["labels"]["app"], nodes[on]["metadata"]["labels"]
        away = [label for label, app in terms_of(pod) if app == its]
        away += [label for label, app in terms_of(pods[other]) if app == mine]
        if any(their_labels[label] == labels[label] for label in away):
            return "anti-affinity"
    for constraint in pod["spec"].get("topologySpreadConstraints", ()):
        label, app = constraint["topologyKey"], constraint["labelSelector"]["matchLabels"]["app"]
        eligible = {
            node_name
            for node_name, candidate in nodes.items()
            if all(candidate["metadata"]["labels"].get(label) == value for label, value in selector.items())
        }
        counts = dict.fromkeys((nodes[node_name]["metadata"]["labels"][label] for node_name in eligible), 0)
        for other, on in placed.items():
            if on in eligible and pods[other]["metadata"]["labels"]["app"] == app:
                counts[nodes[on]["metadata"]["labels"][label]] += 1
        if counts[labels[label]] + (mine == app) - min(counts.values()) > constraint["maxSkew"]:
            return "spread"
    return ""


# The decisions.


def check(seed: int) -> None:
    objects = drawn(random.Random(seed))
    nodes = {obj["metadata"]["name"]: obj for obj in objects if obj["kind"] == "Node"}
    pods = {f"default/{obj['metadata']['name']}": obj for obj in objects if obj["kind"] == "Pod"}
    where = {key: pod["spec"].get("nodeName", "") for key, pod in pods.items()}
    with Cluster.load(objects).trial() as trial:
        placed = trial.schedule()
        priorities = [pods[placement.pod]["spec"]["priority"] for placement in placed]
        assert priorities == sorted(priorities, reverse=True)
        for placement in placed:
            may = {name for name in nodes if not why_not(nodes, pods, where, placement.pod, name)}
            assert (placement.node in may) if placement.node else (not may and placement.message)
            where[placement.pod] = placement.node
        assert trial.pods == where
        sums = trial.nodes()
        for row, name in enumerate(sums.names):
            node_pods = [pods[key] for key, on in where.items() if on == name]
            assert (sums.requested[row, 0], sums.pods[row]) == (
                1000 * sum(requested(pod)["cpu"] for pod in node_pods),
                len(node_pods),
            )
        for key in [key for key, on in where.items() if not on][:10]:
            arrays = trial.nodes(key)
            for row, name in enumerate(arrays.names):
                fits = not why_not(nodes, pods, where, key, name)
                assert (bool(arrays.feasible[row]), not arrays.reasons[row]) == (fits, fits)
            preempts(trial, nodes, pods, where, key)


def preempts(trial: Trial, nodes: Mapping[str, Object], pods: Pods, where: Where, key: str) -> None:
    """Its victims suffice, are of lower priority, and none of them is too many; where there are none, none would help."""
    answer, priority = trial.preempt(key), pods[key]["spec"]["priority"]
    if fits := {name for name in nodes if not why_not(nodes, pods, where, key, name)}:
        assert answer.node in fits  # since others came after it
        assert not answer.victims
        return
    lower = {other for other, on in where.items() if on and pods[other]["spec"]["priority"] < priority}
    if not answer.node:
        for name in nodes:
            evicted = {other for other in lower if where[other] == name}
            assert not evicted or why_not(nodes, pods, where, key, name, evicted)
        return
    victims = {victim.pod.key for victim in answer.victims}
    assert victims
    assert victims <= {other for other in lower if where[other] == answer.node}
    assert not why_not(nodes, pods, where, key, answer.node, victims)
    assert all(why_not(nodes, pods, where, key, answer.node, victims - {victim}) for victim in victims)
    trial.evict(victims)
    assert trial.schedule(key)[0].node
    trial.undo(2)
    assert trial.pods == where


@pytest.mark.parametrize("seed", EACH_TIME)
def test_decisions_of_a_trial_are_right(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(500), phases=NO_SHRINKING)
@given(st.integers(0, 2**32))
def test_decisions_of_further_trials_are_right(seed: int) -> None:
    check(seed)
