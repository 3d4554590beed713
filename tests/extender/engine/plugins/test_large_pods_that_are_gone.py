"""Little of what was worked out for large pods outlives them, for each kind of text that tenants write."""

import gc
from collections import Counter
from collections.abc import Callable

import pytest

from extender.engine.framework import FilterPlugin, ScorePlugin
from extender.engine.plugins.inter_pod_affinity.plugin import InterPodAffinity
from extender.engine.plugins.node_affinity import NodeAffinity
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.plugins.pod_topology_spread.plugin import PodTopologySpread
from extender.engine.plugins.taints import TaintToleration
from extender.engine.plugins.volume_restrictions import VolumeRestrictions
from extender.testing import PodBuilder, filter_nodes, label_term, make_node, make_pod, make_snapshot, score_nodes
from extender.values.caches import LARGE, LARGE_KEPT
from tests.kit.storage import gce_disk

KINDS = [
    "AffinityClass",
    "CompiledConstraint",
    "ParsedNodeSelector",
    "PodTerms",
    "PreferredTerms",
    "RequiredNodeAffinity",
    "Resources",
    "Selector",
    "TermQuestions",
    "Tolerations",
    "VolumeClass",
]
ROOM = LARGE // 64
NODE = make_node("n").label(zone="z").capacity(cpu=1, pods=10)


def names(number: int) -> list[str]:
    return [f"one-of-many-names-that-take-some-room-{number}-{place}" for place in range(2 * ROOM)]


def labels(number: int) -> dict[str, str]:
    return dict.fromkeys(names(number), "x")


def tolerating(pod: PodBuilder, number: int) -> PodBuilder:
    for name in names(number):
        pod = pod.toleration(name)
    return pod


def with_disks(pod: PodBuilder, number: int) -> PodBuilder:
    for name in names(number):
        pod = pod.volume(gce_disk(name))
    return pod


LARGE_PODS: dict[str, Callable[[PodBuilder, int], PodBuilder]] = {
    "affinity": lambda pod, number: pod.pod_affinity("zone", **labels(number)),
    "anti-affinity": lambda pod, number: pod.pod_anti_affinity("zone", **labels(number)),
    "preferred affinity": lambda pod, number: pod.preferred_pod_affinity(1, "zone", **labels(number)),
    "disks": with_disks,
    "node affinity": lambda pod, number: pod.node_affinity(label_term("zone", "In", *names(number))),
    "preferred nodes": lambda pod, number: pod.preferred_node_affinity(1, label_term("zone", "In", *names(number))),
    "node selector": lambda pod, number: pod.node_selector(labels(number)),
    "requests": lambda pod, number: pod.req(dict.fromkeys([f"example.com/{name}" for name in names(number)], 1)),
    "spread constraints": lambda pod, number: pod.spread(1, "zone", **labels(number)),
    "tolerations": tolerating,
}


def place_beside_its_like(pod: PodBuilder) -> None:
    snapshot = make_snapshot(NODE, pods=[pod.name("there").node("n")])
    filters: list[FilterPlugin] = [
        InterPodAffinity(),
        NodeAffinity(),
        NodeResourcesFit(),
        PodTopologySpread(),
        TaintToleration(),
        VolumeRestrictions(),
    ]
    for plugin in filters:
        filter_nodes(plugin, snapshot, pod.obj())
        if isinstance(plugin, ScorePlugin):
            score_nodes(plugin, snapshot, pod.obj())


def live_objects() -> Counter[str]:
    gc.collect()
    # The collector does not track what refers to nothing that it tracks, such as a Struct of texts.
    objects = {id(obj): obj for container in gc.get_objects() for obj in (container, *gc.get_referents(container))}
    kinds = Counter(type(obj).__name__ for obj in objects.values())
    return Counter({kind: kinds[kind] for kind in KINDS})


@pytest.mark.parametrize("kind", LARGE_PODS)
def test_few_are_kept(kind: str) -> None:
    place_beside_its_like(make_pod())
    before = live_objects()
    for number in range(5 * LARGE_KEPT):
        place_beside_its_like(LARGE_PODS[kind](make_pod(), number))
    more = live_objects() - before

    assert all(number <= 2 * LARGE_KEPT for number in more.values()), more
