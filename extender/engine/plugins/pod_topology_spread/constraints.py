"""Parsed spread constraints, the pods and nodes that they count, and the defaults for pods without constraints: they
count the pods of the pod's services and of its owner.

Upstream: framework/plugins/podtopologyspread/common.go; framework/plugins/helper/spread.go.
"""

from collections.abc import Mapping, Sequence
from typing import Final, final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.snapshot.axes import Int64s, Mask
from extender.engine.snapshot.columns import LabelColumn
from extender.engine.snapshot.matching import required_node_affinity_mask
from extender.engine.snapshot.pod_attributes import LabelClass, PodSymbol
from extender.engine.snapshot.tallies import Tally, classes_relevant_to
from extender.values.caches import cached_by_size
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.grouping import ReplicaSet, StatefulSet
from extender.values.objects.label_selectors import (
    Selector,
    SelectorError,
    selector_from_labels,
    selector_of,
    selector_with,
    with_requirements,
)
from extender.values.objects.meta import LabelSelector, OwnerReference
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL
from extender.values.objects.pod import TopologySpreadConstraint
from extender.values.objects.tolerations import find_untolerated_taint, tolerations_of

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"

HONOR: Final = "Honor"
_PLUGIN: Final = "PodTopologySpread"

_ENCODE: Final = msgspec.json.Encoder().encode
_DECODER: Final = msgspec.json.Decoder(list[TopologySpreadConstraint])


@final
class CompiledConstraint(msgspec.Struct, frozen=True):
    """A constraint with its defaults."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int = 1
    honors_affinity: bool = True
    """True if nodes that the pod's node selector or node affinity exclude do not count."""
    honors_taints: bool = False
    """True if nodes with a taint that the pod does not tolerate do not count."""
    compares_tolerations: bool = False
    """Whether the operators Lt and Gt of tolerations count; see `extender.values.objects.tolerations.tolerates`."""

    def matches_itself(self, pod: fwk.Pod) -> bool:
        return self.selector.matches(pod.labels)


def compiled(
    constraints: Sequence[TopologySpreadConstraint],
    labels: Mapping[str, str],
    action: str,
    *,
    compares_tolerations: bool = False,
) -> tuple[CompiledConstraint, ...]:
    """Returns the constraints whose whenUnsatisfiable is `action`, in order (filterTopologySpreadConstraints).

    matchLabelKeys restrict the selectors to pods with the same values as the pod's `labels`. Raises SelectorError if a
    selector is invalid.
    """
    key_labels = {
        key: labels[key] for constraint in constraints for key in constraint.match_label_keys if key in labels
    }
    return _compiled(_ENCODE(constraints), tuple(key_labels.items()), action, compares_tolerations)


@cached_by_size(256)
def _compiled(
    encoded: bytes, key_labels: tuple[tuple[str, str], ...], action: str, compares: bool
) -> tuple[CompiledConstraint, ...]:
    labels = dict(key_labels)
    selected = (constraint for constraint in _DECODER.decode(encoded) if constraint.when_unsatisfiable == action)
    return tuple(_constraint(constraint, labels, compares=compares) for constraint in selected)


def _constraint(
    constraint: TopologySpreadConstraint, labels: Mapping[str, str], *, compares: bool
) -> CompiledConstraint:
    selector = selector_of(constraint.label_selector)
    agreed = {key: labels[key] for key in constraint.match_label_keys if key in labels}
    return CompiledConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=with_requirements(selector, agreed) if agreed else selector,
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honors_affinity=constraint.node_affinity_policy in (None, HONOR),
        honors_taints=constraint.node_taints_policy == HONOR,
        compares_tolerations=compares,
    )


def pods_counted(snapshot: fwk.Snapshot, namespace: str, selector: Selector) -> Int64s:
    """(N,) the matching pods of the namespace on each node, without terminating ones.

    An empty selector matches all of them, and only a missing one matches none (kubernetes#141340).
    """
    if not selector.selectable:
        return np.zeros(len(snapshot.nodes), np.int64)
    return _tally(snapshot, namespace, selector).per_node


def pods_counted_by_value(snapshot: fwk.Snapshot, namespace: str, selector: Selector, column: LabelColumn) -> Int64s:
    """(V + 1,) the same by the value of a node label; the last entry is for nodes without it. Read-only."""
    if not selector.selectable:
        return np.zeros(len(column.values) + 1, np.int64)
    return _tally(snapshot, namespace, selector).by_value(column)


def _tally(snapshot: fwk.Snapshot, namespace: str, selector: Selector) -> Tally:
    def counts(symbol: PodSymbol) -> int:
        return isinstance(symbol, LabelClass) and not symbol.is_terminating and _selects(selector, namespace, symbol)

    question = (_PLUGIN, "counted", namespace, selector)
    return snapshot.tally(fwk.Attribute.LABELS, question, counts, classes_relevant_to(selector))


