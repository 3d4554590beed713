"""Which running pods may move to another node, and why the others stay."""

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, final

import numpy as np

from extender.answers.trial import Trial, belongs_to_node, is_recreated, recreated
from extender.engine.cache.cluster import Cluster
from extender.engine.preemption import rules_of
from extender.engine.preemption.budgets import may_be_victims
from extender.engine.preemption.victim_policy import lost_gpu_hours
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.memory import signature_of
from extender.engine.snapshot.axes import Index
from extender.values.objects.cluster import Key
from extender.values.objects.pod import Pod, start_time

_SINGULAR: Final = {"have": "has", "are": "is", "belong": "belongs", "their nodes": "its node", "them": "it"}
"""Words for several pods -> for one."""


@final
@dataclass(frozen=True, slots=True)
class MovablePod:
    """A running pod that a controller recreates once it is evicted."""

    running: Pod
    pod: Pod
    """The pod as it is recreated, without a node."""
    budgets: tuple[Key, ...]
    """The PodDisruptionBudgets that its eviction takes from: none, or one."""
    kind: Hashable
    """Equal for pods that no Filter distinguishes: any of them may move for another."""
    gpu_hours: float
    hours: float
    """How long it has run."""

    @property
    def uid(self) -> str:
        return self.pod.uid


@final
@dataclass(frozen=True, slots=True)
class MovablePods:
    """The running pods of a cluster, by whether they may move."""

    by_uid: Mapping[str, MovablePod]
    """In order of what they lose: by priority, then by GPU time."""
    why_it_stays: Mapping[str, str]
    """UID -> why another pod stays, worded for several."""

    def staying(self) -> Sequence[tuple[str, int]]:
        """Returns (reason, number of pods), the largest number first."""
        return sorted(Counter(self.why_it_stays.values()).items(), key=lambda reason: (-reason[1], reason[0]))

    def why_stays(self, uid: str) -> str:
        """Returns why the pod stays, worded for one."""
        return re.sub(rf"\b({'|'.join(_SINGULAR)})\b", lambda match: _SINGULAR[match[0]], self.why_it_stays[uid])


def movable_pods(trial: Trial, newcomer: Pod | None, now: Callable[[], datetime]) -> MovablePods:
    """Returns the pods that eviction requests would evict now, and a controller recreates. The victim policy of the
    newcomer's profile protects some; without a newcomer that of their own, as from a pod of priority 0.
    """
    cluster, frameworks = trial.cluster, trial.frameworks
    budgets = cluster.cache.objects.pdbs
    protected = _protected(cluster, frameworks, newcomer)
    moment = now().timestamp()
    movable: list[MovablePod] = []
    staying: dict[str, str] = {}
    for running in cluster.cache.pods:
        spent = tuple(
            (namespace, name)
            for (namespace, name), budget in budgets.items()
            if namespace == running.namespace and budget.spec.parsed_selector.matches(running.labels)
        )
        why = _why_it_stays(running, frameworks.get(running.scheduler_name))
        if not why and running.uid in protected:
            why = "are protected by the victim policy"
        if not why and len(spent) > 1:
            why = "have more than one PodDisruptionBudget, so every eviction request is refused"
        if not why and any(budgets[key].status.disruptions_allowed <= 0 for key in spent):
            why = "have a PodDisruptionBudget that allows no eviction now"
        if why:
            staying[running.uid] = why
            continue
        pod = recreated(running)
        # A pod with claims or volumes of its own is of a kind of its own.
        has_own_claims = pod.spec.resource_claims or any(volume.ephemeral is not None for volume in pod.spec.volumes)
        kind: Hashable = pod.uid if has_own_claims else (signature_of(pod), spent)
        hours = round(max(moment - start_time(running), 0) / 3600, 3)
        movable.append(MovablePod(running, pod, spent, kind, lost_gpu_hours(running, moment), hours))
    movable.sort(key=lambda mover: (mover.pod.priority, mover.gpu_hours, mover.pod.key))
    return MovablePods({mover.uid: mover for mover in movable}, staying)


def _why_it_stays(pod: Pod, framework: Framework | None) -> str:
    if pod.is_terminating:
        return "are terminating already"
    if belongs_to_node(pod):
        return "belong to their nodes"
    if not is_recreated(pod):
        return "have no controller that would recreate them"
    if framework is None:
        return "belong to a scheduler that is not known here"
    if framework.group_of(pod) is not None:
        return "belong to a pod group"
    return ""


def _protected(cluster: Cluster, frameworks: Mapping[str, Framework], newcomer: Pod | None) -> frozenset[str]:
    snapshot, protected = cluster.cache.update_snapshot(), set[str]()
    placed = np.flatnonzero(snapshot.pods.node >= 0)
    of_profile: dict[str, Index] = {}
    if newcomer is not None:
        of_profile[newcomer.scheduler_name] = placed
    else:
        names = np.array([snapshot.pod_at(slot).scheduler_name for slot in placed.tolist()], np.object_)
        of_profile.update((name, placed[names == name]) for name in dict.fromkeys(names.tolist()))
    for name, slots in of_profile.items():
        if (framework := frameworks.get(name)) is not None:
            may_go = may_be_victims(snapshot, newcomer or Pod(), slots, rules_of(framework.plugins.post_filter))
            protected.update(snapshot.pod_at(slot).uid for slot in slots[~may_go].tolist())
    return frozenset(protected)
