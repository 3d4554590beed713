"""The pods that a plan makes room for, and the plan that does so."""

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, final

from extender.values.objects.grouping import GroupKey
from extender.values.objects.pod import Pod
from reprieve.lab.plan.movable_pods import MovablePod
from reprieve.lab.plan.trial_moves import Domain, TrialMoves

Move = tuple[MovablePod, str]
"""A pod, and the node to which it moves."""


@final
@dataclass(frozen=True, slots=True)
class FoundPlan:
    """A plan that holds: played from the beginning, every move and every placement succeeds."""

    moves: tuple[Move, ...]
    nodes: Mapping[str, str]
    """UID of a wanted pod -> its node."""
    is_pinned: bool = False
    """Whether they fit only if each gets just this node, and not the one that the scheduler prefers."""


@final
class WantedPods:
    """The pods to make room for, in the scheduler's order. Pod groups are tried as groups."""

    def __init__(self, moving: TrialMoves, pods: Sequence[tuple[GroupKey | None, Pod]]) -> None:
        """Nothing is placed. Each pod comes with the group with which it is scheduled, if any."""
        self.pods: Final = tuple(pod for _, pod in pods)
        self._moving = moving
        self._units: dict[Hashable, list[Pod]] = {}
        for key, pod in pods:
            self._units.setdefault(key or pod.uid, []).append(pod)
        self.groups: Final = {key for key, _ in pods if key is not None}
        self.is_decided_by_nodes: Final = (
            len(pods) == 1 and not self.groups and moving.is_decided_by_nodes(self.pods[0])
        )
        """Whether there is one pod alone, and no Filter looks beyond the node itself."""

    def domains(self) -> Sequence[Domain]:
        """Returns sets of nodes; one of them has to take all pods."""
        cluster = self._moving.trial.cluster
        (group, *more_groups) = [cluster.cache.objects.pod_groups.get(key) for key in self.groups] or [None]
        if group is None or more_groups or not group.topology_key:
            return (None,)
        domains: dict[str, set[str]] = {}
        for node in cluster.nodes.values():
            value = node.labels.get(group.topology_key)
            if value is not None:
                domains.setdefault(value, set()).add(node.name)
        return [frozenset(names) for names in domains.values()]

    def nodes(self) -> Mapping[str, str] | None:
        """Returns the nodes on which the scheduler would place the pods now, by UID; None if they do not fit."""
        nodes: dict[str, str] = {}
        with ExitStack() as stack:
            for key, pods in self._units.items():
                if isinstance(key, tuple):
                    chosen = self._nodes_of_group(key, pods)
                    if chosen is None:
                        return None
                else:
                    choices = self._moving.nodes_for(pods[0])
                    if not choices:
                        return None
                    chosen = {pods[0].uid: choices[0]}
                nodes |= chosen
                chosen_pods = [pod for pod in pods if pod.uid in chosen]
                if not all(stack.enter_context(self._moving.placed(pod, chosen[pod.uid])) for pod in chosen_pods):
                    return None
        return nodes

    def _nodes_of_group(self, key: GroupKey, pods: Sequence[Pod]) -> Mapping[str, str] | None:
        self._moving.take(len(pods))
        result, _ = asyncio.run(self._moving.trial.try_group(key, pods, preempts=False))
        if not result.status.is_success:
            return None
        return {member.pod.uid: member.result.suggested_host for member in result.members if member.result is not None}
