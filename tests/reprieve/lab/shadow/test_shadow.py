"""A shadow decides every pod beside the scheduler of the cluster, and finds and names every difference."""

import asyncio
import random
from typing import Any

import pytest

from extender.rules.api_resources import NODES as NODE_RESOURCE, PODS, Object
from reprieve.cluster.registry.object_registry import ObjectRegistry
from reprieve.lab.agreement import Agreement
from tests.kit.objects import priority_class
from tests.reprieve.lab.recordings.recorded_cluster import NODES, create, zoned
from tests.reprieve.lab.shadow.shadowed_cluster import Tell, profile, shadowed, without

URGENT: Object = priority_class("urgent", 1000)
HOUR = 3600.0


def a_day(seed: int, hours: int = 24) -> Tell:
    """A day of churn: rollouts of many pods at once, single pods, pods that are deleted, nodes that come and go, and
    preemption.
    """

    async def tell(cluster: ObjectRegistry) -> None:
        chance, number = random.Random(seed), 0
        living: list[str] = []
        for hour in range(hours):
            for _ in range(chance.randint(1, 6)):
                for _ in range(chance.choice([1, 1, 1, 8])):
                    number += 1
                    create(cluster, f"p{number}", chance.choice(["250m", "500m", "1", "2"]), **_kind_of_pod(chance))
                    living.append(f"p{number}")
                await asyncio.sleep(chance.choice([0.01, 0.3, 20, 600]))
                while len(living) > 35:
                    leaving = living.pop(chance.randrange(len(living)))
                    if any(pod["metadata"]["name"] == leaving for pod in cluster.list(PODS, "default")):
                        cluster.delete(PODS, "default", leaving)
            if hour % 6 == 3:
                cluster.create(NODE_RESOURCE, "", zoned(f"extra-{hour}", "c"))
            if hour % 6 == 5:
                cluster.delete(NODE_RESOURCE, "", f"extra-{hour - 2}")
            await asyncio.sleep(HOUR / 6)

    return tell


def _kind_of_pod(chance: random.Random) -> dict[str, Any]:
    app = f"app-{chance.randint(1, 3)}"
    selector = {"matchLabels": {"app": app}}
    zone = "topology.kubernetes.io/zone"
    spread = {"maxSkew": 1, "topologyKey": zone, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    apart = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
        ]
    }
    options: dict[str, Any] = chance.choice(
        [
            {},
            {},
            {"topologySpreadConstraints": [spread]},
            {"affinity": {"podAntiAffinity": apart}},
            {"priorityClassName": "urgent"},
        ]
    )
    return {"labels": {"app": app}, **options}


def sees(agreement: Agreement) -> set[tuple[str, str, str]]:
    """The clear differences: pods with what would have been done about them, and because of which plugin."""
    return {(item.pod.name, item.kind, item.plugin) for item in agreement.differences if item.is_clear}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_over_a_day_of_churn_equal_profiles_agree(seed: int) -> None:
    """
    What is not clear agrees once events within a second are taken in another order; those events come at once here.
    """
    agreement = shadowed(a_day(seed), *NODES, URGENT, seed=seed)

    assert sees(agreement) == set()
    assert (agreement.total.agreement, agreement.total.different, agreement.not_decided) == (1.0, 0, 0)
    assert agreement.total.decisions > 100 and agreement.total.ties > 0 and agreement.evicted > 0
    assert agreement.total.unclear < agreement.total.decisions / 10


def labelled(name: str, cpu: str = "4", **labels: str) -> Object:
    labelled_node = zoned(name, labels.pop("zone", "a"), cpu)
    labelled_node["metadata"]["labels"] |= labels
    return labelled_node


def tainted(name: str) -> Object:
    tainted_node = zoned(name, "a", "8")
    tainted_node["spec"] = {"taints": [{"key": "team", "value": "red", "effect": "NoSchedule"}]}
    return tainted_node


def pods(*names: str, **spec: Any) -> Tell:
    """Of one shape, one after the other."""
    return lambda cluster: one_after_the_other(cluster, *names, **spec)


async def one_after_the_other(cluster: ObjectRegistry, *names: str, cpu: str = "1", **spec: Any) -> None:
    for name in names:
        create(cluster, name, cpu, **spec)
        await asyncio.sleep(10)


PACKING = profile(
    "{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, "
    "weight: 1}]}}}]}"
)
PROTECTING = profile(
    "{pluginConfig: [{name: DefaultPreemption, args: {protect: {selector: {matchLabels: {app: keep}}}}}]}"
)
ZONES = {"topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]
    }
}


