"""NodeUnschedulable and TaintToleration: keep pods off cordoned nodes, and off those with taints that they do not
tolerate.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.framework.interface import listed
from extender.engine.snapshot.axes import Int64s
from extender.values import limits
from extender.values.objects.node import Taint
from extender.values.objects.tolerations import (
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    Tolerations,
    find_untolerated_taint,
    tolerating,
    tolerations_of,
)

_ENCODE: Final = msgspec.json.Encoder().encode

CORDONED: Final = "node(s) were unschedulable"
UNTOLERATED: Final = "node(s) had untolerated taint(s)"

UNSCHEDULABLE_TAINT: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""The node controller's taint on a cordoned node. Pods that tolerate it may run there."""


@final
class NodeUnschedulable(fwk.SignPlugin, fwk.FilterPlugin, fwk.AdvicePlugin):
    """Refuses nodes with spec.unschedulable, unless the pod tolerates the matching taint.

    Upstream: framework/plugins/nodeunschedulable/node_unschedulable.go.
    """

    looks_at_pods = False
    looks_only_at_node = True

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        return [
            fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_TAINT, _after_node_change),
            fwk.on(fwk.EventResource.POD, fwk.ActionType.UPDATE_POD_TOLERATION, _after_toleration_change),
        ]

    def sign_pod(self, pod: fwk.Pod) -> bool:
        return _tolerates_cordons(pod)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refusals are unresolvable, since removing pods does not uncordon a node."""
        if _tolerates_cordons(pod):
            return fwk.accept(len(rows))
        return fwk.reject(rows.unschedulable, CORDONED, unresolvable=True)

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterable[fwk.Suggestion]:
        """Once uncordoned, a node takes the pod as it would a pod that tolerates the cordon and its taint."""
        return [fwk.Suggestion("node", "uncordon nodes", tolerating(pod, [UNSCHEDULABLE_TAINT]))]


def _tolerates_cordons(pod: fwk.Pod) -> bool:
    return tolerations_of(pod).cover(UNSCHEDULABLE_TAINT)


def _after_node_change(pod: fwk.Pod, old: fwk.Node | None, new: fwk.Node) -> fwk.QueueingHint:
    return fwk.queue_if(not new.spec.unschedulable and (old is None or old.spec.unschedulable))


def _after_toleration_change(pod: fwk.Pod, old: fwk.Pod, new: fwk.Pod) -> fwk.QueueingHint:
    # The old tolerations need no check: with them the plugin would not have refused the pod.
    return fwk.queue_if(new.uid == pod.uid and _tolerates_cordons(new))


Prospect = Literal["", "soon usable", "going"]
"""The future of a node by its taint; empty if the taint says nothing."""

_OF_OTHER_AGENTS: Final[Sequence[tuple[str, Prospect]]] = (
    ("*agent-not-ready", "soon usable"),
    ("*uninitialized", "soon usable"),
    ("karpenter.sh/unregistered", "soon usable"),
    ("karpenter.sh/*", "going"),
    ("ToBeDeleted*", "going"),
)
"""Keys of taints of network and storage agents, cloud providers and autoscalers, the first pattern that matches. A pod
that tolerated them would start without its network, or on a node that is being removed.
"""


def prospect_of(taint: Taint) -> Prospect:
    """Returns the future of a node with the taint."""
    return next((prospect for pattern, prospect in _OF_OTHER_AGENTS if fnmatchcase(taint.key, pattern)), "")


_CONDITIONS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Prefixes of taints that state a condition of a node, which must be mended rather than the pod."""


