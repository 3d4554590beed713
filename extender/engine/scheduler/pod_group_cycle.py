"""The cycle of a pod group: its waiting members are popped and tried together, and all of them or none are bound.

Nothing of a group that does not fit can be bound: the trial returns values, and only a group that fits is assumed for
good.

Upstream: pkg/scheduler/schedule_one_podgroup.go, scheduleOnePodGroup, podGroupInfoForPod, podGroupCycle,
submitPodGroupAlgorithmResult.
"""

from collections.abc import Sequence
from time import perf_counter
from typing import Final, final

import msgspec
from msgspec.structs import replace

from extender.engine import framework as fwk
from extender.engine.preemption.minimal_victims import why_ignored
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import with_long_work
from extender.engine.scheduler.executor import DEFAULT_PREEMPTION
from extender.engine.scheduler.pod_group_preemption import find_victims
from extender.engine.scheduler.pod_group_trial import UNSCHEDULABLE, GroupResult, MemberResult, PodGroupTrial
from extender.engine.scheduler.schedule_pod import ScheduleResult, SchedulingAlgorithm
from extender.engine.scheduler.scheduling_cycle import assume_and_permit
from extender.engine.scheduler.world import AssumedPod, Failure, World
from extender.values import limits
from extender.values.golang.quoting import quoted
from extender.values.klog.logger import Logger
from extender.values.objects.grouping import POD_GROUP_SCHEDULED, GroupKey, PodGroup
from extender.values.objects.kinds import POD_GROUPS
from extender.values.objects.pod import Pod
from extender.values.objects.storage import ObjectReference

NO_CONSTRAINTS: Final = "workload aware preemption is not supported for pod groups with scheduling constraints"
NO_PLUGIN: Final = "default preemption plugin is not registered, workload aware preemption is disabled"
_LOG: Final = Logger(__name__)


@final
class GroupDecision(msgspec.Struct, frozen=True):
    """The decision about a group: its result, and the consequence for each member."""

    result: GroupResult
    members: Sequence[tuple[QueuedPodInfo, AssumedPod | Failure]]
    group: PodGroup | None = None
    """None if it does not exist."""
    victims: fwk.Candidate | None = None
    """The pods to evict for the group as a whole."""


def pop_members(world: World, first: QueuedPodInfo, key: GroupKey) -> list[QueuedPodInfo]:
    """Pops the other waiting members of a popped pod's group; returns all in order (podGroupInfoForPod)."""
    cache = world.cluster.cache
    infos = [first]
    for uid, pod in [*cache.group_members(key).items()]:
        if uid != first.pod.uid and cache.pod(uid) is None:
            info = world.queue.pop_specific(pod)
            if info is not None:
                infos.append(info)
    for info in infos:
        info.is_member = True
    return sorted(infos, key=lambda info: (-info.pod.priority, info.initial_attempt_timestamp or 0.0))


def why_not_together(pods: Sequence[Pod]) -> str:
    """Returns why the members cannot be one group; empty if they can. Upstream: frameworkForPodGroup."""
    first = pods[0].spec.scheduler_name
    other = next((pod.spec.scheduler_name for pod in pods if pod.spec.scheduler_name != first), None)
    if other is None:
        return ""
    return (
        f"all pods in a single pod group should have the same .spec.schedulerName set, got: {quoted(other)} and "
        f"{quoted(first)}"
    )


async def pod_group_cycle(
    world: World,
    algorithm: SchedulingAlgorithm,
    framework: Framework,
    key: GroupKey,
    infos: Sequence[QueuedPodInfo],
    percentage: int,
) -> GroupDecision:
    """Decides about the popped members. If the group fits, they are assumed, reserved and permitted."""
    group = world.cluster.cache.objects.pod_groups.get(key)
    trial = PodGroupTrial(world, algorithm, framework, key, group, [info.pod for info in infos], percentage)
    result, victims = await result_of(trial)
    return GroupDecision(
        result, [(info, _outcome(world, result, place)) for place, info in enumerate(infos)], group, victims
    )


async def result_of(trial: PodGroupTrial) -> tuple[GroupResult, fwk.Candidate | None]:
    """Returns the group's result, and the pods that have to go for it as a whole. The cluster does not change."""
    began = perf_counter()
    result = await with_long_work(trial.run)
    trial.world.metrics.groups.algorithm.observe(perf_counter() - began)
    if (
        trial.framework.feature_gates.enabled("WorkloadAwarePreemption")
        and result.status.code is fwk.Code.UNSCHEDULABLE
    ):
        return await _with_preemption(trial, result, trial.group)
    return result, None


