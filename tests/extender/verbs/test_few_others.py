"""Where the caller's victims do not suffice, they go with one other pod, or with two, if that is better than what the
general search finds.
"""

import asyncio
import random
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import pytest

from extender.engine.cache.cluster import Cluster
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import Registry
from extender.testing import PodBuilder, make_node, make_pod, make_verbs
from extender.values import limits
from extender.values.config.loading import load
from extender.values.objects.cluster import ClusterState
from extender.values.objects.decoding import convert
from extender.values.objects.grouping import PodDisruptionBudget
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.protocol.wire_types import MetaVictims
from extender.verbs import Verbs
from tests.extender.engine.preemption.test_budgets import budget
from tests.kit import objects
from tests.kit.shared_gpu import EXAMPLE, shared_gpu, with_cards

GPU = "example.com/gpu"


def pod(name: str, cpu: int, gpus: int = 0, *, priority: int = 0, on: str = "n") -> PodBuilder:
    return make_pod(name).uid(name).req({"cpu": cpu, GPU: gpus}).priority(priority).node(on)


def chosen(verbs: Verbs, urgent: Pod, **candidates: Sequence[str]) -> dict[str, list[str]]:
    meta_victims = {node: MetaVictims.of(uids) for node, uids in candidates.items()}
    answer = asyncio.run(verbs.preempt(urgent, meta_victims))
    return {node: sorted(victims.uids) for node, victims in answer.items()}


def on_one_node(pods: Iterable[PodBuilder], cpu: int, gpus: int, budgets: Sequence[PodDisruptionBudget] = ()) -> Verbs:
    node = make_node("n").capacity({"cpu": cpu, GPU: gpus, "pods": 1000}).obj()
    return make_verbs(Cluster.of(ClusterState(nodes=[node], pods=[pod.obj() for pod in pods], pdbs=list(budgets))))


def urgent(cpu: int, gpus: int) -> Pod:
    return make_pod("urgent").uid("urgent").req({"cpu": cpu, GPU: gpus}).priority(10).obj()


# Shared GPUs.


@pytest.mark.parametrize("place", range(8))
def test_a_named_pod_goes_with_the_other_one_on_its_card(place: int) -> None:
    """kube-scheduler has named it for its cpu; the card of another pod would cost a third victim."""
    asks = {"resources": {"requests": {"cpu": "1", shared_gpu.MEMORY: "8192"}, "limits": {shared_gpu.MEMORY: "8192"}}}
    node = convert(Node, with_cards(objects.node("n", "8"), 4))
    pods = []
    for number in range(8):
        manifest: Any = objects.pod(f"low-{number}", container=asks, nodeName="n")
        manifest["metadata"] |= {"uid": f"low-{number}", "annotations": {shared_gpu.CARD: f"{number // 2}=8192/0"}}
        pods.append(convert(Pod, manifest))
    more = {"resources": {"requests": {"cpu": "1", shared_gpu.MEMORY: "10240"}, "limits": {shared_gpu.MEMORY: "10240"}}}
    urgent_pod = convert(Pod, objects.pod("urgent", container=more))
    frameworks = Registry(IN_TREE, (), also={"SharedGpu": shared_gpu.SharedGpu}).make_frameworks(
        load((EXAMPLE / "extender-config.yaml").read_text()), random.Random(1)
    )
    verbs = Verbs(frameworks, Cluster.of(ClusterState(nodes=[node], pods=pods)))
    preemptor = make_pod("urgent").uid("urgent").priority(1000).container(urgent_pod.spec.containers[0]).obj()

    both = [f"low-{place // 2 * 2}", f"low-{place // 2 * 2 + 1}"]
    assert chosen(verbs, preemptor, n=[f"low-{place}"]) == {"n": both}


# What is better.


def test_one_other_is_taken_where_it_suffices() -> None:
    """The general search keeps the most important pods, whose GPU would be enough."""
    pods = [pod("named", 4), pod("large", 0, 2), pod("small", 0, 1), pod("smaller", 0, 1)]

    assert chosen(on_one_node(pods, 4, 4), urgent(4, 2), n=["named"]) == {"n": ["large", "named"]}


def test_two_others_are_taken_where_one_does_not_suffice() -> None:
    pods = [pod("named", 4), *(pod(f"large-{n}", 0, 2) for n in range(2)), *(pod(f"z-{n}", 0, 1) for n in range(4))]

    assert chosen(on_one_node(pods, 4, 8), urgent(4, 4), n=["named"]) == {"n": ["large-0", "large-1", "named"]}


