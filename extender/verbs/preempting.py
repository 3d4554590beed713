"""The preempt verb: which victims a preemption really needs, for each candidate node of the caller."""

from collections.abc import Mapping

import numpy as np

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.preemption import rules_of
from extender.preemption.budgets import lower_priority_pods, violating
from extender.preemption.costs import better_on_each_node
from extender.preemption.dry_run import dry_run, reprieve
from extender.preemption.evaluator import best_of
from extender.protocol.wire_types import MetaVictims
from extender.runtime.cycle import Cycle
from extender.snapshot import PodChanges, Rows, Snapshot
from extender.snapshot.axes import Index, Mask


def choose_victims(cycle: Cycle, given: Mapping[str, MetaVictims]) -> dict[str, MetaVictims]:
    """Returns the victims that the preemption needs, for each candidate node; nodes where it does not help are left out.

    All Filters of the profile run, by the rules of its preemption. Where the caller's victims suffice, those of them that need not go are
    reprieved. Where they do not suffice, or none were named (upstream sends such candidates for nodes that an extender refused), the
    victims are chosen among all pods of lower priority. A profile without a PostFilter plugin is one of plugins besides the caller's: its
    Filters cannot tell which of the caller's victims need not go, so that all of them are kept.

    Arguments:
        given: node name -> the caller's victims there.

    Raises:
        PluginError: a plugin failed; the message names it.
    """
    snapshot, pod, rules = cycle.snapshot, cycle.pod, rules_of(cycle.framework.plugins.post_filter)
    if pod.spec.preemption_policy == "Never" or (rules.delay_of is not None and rules.delay_of(pod) > 0):
        return {}
    outcome = cycle.run_pre_filter_plugins()
    if outcome.status.code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return {}
    usable = [
        (place, slots)
        for name, victims in given.items()
        if (outcome.node_names is None or name in outcome.node_names) and (found := _usable(snapshot, pod, name, victims)) is not None
        for place, slots in (found,)
    ]
    if not usable:
        return {}
    nodes = np.array([place for place, _ in usable], np.intp)
    named = np.concatenate([slots for _, slots in usable])
    named_row = np.repeat(np.arange(len(usable)), [len(slots) for _, slots in usable])

    # 1 where the caller's victims do not suffice, or are protected, all pods of lower priority are possible victims
    lower, lower_row = lower_priority_pods(snapshot, pod, nodes, rules)
    may_go = np.isin(named, lower)
    named, named_row = named[may_go], named_row[may_go]
    suffices = _fits_without(cycle, nodes, named, named_row) & (np.bincount(named_row, minlength=len(nodes)) > 0)
    slots = np.r_[named[suffices[named_row]], lower[~suffices[lower_row]]]
    row = np.r_[named_row[suffices[named_row]], lower_row[~suffices[lower_row]]]

    # 2 reprieve victims where the pod fits without them: those that the caller did not name first
    fits = _fits_without(cycle, nodes, slots, row)
    slots, row = slots[fits[row]], row[fits[row]]
    slots, row = _in_order_of_reprieve(snapshot, slots, row, np.isin(slots, named), rules)
    without = Rows.of(snapshot, nodes).changed(_removed(slots, row))
    # The caller's come last in the order, so that keeping them changes nothing for the others.
    kept = np.isin(slots, named) & (not cycle.framework.plugins.post_filter)
    victims_left = ~reprieve(cycle, without, slots, row) | kept

    # 3 the remaining victims, by the policies of the rules
    return _by_policy(cycle, nodes, _by_node(snapshot, nodes, slots[victims_left], row[victims_left], rules), rules)


def _by_node(snapshot: Snapshot, nodes: Index, slots: Index, row: Index, rules: fwk.PreemptionRules) -> dict[str, MetaVictims]:
    """Returns the victims of each node, in the order of the rules."""
    order = rules.by_importance(snapshot, slots, row)
    slots, row = slots[order], row[order]
    violates = violating(snapshot, slots, row, rules)
    order = rules.as_listed(snapshot, slots, row, violates)
    slots, violates = slots[order], violates[order]
    chosen: dict[str, MetaVictims] = {}
    for at in np.unique(row).tolist():
        on_node = row == at
        uids = (snapshot.pod_at(slot).uid for slot in slots[on_node].tolist())
        chosen[snapshot.nodes.objects[int(nodes[at])].name] = MetaVictims.of(tuple(uids), int(violates[on_node].sum()))
    return chosen


