"""Finding by name: pods, nodes, workloads, namespaces and pod groups whose names contain what a person types; and the
pods of one of them.

Both go over all pods of the cluster, in a thread. Of each namespace no more than `limits.NAMES_FOUND` pods,
workloads and groups are kept before it is known which namespaces the caller may see, so that the names of one cannot
crowd out those of another.
"""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

from extender.answers.overviews import Found, FoundNames, ListedPod, NamespacePods, PodList
from extender.answers.parts import PodName, workload_of
from extender.engine.cache.cluster import Cluster
from extender.values import limits
from extender.values.objects.label_selectors import EVERYTHING, Selector
from extender.values.objects.pod import Pod

_KINDS: Final = ("node", "workload", "namespace", "group", "pod")
"""In the order in which equally good ones are shown."""


@final
@dataclass(frozen=True, slots=True)
class Population:
    """The nodes and pods of a cluster at one moment, which a thread may go over."""

    nodes: Sequence[str]
    pods: Sequence[Pod]
    """The pods of the cluster; those that are pending come first."""

    @staticmethod
    def of(cluster: Cluster) -> "Population":
        """Returns the nodes and pods that the cluster has now."""
        waiting = (pod for pod in cluster.pending.values() if not cluster.cache.is_assumed(pod))
        return Population(list(cluster.nodes), [*waiting, *cluster.cache.pods])


def find(population: Population, query: str) -> FoundNames:
    """Returns all whose name, with its namespace before it, contains all words of the query; to be passed to `seen`."""
    words = query.lower().split()
    if not words:
        return FoundNames(items=())
    kept: Counter[tuple[str, str]] = Counter()
    found: dict[Found, None] = {}
    more = False
    for each in _matches(population, words):
        if each in found:
            continue
        kept[each.namespace, each.kind] += 1
        if kept[each.namespace, each.kind] > limits.NAMES_FOUND:
            more = True
        else:
            found[each] = None
    return FoundNames(items=tuple(sorted(found, key=lambda each: _rank(each, words))), more=more)


def seen(found: FoundNames, may_see: Container[str], limit: int) -> FoundNames:
    """Returns the best of what was found in these namespaces, and of the nodes."""
    items = [each for each in found.items if not each.namespace or each.namespace in may_see]
    return FoundNames(items=tuple(items[:limit]), more=found.more or len(items) > limit)


def pods_of(
    population: Population, namespace: str, workload: str, group: str, limit: int, selector: Selector = EVERYTHING
) -> PodList:
    """Returns the pods of a namespace that the selector selects; of a workload or group, unless these are empty."""
    listed: list[ListedPod] = []
    total = 0
    for pod in population.pods:
        if pod.namespace != namespace:
            continue
        of_group = _group_of(pod)
        if (
            (group and of_group != group)
            or (workload and not _is_of(pod, workload))
            or not selector.matches(pod.labels)
        ):
            continue
        total += 1
        if len(listed) < limit:
            created = pod.metadata.creation_timestamp
            listed.append(
                ListedPod(
                    pod=PodName.of(pod),
                    node=pod.spec.node_name,
                    workload=workload_of(pod),
                    group=of_group,
                    since=created,
                )
            )
    return PodList(items=tuple(listed), total=total)


def namespaces_with_pods(population: Population) -> PodList:
    every: Counter[str] = Counter()
    pending: Counter[str] = Counter()
    for pod in population.pods:
        every[pod.namespace] += 1
        pending[pod.namespace] += not pod.spec.node_name
    counted = (NamespacePods(namespace=name, pods=pods, pending=pending[name]) for name, pods in sorted(every.items()))
    return PodList(total=every.total(), namespaces=tuple(counted))


def _matches(population: Population, words: Sequence[str]) -> Iterator[Found]:
    for name in population.nodes:
        if _contains(name, words):
            yield Found(kind="node", name=name)
    namespaces: set[str] = set()
    for pod in population.pods:
        namespace, name = pod.metadata.namespace or "default", pod.metadata.name
        if namespace not in namespaces:
            namespaces.add(namespace)
            if _contains(namespace, words):
                yield Found(kind="namespace", name=namespace, namespace=namespace)
        group = _group_of(pod) if pod.spec.scheduling_group is not None else ""
        if group and _contains(f"{namespace}/{group}", words):
            yield Found(kind="group", name=group, namespace=namespace)
        for owner in pod.metadata.owner_references:
            # The name of a Deployment is a part of that of its ReplicaSet.
            if owner.controller and _contains(f"{namespace}/deployment {owner.kind}/{owner.name}", words):
                workload = workload_of(pod)
                if _contains(f"{namespace}/{workload}", words):
                    yield Found(kind="workload", name=workload, namespace=namespace)
        if _contains(f"{namespace}/{name}", words):
            yield Found(kind="pod", name=name, namespace=namespace, node=pod.spec.node_name)


def _contains(text: str, words: Sequence[str]) -> bool:
    return all(map(text.lower().__contains__, words))


def _is_of(pod: Pod, workload: str) -> bool:
    """Tells whether the pod is of the workload, which may also be named by the ReplicaSet that a Deployment makes."""
    return workload == workload_of(pod) or any(
        workload == f"{each.kind}/{each.name}" for each in pod.metadata.owner_references if each.controller
    )


def _group_of(pod: Pod) -> str:
    return pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else ""


def _rank(each: Found, words: Sequence[str]) -> tuple[int, int, int, str, str]:
    name = each.name.rpartition("/")[2].lower()
    how_well = 0 if name == words[-1] else 1 if name.startswith(words[-1]) else 2
    return how_well, _KINDS.index(each.kind), len(each.name), each.name, each.namespace