def test_a_taint_that_the_scheduler_does_not_look_at() -> None:
    agreement = shadowed(pods("a"), tainted("red"), zoned("free", "a", "4"), theirs=without("TaintToleration"))

    assert sees(agreement) == {("a", "elsewhere", "TaintToleration")}
    (difference,) = agreement.differences
    assert difference.theirs.node == "red" and difference.ours.node == "free"
    assert difference.reason == "TaintToleration refuses red: node(s) had untolerated taint(s)"
    (plugin,) = (plugin for plugin in agreement.by_plugin if plugin.name == "TaintToleration")
    assert (plugin.decisions, plugin.different, plugin.agreement) == (1, 1, 0.0)


def test_a_pod_that_the_scheduler_places_and_the_shadow_could_not() -> None:
    agreement = shadowed(pods("a"), tainted("red"), theirs=without("TaintToleration"))

    assert sees(agreement) == {("a", "kept-waiting", "TaintToleration")}


def test_a_room_that_the_scheduler_does_not_use() -> None:
    """The reason is the scheduler's, since only its own plugin knows it."""
    agreement = shadowed(pods("a"), tainted("red"), ours=without("TaintToleration"))

    assert sees(agreement) == {("a", "room", "")}
    (difference,) = agreement.differences
    assert difference.ours.node == "red" and difference.reason == "the scheduler says: node(s) had untolerated taint(s)"
    assert [(share.name, share.different) for share in agreement.by_reason] == [("node(s) had untolerated taint(s)", 1)]


def test_different_scores_are_named_as_the_difference() -> None:
    agreement = shadowed(pods("a", "b", "c"), zoned("n1", "a"), zoned("n2", "a"), theirs=PACKING)

    assert sees(agreement) == {("b", "elsewhere", "NodeResourcesFit"), ("c", "elsewhere", "NodeResourcesFit")}
    assert agreement.total.different == 2 and agreement.total.same + agreement.total.ties == 1
    difference = agreement.differences[-1]
    ours, other = difference.ours.node, difference.theirs.node
    assert difference.reason == f"NodeResourcesFit gives {ours} 25 more than {other}; with all plugins it is 25 more"


def test_spread_that_the_scheduler_does_not_keep() -> None:
    spread = {**ZONES, "labelSelector": {"matchLabels": {"app": "web"}}}
    tell = pods("a", "b", topologySpreadConstraints=[spread])

    agreement = shadowed(tell, zoned("n1", "a", "16"), zoned("n2", "b", "2"), theirs=without("PodTopologySpread"))

    assert sees(agreement) == {("b", "elsewhere", "PodTopologySpread")}
    assert [(share.name, share.decisions, share.different) for share in agreement.by_shape] == [("spread", 2, 1)]


def test_affinity_that_the_scheduler_does_not_keep() -> None:
    agreement = shadowed(
        pods("a", "b", affinity=APART),
        zoned("n1", "a", "16"),
        zoned("n2", "b", "2"),
        theirs=without("InterPodAffinity"),
    )

    assert sees(agreement) == {("b", "elsewhere", "InterPodAffinity")}


async def a_full_node_and_an_urgent_pod(cluster: ObjectRegistry) -> None:
    await one_after_the_other(cluster, "small", cpu="1")
    await one_after_the_other(cluster, "large", cpu="3")
    await one_after_the_other(cluster, "urgent", cpu="1", priorityClassName="urgent")
    await asyncio.sleep(120)


def test_a_preemption_that_both_make() -> None:
    agreement = shadowed(a_full_node_and_an_urgent_pod, zoned("n1", "a"), URGENT)

    assert (agreement.differences, agreement.evicted, agreement.spared, agreement.total.agreement) == ((), 1, 0, 1.0)


def test_a_preemption_that_the_scheduler_does_not_make() -> None:
    agreement = shadowed(a_full_node_and_an_urgent_pod, zoned("n1", "a"), URGENT, theirs=without("DefaultPreemption"))

    assert sees(agreement) == {("urgent", "would-evict", "DefaultPreemption")}
    (difference,) = agreement.differences
    assert [victim.name for victim in difference.victims] == ["large"]


def test_a_preemption_that_the_shadow_would_not_make_spares_its_victims() -> None:
    agreement = shadowed(a_full_node_and_an_urgent_pod, zoned("n1", "a"), URGENT, ours=without("DefaultPreemption"))

    assert sees(agreement) == {("urgent", "would-not-evict", ""), ("large", "spared", "")}
    assert (agreement.evicted, agreement.spared) == (1, 1)
    spared = next(difference for difference in agreement.differences if difference.kind == "spared")
    assert spared.preemptor is not None and spared.preemptor.name == "urgent"


