"""Constraints of a pod, compiled; and what they count.

Upstream: framework/plugins/podtopologyspread/common.go (v1.36.2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, final

import msgspec
import numpy as np

from extender import framework as fwk
from extender.objects.label_selectors import Selector, selector_of, with_requirements
from extender.objects.pod import TopologySpreadConstraint
from extender.objects.tolerations import find_untolerated_taint
from extender.snapshot.axes import Int64s, Mask
from extender.snapshot.columns import LabelColumn
from extender.snapshot.matching import required_node_affinity_mask
from extender.snapshot.pod_attributes import LabelClass, PodSymbol

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"

_HONOR: Final = "Honor"
_PLUGIN: Final = "PodTopologySpread"
_COMPILED_KEPT: Final = 1024

_ENCODE: Final = msgspec.json.Encoder().encode
_WRITTEN: Final = msgspec.json.Decoder(list[TopologySpreadConstraint])


@final
@dataclass(frozen=True, slots=True)
class CompiledConstraint:
    """A constraint with its defaults filled in."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int = 1
    honors_affinity: bool = True
    """Nodes that the pod's node selector and node affinity rule out do not count."""
    honors_taints: bool = False
    """Nodes with a taint that the pod does not tolerate do not count."""

    def matches_itself(self, pod: fwk.Pod) -> bool:
        """Whether the pod is one of those that the constraint counts."""
        return self.selector.matches(pod.labels)


def compiled(written: Sequence[TopologySpreadConstraint], labels: Mapping[str, str], action: str) -> tuple[CompiledConstraint, ...]:
    """Those of the constraints that say `action` when they cannot be met, in order.

    Arguments:
        labels: the pod's; matchLabelKeys narrow the selectors down to pods that agree with it there.

    Raises:
        SelectorError: a selector of theirs cannot be used.

    Upstream: common.go, filterTopologySpreadConstraints.
    """
    own = {key: labels[key] for constraint in written for key in constraint.match_label_keys if key in labels}
    return _compiled(_ENCODE(written), tuple(own.items()), action)


@lru_cache(maxsize=_COMPILED_KEPT)
def _compiled(encoded: bytes, own: tuple[tuple[str, str], ...], action: str) -> tuple[CompiledConstraint, ...]:
    labels = dict(own)
    return tuple(_constraint(written, labels) for written in _WRITTEN.decode(encoded) if written.when_unsatisfiable == action)


def _constraint(written: TopologySpreadConstraint, labels: Mapping[str, str]) -> CompiledConstraint:
    selector = selector_of(written.label_selector)
    agreed = {key: labels[key] for key in written.match_label_keys if key in labels}
    return CompiledConstraint(
        max_skew=written.max_skew,
        topology_key=written.topology_key,
        selector=with_requirements(selector, agreed) if agreed else selector,
        min_domains=1 if written.min_domains is None else written.min_domains,
        honors_affinity=written.node_affinity_policy in (None, _HONOR),
        honors_taints=written.node_taints_policy == _HONOR,
    )


def with_selector(constraint: CompiledConstraint, selector: Selector) -> CompiledConstraint:
    """The constraint, counting the pods that this selector selects."""
    return replace(constraint, selector=selector)


def pods_counted(snapshot: fwk.Snapshot, namespace: str, selector: Selector) -> Int64s:
    """(N,) how many pods of the namespace the selector counts on each node: none that terminates, and none at all if it is empty.

    Upstream: common.go, countPodsMatchSelector.
    """
    if selector.is_empty:
        return np.zeros(len(snapshot.nodes), np.int64)

    def counts(symbol: PodSymbol) -> int:
        return isinstance(symbol, LabelClass) and not symbol.is_terminating and _selects(selector, namespace, symbol)

    question = (_PLUGIN, "counted", namespace, selector)
    return snapshot.tally(fwk.Attribute.LABELS, question, counts, snapshot.tallies.classes_relevant_to(selector)).per_node


def pods_moved(rows: fwk.Rows, namespace: str, selector: Selector) -> Int64s | None:
    """(R,) how many selected pods have come to the row, less those that have left; None if the rows are the nodes as they are.

    Not quite the change of `pods_counted`: here pods that terminate count, and an empty selector selects all of the namespace. Upstream
    draws that line between what it counts when a cycle begins and what it adds and subtracts later.

    Upstream: filtering.go, updateWithPod.
    """

    def counts(symbol: PodSymbol) -> int:
        return isinstance(symbol, LabelClass) and _selects(selector, namespace, symbol)

    question = (_PLUGIN, "moved", namespace, selector)
    return rows.tally_change(fwk.Attribute.LABELS, question, counts, rows.snapshot.tallies.classes_relevant_to(selector))


def _selects(selector: Selector, namespace: str, pods: LabelClass) -> bool:
    return pods.namespace == namespace and selector.matches(dict(pods.labels))


@final
class Inclusion:
    """Which nodes count for a constraint of a pod: those with all topology keys in question, less those its policies leave out.

    Upstream: common.go, matchNodeInclusionPolicies, nodeLabelsMatchSpreadConstraints.
    """

    def __init__(self, snapshot: fwk.Snapshot, pod: fwk.Pod, with_keys: Mask | None) -> None:
        self._snapshot = snapshot
        self._pod = pod
        self._with_keys = with_keys
        self._affine: Mask | None = None
        self._tolerated: Mask | None = None

    def of(self, constraint: CompiledConstraint) -> Mask:
        """(N,) the nodes that count."""
        included = np.ones(len(self._snapshot.nodes), np.bool_) if self._with_keys is None else self._with_keys
        if constraint.honors_affinity and _demands_a_node(self._pod):
            if self._affine is None:
                self._affine = required_node_affinity_mask(self._snapshot, self._pod)
            included = included & self._affine
        if constraint.honors_taints:
            if self._tolerated is None:
                self._tolerated = _tolerated(self._snapshot, self._pod)
            included = included & self._tolerated
        return included


def _demands_a_node(pod: fwk.Pod) -> bool:
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    return bool(pod.spec.node_selector) or (affinity is not None and affinity.required is not None)


def _tolerated(snapshot: fwk.Snapshot, pod: fwk.Pod) -> Mask:
    nodes = snapshot.nodes
    tolerated = [find_untolerated_taint(nodes.taints_of(code), pod.spec.tolerations) is None for code in range(len(nodes.taint_sets))]
    mask: Mask = np.array(tolerated, np.bool_)[nodes.taint_set]
    return mask


def columns_of(snapshot: fwk.Snapshot, constraints: Sequence[CompiledConstraint]) -> list[LabelColumn]:
    """The column of each constraint's topology key."""
    return [snapshot.nodes.label(constraint.topology_key) for constraint in constraints]


def with_all_keys(columns: Sequence[LabelColumn]) -> Mask:
    """(N,) the nodes that have all these labels."""
    mask: Mask = columns[0].codes >= 0
    for column in columns[1:]:
        mask &= column.codes >= 0
    return mask