async def _with_preemption(
    trial: PodGroupTrial, result: GroupResult, group: PodGroup | None
) -> tuple[GroupResult, fwk.Candidate | None]:
    """Returns the result after a search for victims, and the victims (runWorkloadAwarePreemption)."""
    if group is None:
        why = f"failed to get pod group object: podgroup {quoted(trial.key[1])} not found"
        return replace(result, status=fwk.error(why)), None
    reasons, framework = result.status.reasons, trial.framework
    if not any(plugin.name == DEFAULT_PREEMPTION for plugin in framework.plugins.post_filter):
        return replace(result, status=fwk.unschedulable(*reasons, NO_PLUGIN)), None
    if group.topology_key:
        return replace(result, status=fwk.unschedulable(*reasons, NO_CONSTRAINTS)), None
    victims = await find_victims(trial, group)
    if victims.status.is_success:
        status = fwk.unschedulable(*reasons, victims.saving) if victims.saving else result.status
        result = replace(result, status=status, waits_for_preemption=True, without_policies=victims.instead_of)
        return result, victims.candidate
    if victims.status.code is fwk.Code.ERROR:
        return replace(result, status=victims.status), None
    return replace(result, status=fwk.unschedulable(*reasons, *victims.status.reasons)), None


def _outcome(world: World, result: GroupResult, place: int) -> AssumedPod | Failure:
    """Assumes the member at this place, or returns its failure (submitPodGroupAlgorithmResult)."""
    decision = decided(result, place)
    if isinstance(decision, Failure):
        return decision
    cycle, chosen = decision
    cycle.write(fwk.GROUP_CYCLE, None)
    return assume_and_permit(world, cycle, chosen)


def decided(result: GroupResult, place: int) -> tuple[Cycle, ScheduleResult] | Failure:
    """Returns the cycle and the node of the member at this place if it may be assumed now, or its failure."""
    member = result.members[place] if place < len(result.members) else None
    if result.status.code is fwk.Code.ERROR:
        failure = None if member is None else member.failure
        return Failure(
            failure.status if failure is not None and failure.status.code is fwk.Code.ERROR else result.status
        )
    if member is None:
        return Failure(result.status, nominate=None)
    if member.failure is None and member.cycle is not None and member.result is not None:
        if result.status.is_success:
            return member.cycle, member.result
        if result.waits_for_preemption:
            return Failure(result.status, nominate=member.result.suggested_host)
        return _refused_with_its_group(member)
    if member.requires_preemption and not result.waits_for_preemption:
        return _refused_with_its_group(member)
    return member.failure or Failure(result.status)


def _refused_with_its_group(member: MemberResult) -> Failure:
    permit = () if member.permit is None else member.permit.reasons
    return Failure(fwk.unschedulable(UNSCHEDULABLE, *permit))


@final
class IgnoredAnnotations:
    """Reports ignored annotations of pod groups by event and log. State: the last report about each."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def tell(self, framework: Framework, world: World, group: PodGroup) -> None:
        """Reports the group's ignored annotation, unless the same was reported before."""
        why, previous = why_ignored(group), self._told.pop(group.uid, "")
        if not why:
            return
        self._told[group.uid] = why
        if len(self._told) > limits.IGNORED_ANNOTATIONS:
            del self._told[next(iter(self._told))]
        if why != previous:
            _LOG.info(0, "Ignoring an annotation of a pod group", podGroup=group.key, reason=why)
            # With its version, so that an event about another value is another event, and no repetition.
            identity = group.namespace, group.name, group.uid, group.metadata.resource_version
            regarding = ObjectReference(POD_GROUPS.api_version, POD_GROUPS.name, *identity)
            world.dispatcher.submit(
                fwk.RecordEvent(regarding, "Warning", "InvalidAnnotation", "Scheduling", why, framework.profile_name)
            )


def group_condition(world: World, key: GroupKey, status: fwk.Status) -> fwk.PatchPodGroupStatus | None:
    """Returns the group's condition as a patch (updatePodGroupCondition); None if it is gone, or was scheduled."""
    group = world.cluster.cache.objects.pod_groups.get(key)
    if group is None:
        return None
    word, reason = "False", "Unschedulable" if status.is_rejected else "SchedulerError"
    if status.is_success:
        word, reason = "True", "Scheduled"
    condition = fwk.GroupCondition(POD_GROUP_SCHEDULED, word, reason, status.message, group.metadata.generation)
    patch = fwk.PatchPodGroupStatus.of(group, condition)
    if patch.is_no_op or (patch.known is not None and patch.known.status == "True" and word != "True"):
        return None
    return patch