def test_a_named_pod_is_spared_where_the_other_one_is_enough() -> None:
    pods = [pod("named", 2), pod("both", 2, 2), pod("small", 0, 1), pod("smaller", 0, 1)]

    assert chosen(on_one_node(pods, 4, 4), urgent(2, 2), n=["named"]) == {"n": ["both"]}


def test_where_nobody_was_named_one_pod_is_enough_too() -> None:
    pods = [pod("large", 0, 2), pod("small", 0, 1), pod("smaller", 0, 1)]

    assert chosen(on_one_node(pods, 4, 4), urgent(1, 2), n=[]) == {"n": ["large"]}


def test_fewer_victims_are_not_worth_a_more_important_one() -> None:
    """By the criteria that choose between nodes."""
    pods = [pod("named", 4), pod("large", 0, 2, priority=5), pod("small", 0, 1), pod("smaller", 0, 1)]

    assert chosen(on_one_node(pods, 4, 4), urgent(4, 2), n=["named"]) == {"n": ["named", "small", "smaller"]}


def test_fewer_victims_are_not_worth_a_violated_budget() -> None:
    pods = [pod("named", 4), pod("large", 0, 2).label(app="web"), pod("small", 0, 1), pod("smaller", 0, 1)]

    answer = chosen(on_one_node(pods, 4, 4, [budget(0)]), urgent(4, 2), n=["named"])

    assert answer == {"n": ["named", "small", "smaller"]}


def test_nodes_are_judged_apart() -> None:
    nodes = [make_node(name).capacity({"cpu": 4, GPU: 4, "pods": 1000}).obj() for name in ("n", "m", "o")]
    pods = [
        *(pod("large", 0, 2), pod("small", 0, 1), pod("smaller", 0, 1), pod("named", 4)),
        *(pod("enough", 4, 4, on="m"), pod("all", 4, on="o"), pod("whole", 0, 4, on="o")),
    ]
    verbs = make_verbs(Cluster.of(ClusterState(nodes=nodes, pods=[builder.obj() for builder in pods])))

    assert chosen(verbs, urgent(4, 2), o=["all"], m=["enough"], n=["named"]) == {
        "o": ["all", "whole"],
        "m": ["enough"],
        "n": ["large", "named"],
    }


@pytest.mark.parametrize("seed", range(40))
def test_no_set_with_one_or_two_others_is_smaller_than_the_answer(seed: int) -> None:
    """Looked at one by one; all pods are as important as each other."""
    chance = random.Random(seed)
    pods = [pod(f"p-{n}", chance.choice([0, 1, 2]), chance.choice([0, 0, 1, 2, 3])) for n in range(9)]
    amounts = {builder.obj().uid: builder for builder in pods}
    asks = {uid: builder.obj().spec.containers[0].resources.requests for uid, builder in amounts.items()}
    request_of = {uid: (int(requests["cpu"]), int(requests[GPU])) for uid, requests in asks.items()}
    cpu, gpus = (sum(both) for both in zip(*request_of.values(), strict=True))
    needs = chance.randint(1, 3), chance.randint(1, 5)

    def suffice(uids: Iterable[str]) -> bool:
        free = [sum(both) for both in zip((0, 0), *(request_of[uid] for uid in uids), strict=True)]
        return all(room >= need for room, need in zip(free, needs, strict=True))

    first_uids = [uid for uid, (has, _) in request_of.items() if has][: needs[0]]
    answer = chosen(on_one_node(pods, cpu, gpus), urgent(*needs), n=first_uids)

    sets = [{*first_uids, *extra} for number in range(3) for extra in combinations(request_of, number)]
    smallest = min((len(uids) for uids in sets if suffice(uids)), default=99)
    if answer:
        assert suffice(answer["n"])
        assert len(answer["n"]) <= smallest
    else:
        assert not suffice(request_of)


# How much is looked at.


def test_a_node_of_many_pods_is_bounded() -> None:
    """Sets of the least important pods are tried first; beyond the bound the general search decides."""
    pods = [pod("named", 4), pod("large", 0, 2), *(pod(f"z-{n:03}", 0, 1) for n in range(400))]
    verbs = on_one_node(pods, 4, 402)

    answer = chosen(verbs, urgent(4, 3), n=["named"])["n"]

    assert len(pods) ** 2 > limits.VICTIMS_TRIED
    assert answer == ["named", "z-397", "z-398", "z-399"]
