"""PodGroupTrial: finds whether a pod group fits, and where. Nothing is bound, and nothing stays assumed.

The members are tried one after the other. One that gets a node is assumed there until the end of the trial, so that the
next ones see it as any other pod; Reserve and Permit run for it, too, and are taken back.

Upstream: pkg/scheduler/schedule_one_podgroup.go, podGroupSchedulingAlgorithm, podGroupSchedulingDefaultAlgorithm,
podGroupSchedulingPlacementAlgorithm, podGroupPodSchedulingAlgorithm.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import msgspec
import numpy as np
from msgspec.structs import replace

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.reserve_to_bind import run_permit_plugins
from extender.engine.scheduler.schedule_pod import ScheduleResult, SchedulingAlgorithm
from extender.engine.scheduler.scheduling_cycle import (
    find_node,
    nominations_of,
    reserve_and_permit,
    unreserve_and_forget,
)
from extender.engine.scheduler.world import Failure, World, refused_on_one_node
from extender.engine.snapshot import Snapshot
from extender.values.objects.grouping import GroupKey, PodGroup
from extender.values.objects.pod import Pod

UNSCHEDULABLE: Final = "pod group is unschedulable"
WAITS_FOR_PREEMPTION: Final = "pod group is waiting for preemption to complete"


@final
class MemberResult(msgspec.Struct, frozen=True):
    """The result of the trial for one member. Upstream: algorithmResult."""

    pod: Pod
    failure: Failure | None
    """The reason why it got no node, or must wait for it; None if it fits now."""
    cycle: Cycle | None = None
    result: ScheduleResult | None = None
    """The node that it would get, perhaps after a preemption."""
    permit: fwk.Status | None = None
    """Success or Wait for a member with a node."""

    @property
    def requires_preemption(self) -> bool:
        return self.failure is not None and self.result is not None

    @property
    def has_failed(self) -> bool:
        return self.result is None


@final
class GroupResult(msgspec.Struct, frozen=True):
    """The outcome for the group. Upstream: podGroupAlgorithmResult."""

    status: fwk.Status
    """Success, Unschedulable or Error."""
    members: tuple[MemberResult, ...] = ()
    """In the order in which they were tried; fewer than the group has where the trial ended before."""
    waits_for_preemption: bool = False
    """True if the group fits once victims have gone."""
    placement: str = ""
    """The name of the placement; empty where none was asked for."""
    without_policies: fwk.Candidate | None = None
    """The victims that kube-scheduler would take, if a search for fewer has found others."""
    nearest: "GroupResult | None" = None
    """The result in the placement that takes most members, where none takes enough of them."""

    @property
    def num_placed(self) -> int:
        """The number of members that get a node, perhaps after a preemption."""
        return sum(not member.has_failed for member in self.members)

    @property
    def fits(self) -> bool:
        return self.status.is_success or self.waits_for_preemption


@final
@dataclass(frozen=True, slots=True)
class PodGroupTrial:
    """The trial of one group in one cluster. It may be run again after the cluster has changed."""

    world: World
    """Its cluster may be a fork, in which pods were removed."""
    algorithm: SchedulingAlgorithm
    framework: Framework
    key: GroupKey
    group: PodGroup | None
    """None if it does not exist."""
    pods: Sequence[Pod]
    """The members to be tried, in order."""
    percentage: int = 0
    """See `SchedulingAlgorithm.schedule_pod`."""

    async def run(self, *, post_filters: bool = True) -> GroupResult:
        """Returns the group's result, by the default algorithm or in the best placement.

        Without `post_filters` no member preempts by itself. Raises LongWork after taking everything back.
        """
        if self.framework.feature_gates.enabled("TopologyAwareWorkloadScheduling"):
            return await self._in_placements(post_filters)
        return await self._tried(None, post_filters)

    # The default algorithm.

    async def _tried(self, placement: fwk.GroupPlacement | None, post_filters: bool) -> GroupResult:
        """Tries the members one after the other, on the nodes of the placement, or on all."""
        assumed: dict[str, tuple[Cycle, Pod]] = {}
        scheduled = self._num_scheduled()
        members: list[MemberResult] = []
        status, waits, any_preempts = fwk.unschedulable(UNSCHEDULABLE), False, False
        try:
            for pod in self.pods:
                # Other tasks get a turn, as after each pod that is scheduled by itself. Nothing is open here that a
                # change of the cluster could spoil.
                await asyncio.sleep(0)
                member = await self._try(pod, placement, post_filters, assumed, scheduled)
                members.append(member)
                if member.has_failed and member.failure is not None:
                    if member.failure.status.is_rejected:
                        continue
                    why = f"failed to schedule other pod from a pod group: {member.failure.status.message}"
                    status, waits = fwk.error(why), False
                    break
                any_preempts = any_preempts or member.requires_preemption
                if member.permit is not None and member.permit.is_success:
                    waits = any_preempts
                    status = fwk.unschedulable(UNSCHEDULABLE, WAITS_FOR_PREEMPTION) if waits else fwk.SUCCESS
        finally:
            for cycle, pod in reversed(assumed.values()):
                unreserve_and_forget(self.world, cycle, pod)
        return GroupResult(status, tuple(members), waits)

    async def _try(
        self,
        pod: Pod,
        placement: fwk.GroupPlacement | None,
        post_filters: bool,
        assumed: dict[str, tuple[Cycle, Pod]],
        scheduled: int,
    ) -> MemberResult:
        world, framework = self.world, self.framework
        # Members that are assumed already count as pods on their nodes, and must not count there as nominated pods,
        # too.
        nominations = nominations_of(world, assumed)
        try:
            snapshot = world.cluster.cache.update_snapshot()
        except Exception as exc:
            return MemberResult(pod, Failure(fwk.error(str(exc))))
        cycle = Cycle(framework, snapshot, pod, nominations, observe=world.metrics.plugins.sampled())
        cycle.write(fwk.PODS_TO_ACTIVATE, {})
        cycle.placement = None if placement is None else placement.nodes
        cycle.write(fwk.GROUP_CYCLE, fwk.GroupCycle(self.group, scheduled + len(assumed) + 1, frozenset(assumed)))
        failure: Failure | None = None
        outcome = await find_node(world, self.algorithm, cycle, self.percentage, None, post_filters=post_filters)
        if isinstance(outcome, Failure):
            failure = outcome
            if not outcome.nominate:
                return MemberResult(pod, failure, cycle)
            outcome = ScheduleResult(outcome.nominate, 0, 0)
        placed = world.cluster.assume(pod.uid, outcome.suggested_host)
        if placed is None:
            return MemberResult(
                pod, Failure(fwk.error(f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed")), cycle
            )
        refusal, _ = reserve_and_permit(world, cycle, placed)
        if refusal.is_success or refusal.code is fwk.Code.WAIT:
            assumed[pod.uid] = cycle, placed
            return MemberResult(pod, failure, cycle, outcome, refusal)
        unreserve_and_forget(world, cycle, placed)
        return MemberResult(pod, refused_on_one_node(refusal) if refusal.is_rejected else Failure(refusal), cycle)

    def _num_scheduled(self) -> int:
        cache = self.world.cluster.cache
        return sum(cache.pod(uid) is not None for uid in cache.group_members(self.key))

    def num_needed(self, cycle: Cycle) -> int | None:
        """Returns the number of members that must get a node for Permit to pass them; None if all are too few."""
        scheduled = self._num_scheduled()
        for count in range(1, len(self.pods) + 1):
            cycle.write(fwk.GROUP_CYCLE, fwk.GroupCycle(self.group, scheduled + count))
            status, _ = run_permit_plugins(cycle, self.pods[0], "")
            if status.is_success:
                return count
        return None

    def refusal(self, num_placements: int = 1) -> fwk.Status:
        if not self.framework.feature_gates.enabled("TopologyAwareWorkloadScheduling"):
            return fwk.unschedulable(UNSCHEDULABLE)
        return fwk.unschedulable(
            f"0/{num_placements} placements are available, first placement status: {UNSCHEDULABLE}"
        )

    # Placements.

    async def _in_placements(self, post_filters: bool) -> GroupResult:
        generators = self.framework.plugins.placement_generate
        if self.group is None:
            return GroupResult(fwk.error(f'podgroup.scheduling.k8s.io "{self.key[1]}" not found'))
        try:
            snapshot = self.world.cluster.cache.update_snapshot()
            placements = self._placements(self.group, snapshot) if generators else ()
        except Exception as exc:
            return GroupResult(fwk.error(str(exc)))
        if not placements:
            return GroupResult(fwk.unschedulable("no feasible placements found"))
        results: list[GroupResult] = []
        fitting: list[tuple[fwk.GroupPlacement, GroupResult]] = []
        for placement in placements:
            restriction = placement if self.group.topology_key else None
            result = replace(await self._tried(restriction, post_filters), placement=placement.name)
            if result.status.code is fwk.Code.ERROR:
                return result
            results.append(result)
            if result.fits:
                fitting.append((placement, result))
        if not fitting:
            # Upstream tells of the first placement.
            nearest = max(results, key=lambda result: result.num_placed)
            return replace(results[0], status=self.refusal(len(placements)), nearest=nearest)
        return fitting[0][1] if len(fitting) == 1 else self._best(self.group, fitting)

    def _placements(self, group: PodGroup, snapshot: Snapshot) -> Sequence[fwk.GroupPlacement]:
        cache = self.world.cluster.cache
        scheduled = [pod for uid in cache.group_members(self.key) if (pod := cache.pod(uid)) is not None]
        parent = fwk.GroupPlacement("", snapshot.all_nodes)
        (generator,) = self.framework.plugins.placement_generate
        return generator.generate_placements(group, scheduled, parent, snapshot)

    def _best(self, group: PodGroup, fitting: Sequence[tuple[fwk.GroupPlacement, GroupResult]]) -> GroupResult:
        """Returns the placement with the highest score, at random among equals (findBestPlacement)."""
        try:
            snapshot = self.world.cluster.cache.update_snapshot()
            scheduled, total = self._num_scheduled(), np.zeros(len(fitting), np.int64)
            placed = [
                fwk.PlacedGroup(
                    placement, tuple(member.pod for member in result.members if not member.has_failed), scheduled
                )
                for placement, result in fitting
            ]
            for plugin, weight in self.framework.plugins.placement_score:
                scores = np.array(
                    [plugin.score_placement(group, placed_group, snapshot) for placed_group in placed], np.int64
                )
                total += plugin.normalize_placement_scores(scores) * weight
        except Exception as exc:
            return GroupResult(fwk.error(str(exc)))
        best = np.flatnonzero(total == total.max()).tolist()
        return fitting[best[self.framework.random.randrange(len(best))] if len(best) > 1 else best[0]][1]