@final
class TaintToleration(fwk.SignPlugin, fwk.FilterPlugin, fwk.PreScorePlugin, fwk.ScorePlugin, fwk.AdvicePlugin):
    """Refuses nodes with a NoSchedule or NoExecute taint that the pod does not tolerate; prefers nodes with few such
    PreferNoSchedule taints.

    Upstream: framework/plugins/tainttoleration/taint_toleration.go.
    """

    looks_at_pods = False
    looks_only_at_node = True
    normalizes_by_extremes = True

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        self._compares = self.feature_gates.enabled("TaintTolerationComparisonOperators")

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        return [
            fwk.on(
                fwk.EventResource.NODE, fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_TAINT, self._after_node_change
            ),
            # Tolerations can only be added to a pod.
            fwk.on(
                fwk.EventResource.POD,
                fwk.ActionType.UPDATE_POD_TOLERATION,
                lambda pod, old, new: fwk.queue_if(new.uid == pod.uid),
            ),
        ]

    def sign_pod(self, pod: fwk.Pod) -> bytes:
        return _ENCODE(pod.spec.tolerations)

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refusals are unresolvable, since removing pods removes no taint."""
        tolerations = tolerations_of(pod)
        refused = _per_taint_set(rows.snapshot, lambda taints: not self._tolerates_all(tolerations, taints))
        return fwk.reject(refused[rows.taint_set] > 0, UNTOLERATED, unresolvable=True)

    def pre_score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Status:
        """Never skips: on nodes without such taints every pod gets the full score."""
        return fwk.SUCCESS_EQUAL_PODS

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        """(R,) the number of PreferNoSchedule taints that the pod does not tolerate."""
        tolerations = tolerations_of(pod)

        def count(taints: Sequence[Taint]) -> int:
            soft = (taint for taint in taints if taint.effect == PREFER_NO_SCHEDULE)
            return sum(not tolerations.cover(taint, compares=self._compares) for taint in soft)

        return _per_taint_set(rows.snapshot, count)[rows.taint_set]

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Int64s) -> Int64s:
        """(R,) the fewer, the higher."""
        return fwk.default_normalize_score(scores, reverse=True)

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterator[fwk.Suggestion]:
        """Tolerations for the sets of taints that exclude the most nodes; of nodes that are being removed, none."""
        codes, counts = np.unique(rows.taint_set, return_counts=True)
        num_nodes: Counter[tuple[Taint, ...]] = Counter()
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            num_nodes[self.untolerated(pod, rows.snapshot.nodes.taints_of(code))] += count
        for taints, _ in num_nodes.most_common(limits.SUGGESTED_ONE_BY_ONE):
            if taints and "going" not in map(prospect_of, taints):
                yield _tolerating(pod, taints)

    def untolerated(self, pod: fwk.Pod, taints: Sequence[Taint]) -> tuple[Taint, ...]:
        """Returns those of the taints that keep the pod away."""
        return tuple(taint for taint in taints if not self._tolerates_all(tolerations_of(pod), [taint]))

    def _after_node_change(self, pod: fwk.Pod, old: fwk.Node | None, new: fwk.Node) -> fwk.QueueingHint:
        tolerations = tolerations_of(pod)
        was_tolerated = old is not None and self._tolerates_all(tolerations, old.spec.taints)
        return fwk.queue_if(not was_tolerated and self._tolerates_all(tolerations, new.spec.taints))

    def _tolerates_all(self, tolerations: Tolerations, taints: Sequence[Taint]) -> bool:
        return find_untolerated_taint(taints, tolerations, compares=self._compares) is None


def _tolerating(pod: fwk.Pod, taints: Sequence[Taint]) -> fwk.Suggestion:
    passing = [taint for taint in taints if prospect_of(taint)]
    conditions = [taint for taint in taints if taint not in passing and taint.key.startswith(_CONDITIONS)]
    tolerable = [taint for taint in taints if taint not in passing and taint not in conditions]
    texts = [f"tolerate the {listed('taint', list(map(taint_in_words, tolerable)))}"] if tolerable else []
    if conditions:
        texts.append(f"remove the {listed('taint', list(map(taint_in_words, conditions)))} from nodes")
    if passing:
        are = "is" if len(passing) == 1 else "are"
        texts.append(f"wait until the {listed('taint', list(map(taint_in_words, passing)))} {are} gone")
    kind: Literal["node", "toleration"] = "node" if conditions or passing else "toleration"
    return fwk.Suggestion(kind, " and ".join(texts), tolerating(pod, taints))


def taint_in_words(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _per_taint_set(snapshot: fwk.Snapshot, judge: Callable[[Sequence[Taint]], int]) -> Int64s:
    """(T,) the result of `judge` for each list of taints, by code: many nodes share few lists."""
    nodes = snapshot.nodes
    return np.array([judge(nodes.taints_of(code)) for code in range(len(nodes.taint_sets))], np.int64)
