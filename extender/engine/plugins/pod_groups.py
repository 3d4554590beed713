"""GangScheduling holds the pods of a gang until there are enough of them, and lets them through together. The other
plugins of pod groups place one in one topology domain, and in that which takes most of its pods.

Upstream: pkg/scheduler/framework/plugins/gangscheduling/gangscheduling.go, topologyaware/topology_placement.go,
podgrouppodscount.
"""

from collections.abc import Sequence
from typing import Final, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.snapshot.axes import Int64s
from extender.values.golang.quoting import quoted
from extender.values.objects.grouping import GroupKey, PodGroup, group_of
from extender.values.objects.pod import Pod

PERMIT_SECONDS: Final = 300.0
"""The time that a member waits for the others. Upstream: permitTimeoutDuration."""
TOO_FEW_KNOWN: Final = "waiting for minCount pods from a gang to appear in scheduling queue"
TOO_FEW_SCHEDULED: Final = "waiting for minCount pods from a gang to be scheduled"
_HELD: Final = (fwk.Status(fwk.Code.WAIT, (TOO_FEW_SCHEDULED,)), PERMIT_SECONDS)


@final
class GangScheduling(fwk.PreEnqueuePlugin, fwk.PermitPlugin):
    """Concerns the pods of a PodGroup with the gang policy."""

    def events_to_register(self) -> Sequence[fwk.ClusterEventWithHint]:
        return [
            fwk.on(fwk.EventResource.POD, fwk.ActionType.ADD, _is_of_same_group),
            fwk.on(fwk.EventResource.POD_GROUP, fwk.ActionType.ADD, _is_own_group),
            # Not in v1.36.2, where no group could be changed so: it came with kubernetes#139279.
            fwk.on(fwk.EventResource.POD_GROUP, fwk.ActionType.UPDATE, _own_group_needs_fewer),
        ]

    def pre_enqueue(self, pod: fwk.Pod) -> fwk.Status:
        """Gates the pod until its group exists and has enough pods."""
        key = group_of(pod)
        if key is None:
            return fwk.SUCCESS
        group = self.handle.objects.pod_groups.get(key)
        if group is None:
            return fwk.unresolvable(f"waiting for pods's pod group {quoted(key[1])} to appear in scheduling queue")
        live = self.handle.live
        if group.min_count is None or live is None or len(live.group_members(key)) >= group.min_count:
            return fwk.SUCCESS
        return fwk.unresolvable(TOO_FEW_KNOWN)

    def permit(self, state: fwk.CycleState, pod: fwk.Pod, node: str) -> tuple[fwk.Status, float]:
        """Lets the whole gang through once enough of its pods have a node; until then each of them waits."""
        key = group_of(pod)
        if key is None:
            return fwk.SUCCESS, 0.0
        in_cycle = state.find(fwk.GROUP_CYCLE)
        group = self.handle.objects.pod_groups.get(key) if in_cycle is None else in_cycle.group
        if group is None:
            return fwk.error(
                f"failed to get podGroup {key[0]}/{key[1]}: podgroup.scheduling.k8s.io {quoted(key[1])} not found"
            ), 0.0
        if group.min_count is None:
            return fwk.SUCCESS, 0.0
        if in_cycle is None:
            return self._permit_assumed(key, group.min_count)
        return _HELD if in_cycle.num_scheduled < group.min_count else (fwk.SUCCESS, 0.0)

    def _permit_assumed(self, key: GroupKey, min_count: int) -> tuple[fwk.Status, float]:
        # Upstream activates the other members here. They are tried in the same cycle, or are in backoff.
        live = self.handle.live
        if live is None:
            return fwk.SUCCESS, 0.0
        members = live.group_members(key)
        scheduled = {uid for uid in members if live.pod(uid) is not None}
        if len(scheduled) < min_count:
            return _HELD
        for uid in scheduled:
            waiting = self.handle.waiting_pods.get(uid)
            if waiting is not None:
                waiting.allow(self.name)
        return fwk.SUCCESS, 0.0


def _is_of_same_group(pod: Pod, old: None, new: Pod) -> fwk.QueueingHint:
    return fwk.queue_if(group_of(new) is not None and group_of(new) == group_of(pod))


def _is_own_group(pod: Pod, old: None, new: PodGroup) -> fwk.QueueingHint:
    return fwk.queue_if(group_of(pod) == (new.namespace, new.name))


def _own_group_needs_fewer(pod: Pod, old: PodGroup, new: PodGroup) -> fwk.QueueingHint:
    fewer = old.min_count is not None and (new.min_count is None or new.min_count < old.min_count)
    return fwk.queue_if(fewer and group_of(pod) == (new.namespace, new.name))


@final
class TopologyPlacementGenerator(fwk.PlacementGeneratePlugin):
    """Makes a placement for each value of the group's label; once pods are scheduled, only for theirs."""

    def generate_placements(
        self, group: PodGroup, scheduled: Sequence[fwk.Pod], parent: fwk.GroupPlacement, snapshot: fwk.Snapshot
    ) -> Sequence[fwk.GroupPlacement]:
        key = group.topology_key
        if not key:
            return [parent]
        column = snapshot.nodes.label(key)
        codes = column.codes[parent.nodes]
        domain = _domain_of(key, scheduled, snapshot)
        present = codes[codes >= 0]
        _, first = np.unique(present, return_index=True)
        domain_codes = [int(present[place]) for place in sorted(first.tolist())]
        if domain is not None:
            domain_codes = [code for code in domain_codes if column.values[code] == domain]
        return [fwk.GroupPlacement(column.values[code], parent.nodes[codes == code]) for code in domain_codes]


def _domain_of(key: str, scheduled: Sequence[fwk.Pod], snapshot: fwk.Snapshot) -> str | None:
    """Returns the domain of the placed pods, if any; ValueError if they are in several, or in none."""
    domain: str | None = None
    for pod in scheduled:
        place = snapshot.nodes.index.get(pod.spec.node_name)
        if place is None:
            raise ValueError(f"getting node for pod {pod.key}: nodeinfo not found for node name {pod.spec.node_name!r}")
        pod_domain = snapshot.nodes.objects[place].labels.get(key)
        if pod_domain is None:
            raise ValueError(f"no topology domain found for pod {pod.key}")
        if domain is not None and pod_domain != domain:
            raise ValueError(f"more than 1 domain found for pod group: {domain}, {pod_domain}")
        domain = pod_domain
    return domain


@final
class PodGroupPodsCount(fwk.PlacementScorePlugin):
    """Prefers the placement with most pods of the group."""

    def score_placement(self, group: PodGroup, placed: fwk.PlacedGroup, snapshot: fwk.Snapshot) -> int:
        return placed.num_scheduled + len(placed.pods)

    def normalize_placement_scores(self, scores: Int64s) -> Int64s:
        highest = int(scores.max(initial=0))
        if not highest:
            raise ValueError("no pods from pod group are assigned to any of the candidate placements")
        return scores * fwk.MAX_NODE_SCORE // highest
