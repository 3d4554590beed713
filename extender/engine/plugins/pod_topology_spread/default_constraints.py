"""Default spread constraints, for pods without their own: they count the pods of the pod's services and of its owner.

Upstream: framework/plugins/helper/spread.go (v1.36.2).
"""

from typing import Final

from extender.engine import framework as fwk
from extender.engine.plugins.pod_topology_spread.constraints import SCHEDULE_ANYWAY
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.label_selectors import (
    Selector,
    SelectorError,
    selector_from_labels,
    selector_of,
    selector_with,
)
from extender.values.objects.meta import LabelSelector, OwnerReference
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL
from extender.values.objects.pod import TopologySpreadConstraint

SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(topology_key=HOSTNAME_LABEL, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=3),
    TopologySpreadConstraint(topology_key=ZONE_LABEL, when_unsatisfiable=SCHEDULE_ANYWAY, max_skew=5),
)
"""Upstream: framework/plugins/podtopologyspread/plugin.go, systemDefaultConstraints."""


def default_selector(pod: fwk.Pod, objects: ClusterObjects) -> Selector:
    """Returns a selector for the pods of the pod's services and of its controller; empty if it has neither.

    Upstream: spread.go, DefaultSelector.
    """
    labels = _selectors_of_services(pod, objects)
    owner = next((owner for owner in pod.metadata.owner_references if owner.controller), None)
    if owner is None:
        return selector_from_labels(labels)
    if (owner.api_version, owner.kind) == ("v1", "ReplicationController"):
        controller = objects.replication_controllers.get((pod.namespace, owner.name))
        if controller is not None:
            labels |= controller.spec.selector or {}
        return selector_from_labels(labels)
    return _narrowed(selector_from_labels(labels), _selector_of_owner(owner, pod.namespace, objects))


def _selectors_of_services(pod: fwk.Pod, objects: ClusterObjects) -> dict[str, str]:
    """Returns the merged selectors of all services that select the pod. A service without a selector selects
    nothing.
    """
    merged: dict[str, str] = {}
    for service in objects.services.group(pod.namespace).values():
        selector = service.spec.selector
        if selector and selector.items() <= pod.labels.items():
            merged |= selector
    return merged


def _selector_of_owner(owner: OwnerReference, namespace: str, objects: ClusterObjects) -> LabelSelector | None:
    key = (namespace, owner.name)
    match owner.api_version, owner.kind:
        case "apps/v1", "ReplicaSet":
            replica_set = objects.replica_sets.get(key)
            return replica_set.spec.selector if replica_set is not None else None
        case "apps/v1", "StatefulSet":
            stateful_set = objects.stateful_sets.get(key)
            return stateful_set.spec.selector if stateful_set is not None else None
        case _:
            return None


def _narrowed(selector: Selector, by: LabelSelector | None) -> Selector:
    try:
        return selector_with((*selector.requirements, *selector_of(by).requirements))
    except SelectorError:
        # Like upstream, ignores an invalid selector, which the API server would not have accepted.
        return selector
