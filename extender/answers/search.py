"""Finding by name: pods, nodes, workloads, namespaces and pod groups whose names contain what a person types; and lists
of pods.

Of each namespace no more than `limits.NAMES_FOUND` pods, workloads and groups are kept before it is known which
namespaces the caller may see, so that the names of one cannot crowd out those of another.
"""

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from extender.answers.cluster_map import natural
from extender.answers.overviews import Found, FoundNames, ListedPod, NamespacePods, PodList, PodState
from extender.answers.parts import PodName, workload_of
from extender.engine.cache.cluster import Cluster
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import CPU, MEMORY
from extender.values import limits
from extender.values.near_names import near_names
from extender.values.objects.label_selectors import EVERYTHING, Selector
from extender.values.objects.pod import Pod

_KINDS: Final = ("node", "workload", "namespace", "group", "pod")
"""In the order in which equally good ones are shown."""
_NEAR: Final = 3
"""Names like one that does not exist, as they are found instead."""


@final
@dataclass(frozen=True, slots=True)
class Population:
    """The nodes and pods of a cluster at one moment."""

    nodes: Sequence[str]
    pods: Sequence[Pod]
    """The pods of the cluster; those that are pending come first."""
    recorded: Collection[str] = ()
    """namespace/name of pods that are remembered, of which some may be gone."""

    @staticmethod
    def of(cluster: Cluster, recorded: Collection[str] = ()) -> "Population":
        """Returns the nodes and pods that the cluster has now."""
        waiting = (pod for pod in cluster.pending.values() if not cluster.cache.is_assumed(pod))
        return Population(list(cluster.nodes), [*waiting, *cluster.cache.pods], recorded)


def find(population: Population, query: str) -> FoundNames:
    """Returns all whose name, with its namespace before it, contains all words of the query, or else the nodes and pods
    whose name is almost that; to be passed to `visible_names`.
    """
    words = query.lower().split()
    if not words:
        return FoundNames(items=())
    counts: Counter[tuple[str, str]] = Counter()
    matches: dict[Found, None] = {}
    more = False
    for item in _matches(population, words):
        if item in matches:
            continue
        counts[item.namespace, item.kind] += 1
        if counts[item.namespace, item.kind] > limits.NAMES_FOUND:
            more = True
        else:
            matches[item] = None
    if not matches:
        return FoundNames(items=tuple(_near_matches(population, query)))
    return FoundNames(items=tuple(sorted(matches, key=lambda item: _rank(item, words))), more=more)


def visible_names(found_names: FoundNames, may_see: Container[str], limit: int) -> FoundNames:
    """Returns the best of what was found in these namespaces, and of the nodes."""
    items = [item for item in found_names.items if not item.namespace or item.namespace in may_see]
    return FoundNames(items=tuple(items[:limit]), more=found_names.more or len(items) > limit)


def pods_of(
    population: Population,
    namespaces: Container[str],
    workload: str = "",
    group: str = "",
    selector: Selector = EVERYTHING,
    query: str = "",
    state: str = "",
    sort: str = "",
    limit: int = limits.PAGE_PODS,
) -> PodList:
    """Returns the pods with all that is asked for, by name and pending ones first unless `sort` names an order."""
    words = query.lower().split()
    pods = [
        pod
        for pod in population.pods
        if pod.namespace in namespaces
        and (not group or _group_of(pod) == group)
        and (not workload or _is_of(pod, workload))
        and (not state or _state_of(pod) == state)
        and (not words or _contains(f"{pod.namespace}/{pod.name} {workload_of(pod)} {pod.spec.node_name}", words))
        and selector.matches(pod.labels)
    ]
    pods.sort(key=_ORDERS["name"])
    column = sort.removeprefix("-")
    # The youngest pod was created last.
    pods.sort(key=_ORDERS[column], reverse=sort.startswith("-") != (column == "age"))
    return PodList(items=tuple(map(_listed, pods[:limit])), total=len(pods))


_ORDERS: Final[Mapping[str, Callable[[Pod], Any]]] = {
    "": lambda pod: bool(pod.spec.node_name),
    "name": lambda pod: (pod.namespace, natural(pod.name)),
    "node": lambda pod: natural(pod.spec.node_name),
    "priority": lambda pod: pod.spec.priority or 0,
    "age": lambda pod: pod.metadata.creation_timestamp or "",
}


def _listed(pod: Pod) -> ListedPod:
    return ListedPod(
        pod=PodName.of(pod),
        node=pod.spec.node_name,
        state=_state_of(pod),
        workload=workload_of(pod),
        group=_group_of(pod),
        since=pod.metadata.creation_timestamp,
    )


def _state_of(pod: Pod) -> PodState:
    if pod.metadata.deletion_timestamp:
        return "terminating"
    return "scheduled" if pod.spec.node_name else "gated" if pod.spec.scheduling_gates else "pending"


def namespaces_with_pods(population: Population, snapshot: Snapshot) -> tuple[NamespacePods, ...]:
    """Returns the namespaces that have pods, by name, with what those of the snapshot request."""
    every: Counter[str] = Counter()
    pending: Counter[str] = Counter()
    for pod in population.pods:
        every[pod.namespace] += 1
        pending[pod.namespace] += not pod.spec.node_name
    slots: dict[str, list[int]] = {name: [] for name in every}
    for slot in snapshot.pods.slots.values():
        slots.setdefault(snapshot.pod_at(slot).namespace, []).append(slot)
    requested = {name: snapshot.pods.requests[namespace_slots].sum(axis=0) for name, namespace_slots in slots.items()}
    return tuple(
        NamespacePods(
            namespace=name,
            pods=pods,
            pending=pending[name],
            requested_cpu=int(requested[name][CPU]),
            requested_memory=int(requested[name][MEMORY]),
        )
        for name, pods in sorted(every.items())
    )


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
    recorded_keys = {key for key in population.recorded if _contains(key, words)}
    for key in sorted(recorded_keys.difference(pod.key for pod in population.pods) if recorded_keys else ()):
        namespace, _, name = key.partition("/")
        yield Found(kind="pod", name=name, namespace=namespace, is_gone=True)


def _near_matches(population: Population, query: str) -> Iterator[Found]:
    """Yields the nodes and pods with one of the names most like this one, of any namespace."""
    name = query.rpartition("/")[2].lower()
    near = near_names(name, {*population.nodes, *(pod.name for pod in population.pods)}, _NEAR)
    yield from (Found(kind="node", name=node) for node in near if node in population.nodes)
    pods = [pod for pod in population.pods if pod.name in near]
    for pod in sorted(pods, key=lambda pod: (near.index(pod.name), pod.namespace))[: limits.NAMES_FOUND]:
        yield Found(kind="pod", name=pod.name, namespace=pod.namespace, node=pod.spec.node_name)


def _contains(text: str, words: Sequence[str]) -> bool:
    return all(map(text.lower().__contains__, words))


def _is_of(pod: Pod, workload: str) -> bool:
    """Tells whether the pod is of the workload, which may also be named by the ReplicaSet that a Deployment makes."""
    return workload == workload_of(pod) or any(
        workload == f"{owner.kind}/{owner.name}" for owner in pod.metadata.owner_references if owner.controller
    )


def _group_of(pod: Pod) -> str:
    return pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else ""


def _rank(item: Found, words: Sequence[str]) -> tuple[int, int, int, str, str]:
    name = item.name.rpartition("/")[2].lower()
    how_well = 0 if name == words[-1] else 1 if name.startswith(words[-1]) else 2
    return how_well, _KINDS.index(item.kind), len(item.name), item.name, item.namespace