def pods_moved(rows: fwk.Rows, namespace: str, selector: Selector) -> Int64s | None:
    """(R,) how many matching pods were added to the row, less those removed; None without changes (updateWithPod).

    It is not exactly the change of `pods_counted`: terminating pods count here. So does upstream, which counts by one
    rule when a cycle begins and updates by the other.
    """

    def counts(symbol: PodSymbol) -> int:
        return isinstance(symbol, LabelClass) and _selects(selector, namespace, symbol)

    question = (_PLUGIN, "moved", namespace, selector)
    return rows.tally_change(fwk.Attribute.LABELS, question, counts, classes_relevant_to(selector))


def _selects(selector: Selector, namespace: str, pods: LabelClass) -> bool:
    return pods.namespace == namespace and selector.matches(pods.labels_by_key())


@final
class Inclusion:
    """Finds the nodes that count for a constraint: those with all topology keys that its policies do not exclude."""

    def __init__(self, snapshot: fwk.Snapshot, pod: fwk.Pod, with_keys: Mask | None) -> None:
        self._snapshot = snapshot
        self._pod = pod
        self._with_keys = with_keys
        self._affine: Mask | None = None
        self._tolerated: Mask | None = None

    def is_by_keys_alone(self, constraint: CompiledConstraint) -> bool:
        """True if no policy of the constraint excludes a node with all the topology keys."""
        return not constraint.honors_taints and not (constraint.honors_affinity and _requires_nodes(self._pod))

    def of(self, constraint: CompiledConstraint) -> Mask:
        """(N,) the nodes that count."""
        included = np.ones(len(self._snapshot.nodes), np.bool_) if self._with_keys is None else self._with_keys
        if constraint.honors_affinity and _requires_nodes(self._pod):
            if self._affine is None:
                self._affine = required_node_affinity_mask(self._snapshot, self._pod)
            included = included & self._affine
        if constraint.honors_taints:
            if self._tolerated is None:
                self._tolerated = tolerated(self._snapshot, self._pod, compares=constraint.compares_tolerations)
            included = included & self._tolerated
        return included


def _requires_nodes(pod: fwk.Pod) -> bool:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    return bool(pod.spec.node_selector) or (affinity is not None and affinity.required is not None)


def tolerated(snapshot: fwk.Snapshot, pod: fwk.Pod, *, compares: bool) -> Mask:
    """(N,) the nodes of which the pod tolerates all taints."""
    nodes, tolerations = snapshot.nodes, tolerations_of(pod)
    sets = map(nodes.taints_of, range(len(nodes.taint_sets)))
    are = [find_untolerated_taint(taints, tolerations, compares=compares) is None for taints in sets]
    mask: Mask = np.array(are, np.bool_)[nodes.taint_set]
    return mask


def columns_of(snapshot: fwk.Snapshot, constraints: Sequence[CompiledConstraint]) -> list[LabelColumn]:
    return [snapshot.nodes.label(constraint.topology_key) for constraint in constraints]


def with_all_keys(columns: Sequence[LabelColumn]) -> Mask:
    """(N,) the nodes that have all these labels."""
    mask = columns[0].present
    for column in columns[1:]:
        mask = mask & column.present
    return mask


SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(topology_key=HOSTNAME_LABEL, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE_LABEL, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5),
)
"""Upstream: framework/plugins/podtopologyspread/plugin.go, systemDefaultConstraints."""


def default_selector(pod: fwk.Pod, objects: ClusterObjects) -> Selector:
    """Returns a selector for the pods of the pod's services and controller; empty without (DefaultSelector)."""
    labels = _selectors_of_services(pod, objects)
    owners = [owner for owner in pod.metadata.owner_references if owner.controller]
    if not owners:
        return selector_from_labels(labels)
    owner = owners[0]
    if (owner.api_version, owner.kind) == ("v1", "ReplicationController"):
        controller = objects.replication_controllers.get((pod.namespace, owner.name))
        if controller is not None:
            labels |= controller.spec.selector or {}
        return selector_from_labels(labels)
    return _narrowed(selector_from_labels(labels), _selector_of_owner(owner, pod.namespace, objects))


def _selectors_of_services(pod: fwk.Pod, objects: ClusterObjects) -> dict[str, str]:
    """Returns the merged selectors of the services that select the pod; one without selects nothing."""
    merged: dict[str, str] = {}
    for service in objects.services.group(pod.namespace).values():
        selector = service.spec.selector
        if selector and selector.items() <= pod.labels.items():
            merged |= selector
    return merged


def _selector_of_owner(owner: OwnerReference, namespace: str, objects: ClusterObjects) -> LabelSelector | None:
    key = (namespace, owner.name)
    workload: ReplicaSet | StatefulSet | None = None
    if (owner.api_version, owner.kind) == ("apps/v1", "ReplicaSet"):
        workload = objects.replica_sets.get(key)
    elif (owner.api_version, owner.kind) == ("apps/v1", "StatefulSet"):
        workload = objects.stateful_sets.get(key)
    return None if workload is None else workload.spec.selector


def _narrowed(selector: Selector, label_selector: LabelSelector | None) -> Selector:
    try:
        return selector_with((*selector.requirements, *selector_of(label_selector).requirements))
    except SelectorError:
        # Like upstream, ignores an invalid selector, which the API server would not have accepted.
        return selector
