"""find_victims(): the pods that have to go for a pod group that does not fit. Nothing is evicted.

Everything is tried in a fork of the cluster. Where the members are alike and depend on nothing but their node, the room for them is summed
up over the nodes; else the trial of the group is played again for each unit of victims. Both give the same answer.

Upstream: pkg/scheduler/schedule_one_podgroup.go, runWorkloadAwarePreemption (v1.36.2).
"""

from dataclasses import replace

from extender import framework as fwk
from extender.objects.pod_groups import PodGroup
from extender.preemption.pod_group_room import EqualMembers, Room
from extender.preemption.pod_group_victims import (
    NO_VICTIMS,
    GroupVictims,
    VictimUnits,
    reprieve_one_by_one,
    victim_units,
    why_not_eligible,
    without_protected,
)
from extender.preemption.rules import rules_of
from extender.records.reporter import NO_REPORTER
from extender.runtime.cycle import Cycle
from extender.runtime.memory import signature_of
from extender.runtime.plugin_calls import PluginError
from extender.scheduler.pod_group_trial import PodGroupTrial
from extender.scheduler.scheduling_cycle import nominations_of


async def find_victims(trial: PodGroupTrial, group: PodGroup, *, one_by_one: bool = False) -> GroupVictims:
    """Returns the victims whose eviction makes the group fit, or why there are none.

    Arguments:
        one_by_one: True to try each unit, even if the room can be summed up.
    """
    why_not = why_not_eligible(trial.pods)
    if why_not:
        return GroupVictims(fwk.unschedulable(why_not))
    again = replace(trial, world=replace(trial.world, cluster=trial.world.cluster.fork(), reporter=NO_REPORTER))
    cache = again.world.cluster.cache
    # Pods that are placed in hypotheses get their slots before the snapshot is taken.
    nominations, slot = nominations_of(again.world), cache.nominate(trial.pods[0])
    snapshot = cache.update_snapshot()
    units = victim_units(snapshot, group.priority, cache.group_members, cache.members.uids())
    units = without_protected(units, trial.pods[0], rules_of(trial.framework.plugins.post_filter))
    if not len(units):
        return GroupVictims(fwk.unresolvable(NO_VICTIMS))
    equal = None if one_by_one else _equal_members(again, Cycle(trial.framework, snapshot, trial.pods[0], nominations), slot)
    if equal is not None:
        try:
            return await _by_room(again, equal, units)
        except PluginError:
            pass  # the trial says whose error it is

    async def fits() -> fwk.Status:
        return (await again.run(post_filters=False)).status

    return await reprieve_one_by_one(units, cache, fits)


async def _by_room(trial: PodGroupTrial, equal: EqualMembers, units: VictimUnits) -> GroupVictims:
    state = equal.state
    nodes = state.within if isinstance(state, Cycle) and state.within is not None else units.snapshot.all_nodes
    room = Room(equal, units, nodes, trial.yield_turn)
    await room.clear()
    if room.spare < 0:
        return GroupVictims(trial.refusal())
    return GroupVictims(fwk.SUCCESS, units.candidate(await room.reprieve()))


def _equal_members(trial: PodGroupTrial, cycle: Cycle, slot: int) -> EqualMembers | None:
    """Returns the members if they are alike, and if whether one fits follows from its node and from how many others are there.

    Arguments:
        cycle: that of the first of them, in the cluster with all victims.
        slot: the slot of the first of them.
    """
    world, framework, first = trial.world, trial.framework, trial.pods[0]
    own = {pod.uid for pod in trial.pods}
    signature = signature_of(first)
    is_nominated = any(nominee.uid in own for nominees in world.queue.nominated_pods().values() for nominee in nominees)
    if world.extenders or is_nominated or any(signature_of(pod) != signature for pod in trial.pods):
        return None
    if not all(plugin.follows_group_cycle for plugin in framework.plugins.permit):
        return None
    cycle.pod_signature = signature
    if not cycle.run_pre_filter_plugins().status.is_success or cycle.depends_on_devices:
        return None
    skipped = cycle.skip_filter_plugins
    if framework.filter_plan(skipped).others or any(plugin.name not in skipped for plugin in framework.plugins.reserve):
        return None
    needed = trial.num_needed(cycle)
    return None if needed is None else EqualMembers(cycle, slot, len(trial.pods), needed)
