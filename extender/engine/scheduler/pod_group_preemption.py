"""find_victims(): the pods that have to go for a pod group that does not fit. Nothing is evicted.

Everything is tried in a fork of the cluster. If the members are interchangeable, the room for them is summed up over
the nodes; else the trial of the group is repeated for each unit of victims. Both give the same answer. For groups that
ask for the fewest victims a second search follows.

Upstream: pkg/scheduler/schedule_one_podgroup.go, runWorkloadAwarePreemption.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.cache.cache import Cache
from extender.engine.plugins.pod_groups import GangScheduling
from extender.engine.preemption.minimal_victims import (
    FewestVictims,
    UnitCosts,
    fewest_by_trials,
    saving,
    seconds_to_search,
)
from extender.engine.preemption.pod_group_room import EqualMembers, Room
from extender.engine.preemption.pod_group_victims import (
    CLUSTER,
    NO_VICTIMS,
    GroupVictims,
    VictimUnits,
    reprieve_one_by_one,
    victim_units,
    violates_budgets,
    why_not_eligible,
    without_protected,
)
from extender.engine.preemption.rules import rules_of
from extender.engine.reporter import NO_REPORTER
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.memory import signature_of
from extender.engine.runtime.plugin_calls import PluginError, with_long_work
from extender.engine.scheduler.pod_group_trial import PodGroupTrial
from extender.engine.scheduler.scheduling_cycle import nominations_of
from extender.engine.snapshot.axes import Index
from extender.values.objects.grouping import PodGroup


async def find_victims(
    trial: PodGroupTrial, group: PodGroup, *, one_by_one: bool = False, clock: Callable[[], float] = perf_counter
) -> GroupVictims:
    """Returns the victims whose eviction makes the group fit, or why there are none.

    With `one_by_one` each unit is tried, even if the room can be summed up; the clock limits a search for fewer.
    """
    why_not = why_not_eligible(trial.pods)
    if why_not:
        return GroupVictims(fwk.unschedulable(why_not))
    search = await _Search.of(trial, group, one_by_one=one_by_one)
    if not len(search.units):
        return GroupVictims(fwk.unresolvable(NO_VICTIMS))
    victims, seconds = await search.as_upstream(), seconds_to_search(group)
    if seconds and victims.candidate is not None:
        ends = clock() + seconds
        search = await _Search.of(trial, group, one_by_one=one_by_one)
        return await search.with_fewest(victims, victims.candidate, lambda: clock() >= ends)
    return victims


@final
class _Search(msgspec.Struct, frozen=True):
    """A fork of the cluster, in which victims are sought once."""

    trial: PodGroupTrial
    units: VictimUnits
    equal: EqualMembers | None
    """None if each hypothesis needs a trial."""

    @staticmethod
    async def of(trial: PodGroupTrial, group: PodGroup, *, one_by_one: bool) -> "_Search":
        fork = replace(trial, world=replace(trial.world, cluster=trial.world.cluster.fork(), reporter=NO_REPORTER))
        cache = fork.world.cluster.cache
        # Pods that are placed in hypotheses get their slots before the snapshot is taken.
        nominations, slot = nominations_of(fork.world), cache.nominate(trial.pods[0])
        snapshot = cache.update_snapshot()
        units = victim_units(snapshot, group.priority, cache.group_members, cache.members.uids())
        violates = violates_budgets(units)
        units = without_protected(units, violates, trial.pods[0], rules_of(trial.framework.plugins.post_filter))
        equal = None
        if len(units) and not one_by_one:
            equal = await with_long_work(
                lambda: _equal_members(fork, Cycle(trial.framework, snapshot, trial.pods[0], nominations), slot)
            )
        return _Search(fork, units, equal)

    @property
    def cache(self) -> Cache:
        return self.trial.world.cluster.cache

    async def fits(self) -> fwk.Status:
        return (await with_long_work(partial(self.trial.run, post_filters=False))).status

    def nodes(self, members: EqualMembers) -> Index:
        """Returns the places of the nodes that the members may get."""
        state = members.state
        return state.within if isinstance(state, Cycle) and state.within is not None else self.units.snapshot.all_nodes

    async def as_upstream(self) -> GroupVictims:
        """Returns the victims that kube-scheduler would take. The fork cannot be used again."""
        if self.equal is not None:
            try:
                room = Room(self.equal, self.units, self.nodes(self.equal))
                room.clear()
                if room.spare < 0:
                    return GroupVictims(self.trial.refusal())
                return GroupVictims(fwk.SUCCESS, self.units.candidate(room.reprieve()))
            except PluginError:
                pass  # the trial says whose error it is
        return await reprieve_one_by_one(self.units, self.cache, self.fits)

    async def with_fewest(
        self, victims: GroupVictims, upstream: fwk.Candidate, is_over: Callable[[], bool]
    ) -> GroupVictims:
        """Returns the fewest victims found in time, or else the given ones. The fork cannot be used again."""
        units, slots = self.units, self.units.snapshot.pods.slots
        chosen = np.isin(units.slots[units.first[:-1]], [slots[pod.uid] for pod in upstream.victims])
        costs = UnitCosts.of(units, violates_budgets(units), chosen)
        if costs is None:
            return victims
        if self.equal is None:
            # Read now: their slots are used again once the cluster changes.
            pods = [units.pods_of(unit) for unit in range(len(units))]
            evicted = await fewest_by_trials(pods, costs, self.cache, self.fits, is_over)
            going = [] if evicted is None else np.flatnonzero(evicted).tolist()
            in_order = sorted(going, key=lambda unit: int(units.importance[unit]))
            fewest = fwk.Candidate(CLUSTER, tuple(pod for unit in in_order for pod in pods[unit]), 0)
        else:
            try:
                evicted = FewestVictims(self.equal, units, costs, self.nodes(self.equal), is_over).search()
            except PluginError:
                return victims
            fewest = units.candidate(evicted) if evicted is not None else upstream
        if evicted is None:
            return victims
        return msgspec.structs.replace(
            victims, candidate=fewest, instead_of=upstream, saving=saving(units, evicted, chosen)
        )


async def _equal_members(trial: PodGroupTrial, cycle: Cycle, slot: int) -> EqualMembers | None:
    """Returns the members if they are interchangeable.

    The cycle and the slot are those of the first of them, in the cluster with all victims.
    """
    world, framework, first = trial.world, trial.framework, trial.pods[0]
    uids = {pod.uid for pod in trial.pods}
    signature = signature_of(first)
    is_nominated = any(
        nominee.uid in uids for nominees in world.queue.nominated_pods().values() for nominee in nominees
    )
    if world.extenders or is_nominated or any(signature_of(pod) != signature for pod in trial.pods):
        return None
    # Of GangScheduling it is known that its answer follows from the group alone, and stays Success once it is.
    if not all(isinstance(plugin, GangScheduling) for plugin in framework.plugins.permit):
        return None
    if not cycle.run_pre_filter_plugins().status.is_success or cycle.depends_on_devices:
        return None
    skipped = cycle.skip_filter_plugins
    if framework.filter_plan(skipped).of_cluster or any(
        plugin.name not in skipped for plugin in framework.plugins.reserve
    ):
        return None
    needed = trial.num_needed(cycle)
    return None if needed is None else EqualMembers(cycle, slot, len(trial.pods), needed)