def test_different_victims_on_the_same_node_are_reported() -> None:
    """The scheduler protects a pod, and takes the other one."""

    async def tell(cluster: ObjectRegistry) -> None:
        await one_after_the_other(cluster, "small", cpu="1")
        await one_after_the_other(cluster, "large", cpu="3", labels={"app": "keep"})
        await one_after_the_other(cluster, "urgent", cpu="1", priorityClassName="urgent")
        await asyncio.sleep(120)

    agreement = shadowed(tell, zoned("n1", "a"), URGENT, theirs=PROTECTING)

    assert ("small", "spared", "") in sees(agreement)
    assert (agreement.evicted, agreement.spared) == (1, 1)


def hold(cluster: ObjectRegistry, name: str) -> None:
    """The pod stays when it is deleted."""
    pod = cluster.get(PODS, "default", name)
    pod["metadata"]["finalizers"] = ["example.com/slow"]
    cluster.update(PODS, "default", name, pod)


def test_a_nomination_that_stays_while_its_victim_leaves_is_no_difference() -> None:
    """A pod that goes gives the preemptor another attempt, in which its nomination is left as it is."""

    async def tell(cluster: ObjectRegistry) -> None:
        await one_after_the_other(cluster, "small", cpu="1")
        await one_after_the_other(cluster, "large", cpu="3")
        hold(cluster, "large")
        await one_after_the_other(cluster, "urgent", cpu="2", priorityClassName="urgent")
        cluster.delete(PODS, "default", "small", {"gracePeriodSeconds": 0})
        await asyncio.sleep(10)
        conditions = cluster.get(PODS, "default", "urgent")["status"]["conditions"]
        messages.extend(condition["message"] for condition in conditions if condition["type"] == "PodScheduled")
        await asyncio.sleep(120)

    messages: list[str] = []
    agreement = shadowed(tell, zoned("n1", "a"), URGENT)

    assert "not eligible due to a terminating pod on the nominated node" in messages[0]
    assert (agreement.differences, agreement.total.agreement) == ((), 1.0)


def test_what_becomes_of_a_pod_that_is_leaving_is_no_decision() -> None:
    """One with a finalizer is refused, is deleted, and gets a node all the same from somebody who has not heard of it."""

    async def tell(cluster: ObjectRegistry) -> None:
        create(cluster, "leaving", "9")
        await asyncio.sleep(10)
        hold(cluster, "leaving")
        cluster.delete(PODS, "default", "leaving", {})
        await asyncio.sleep(10)
        pod = cluster.get(PODS, "default", "leaving")
        (refusal,) = [item for item in pod["status"]["conditions"] if item["type"] == "PodScheduled"]
        refusal["message"] = "0/1 nodes are available: 1 Too many pods."
        cluster.update(PODS, "default", "leaving", pod, subresource="status")
        await asyncio.sleep(10)

    agreement = shadowed(tell, zoned("n1", "a"))

    assert (agreement.total.decisions, agreement.differences) == (1, ())


def test_preemption_on_another_node() -> None:
    async def tell(cluster: ObjectRegistry) -> None:
        await one_after_the_other(
            cluster, "one", cpu="4", labels={"app": "keep"}, nodeSelector={"kubernetes.io/hostname": "n1"}
        )
        await one_after_the_other(cluster, "two", "three", cpu="2", nodeSelector={"kubernetes.io/hostname": "n2"})
        await one_after_the_other(cluster, "urgent", cpu="4", priorityClassName="urgent")
        await asyncio.sleep(120)

    agreement = shadowed(tell, zoned("n1", "a"), zoned("n2", "a"), URGENT, theirs=PROTECTING)

    assert {("urgent", "freed-elsewhere", "DefaultPreemption"), ("two", "spared", ""), ("three", "spared", "")} <= sees(
        agreement
    )


def test_pods_of_other_schedulers_are_left_alone_and_counted() -> None:
    agreement = shadowed(pods("a", schedulerName="theirs"), zoned("n1", "a"), theirs=profile("{schedulerName: theirs}"))

    assert (agreement.total.decisions, agreement.not_decided) == (0, 1)
    assert agreement.total.agreement is None
    assert agreement.notes == ("not compared: 1 x pods of other schedulers",)


def test_one_difference_does_not_make_the_next_one() -> None:
    """The shadow goes on with what was decided, and not with what it would have decided."""

    async def tell(cluster: ObjectRegistry) -> None:
        await one_after_the_other(cluster, "a", "b")
        await one_after_the_other(cluster, "c", nodeSelector={"kubernetes.io/hostname": "n1"})

    agreement = shadowed(tell, zoned("n1", "a"), zoned("n2", "a"), theirs=PACKING)

    assert [difference.pod.name for difference in agreement.differences] == ["b"]
    assert (agreement.total.decisions, agreement.total.different) == (3, 1)