def _by_policy(cycle: Cycle, nodes: Index, chosen: dict[str, MetaVictims], rules: fwk.PreemptionRules) -> dict[str, MetaVictims]:
    """Returns the victims after the policies of the rules: cheaper ones where the rules know any, and none where they are too costly."""
    if not rules.also_by and rules.too_costly is None:
        return chosen
    candidates = candidates_of(cycle, chosen)
    if rules.also_by:
        for each in (rules, *rules.also_by):
            candidates = better_on_each_node(candidates.joined(dry_run(cycle, cycle.pod, nodes, each).candidates))
    if rules.too_costly is not None and len(candidates):
        refused = np.logical_or.reduce([mask for _, mask in rules.too_costly(candidates)])
        candidates = candidates.take(np.flatnonzero(~refused))
    return {
        candidate.node: MetaVictims.of(tuple(victim.uid for victim in candidate.victims), candidate.num_pdb_violations)
        for candidate in candidates.listed()
    }


def without_policies(cycle: Cycle, given: Mapping[str, MetaVictims]) -> fwk.Candidate | None:
    """Returns what the caller would choose of its own candidates, if the profile has victim policies that may change that."""
    rules = rules_of(cycle.framework.plugins.post_filter).without_policies
    snapshot = cycle.snapshot
    if rules is None:
        return None
    usable = [
        fwk.Candidate(name, tuple(snapshot.pod_at(slot) for slot in found[1].tolist()), victims.num_pdb_violations)
        for name, victims in given.items()
        if victims.uids and (found := _usable(snapshot, cycle.pod, name, victims)) is not None
    ]
    return best_of(fwk.Candidates.of(snapshot, usable, rules))


def candidates_of(cycle: Cycle, chosen: Mapping[str, MetaVictims]) -> fwk.Candidates:
    """Returns the result of `choose_victims` as arrays over the cycle's snapshot."""
    snapshot = cycle.snapshot
    pods = snapshot.pods.slots
    return fwk.Candidates.of(
        snapshot,
        [
            fwk.Candidate(name, tuple(snapshot.pod_at(pods[uid]) for uid in victims.uids), victims.num_pdb_violations)
            for name, victims in chosen.items()
        ],
        rules_of(cycle.framework.plugins.post_filter),
    )


def _usable(snapshot: Snapshot, pod: Pod, name: str, victims: MetaVictims) -> tuple[int, Index] | None:
    """Returns the place and the victims' slots of a candidate; None unless the node and its victims are known and all have a lower
    priority.
    """
    place = snapshot.nodes.index.get(name)
    slots = [snapshot.pods.slots.get(uid, -1) for uid in dict.fromkeys(victims.uids)]
    if place is None or -1 in slots:
        return None
    named = np.array(slots, np.intp)
    if (snapshot.pods.node[named] != place).any() or (snapshot.pods.priority[named] >= pod.priority).any():
        return None
    return place, named


def _fits_without(cycle: Cycle, nodes: Index, slots: Index, row: Index) -> Mask:
    """Returns (B,) whether the pod fits each node without these pods."""
    rows = Rows.of(cycle.snapshot, nodes).changed(_removed(slots, row))
    return cycle.run_filters_with_nominated_pods(rows).ok


def _removed(slots: Index, row: Index) -> PodChanges:
    return PodChanges(row, slots, np.full(len(slots), -1))


def _in_order_of_reprieve(snapshot: Snapshot, slots: Index, row: Index, is_named: Mask, rules: fwk.PreemptionRules) -> tuple[Index, Index]:
    """Returns slots and rows in the order of reprieve, row by row.

    Pods that the caller did not name come before those it named, those that violate a budget before others, then by importance.
    """
    order = rules.by_importance(snapshot, slots, row)
    slots, row, is_named = slots[order], row[order], is_named[order]
    order = np.lexsort((~violating(snapshot, slots, row, rules), is_named, row))
    return slots[order], row[order]
