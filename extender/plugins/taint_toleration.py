"""TaintToleration: keeps pods off nodes with taints that they do not tolerate."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final, final

import numpy as np

from extender import framework as fwk
from extender.framework.advice import MAX_ONE_BY_ONE, listed
from extender.objects.node import Taint
from extender.objects.tolerations import PREFER_NO_SCHEDULE, find_untolerated_taint, tolerates, tolerating
from extender.snapshot.axes import Int64s

REASON: Final = "node(s) had untolerated taint(s)"

_CONDITIONS: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Prefixes of taints that state a condition of a node: then the node has to be mended, not the pod."""

_UNTOLERATED: Final = fwk.StateKey[Int64s]("PreScoreTaintToleration")


@final
class TaintToleration(fwk.FilterPlugin, fwk.PreScorePlugin, fwk.ScorePlugin, fwk.AdvicePlugin):
    """Refuses nodes with a NoSchedule or NoExecute taint that the pod does not tolerate; prefers nodes with few such PreferNoSchedule
    taints.

    Upstream: framework/plugins/tainttoleration/taint_toleration.go (v1.36.2).
    """

    looks_at_pods = False
    looks_only_at_node = True

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        return [
            fwk.on(fwk.EventResource.NODE, fwk.ActionType.ADD | fwk.ActionType.UPDATE_NODE_TAINT, _after_node_change),
            # Tolerations can only be added to a pod.
            fwk.on(fwk.EventResource.POD, fwk.ActionType.UPDATE_POD_TOLERATION, lambda pod, old, new: fwk.queue_if(new.uid == pod.uid)),
        ]

    def filter(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Verdicts:
        """Refusals are unresolvable, since removing pods removes no taint."""
        tolerations = pod.spec.tolerations
        refused = _per_taint_set(rows.snapshot, lambda taints: find_untolerated_taint(taints, tolerations) is not None)
        return fwk.reject(refused[rows.taint_set] > 0, REASON, unresolvable=True)

    def pre_score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> fwk.Status:
        """Never skips: on nodes without such taints every pod gets the full score."""
        tolerations = pod.spec.tolerations

        def count(taints: Sequence[Taint]) -> int:
            soft = (taint for taint in taints if taint.effect == PREFER_NO_SCHEDULE)
            return sum(not any(tolerates(toleration, taint) for toleration in tolerations) for taint in soft)

        state.write(_UNTOLERATED, _per_taint_set(rows.snapshot, count))
        return fwk.SUCCESS

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        """(R,) the number of PreferNoSchedule taints that the pod does not tolerate."""
        return state.read(_UNTOLERATED)[rows.taint_set]

    def normalize_score(self, state: fwk.CycleState, pod: fwk.Pod, scores: Int64s) -> Int64s:
        """(R,) the fewer, the higher."""
        return fwk.default_normalize_score(scores, reverse=True)

    def suggest(self, pod: fwk.Pod, rows: fwk.Rows) -> Iterator[fwk.Suggestion]:
        """Tolerations for the sets of taints that exclude the most nodes."""
        codes, counts = np.unique(rows.taint_set, return_counts=True)
        num_nodes: Counter[tuple[Taint, ...]] = Counter()
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
            num_nodes[_untolerated(pod, rows.snapshot.nodes.taints_of(code))] += count
        for taints, _ in num_nodes.most_common(MAX_ONE_BY_ONE):
            if taints:
                yield _tolerating(pod, taints)


def _untolerated(pod: fwk.Pod, taints: Sequence[Taint]) -> tuple[Taint, ...]:
    return tuple(taint for taint in taints if find_untolerated_taint([taint], pod.spec.tolerations) is not None)


def _tolerating(pod: fwk.Pod, taints: Sequence[Taint]) -> fwk.Suggestion:
    conditions = [taint for taint in taints if taint.key.startswith(_CONDITIONS)]
    others = [taint for taint in taints if taint not in conditions]
    texts = [f"tolerate the {listed('taint', list(map(_written, others)))}"] if others else []
    if conditions:
        texts.append(f"rid nodes of the {listed('taint', list(map(_written, conditions)))}")
    return fwk.Suggestion("node" if conditions else "toleration", " and ".join(texts), tolerating(pod, taints))


def _written(taint: Taint) -> str:
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def _per_taint_set(snapshot: fwk.Snapshot, judge: Callable[[Sequence[Taint]], int]) -> Int64s:
    """(T,) the result of `judge` for each list of taints in the cluster, by code: a cluster has many nodes, but few such lists."""
    nodes = snapshot.nodes
    return np.array([judge(nodes.taints_of(code)) for code in range(len(nodes.taint_sets))], np.int64)


def _after_node_change(pod: fwk.Pod, old: fwk.Node | None, new: fwk.Node) -> fwk.QueueingHint:
    return fwk.queue_if(_is_tolerated(pod, new) and (old is None or not _is_tolerated(pod, old)))


def _is_tolerated(pod: fwk.Pod, node: fwk.Node) -> bool:
    return find_untolerated_taint(node.spec.taints, pod.spec.tolerations) is None
