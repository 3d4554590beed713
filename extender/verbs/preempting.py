"""The preempt verb: which victims a preemption really needs, for each candidate node of the caller."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Final, NamedTuple

import numpy as np

from extender.engine import framework as fwk
from extender.engine.preemption import rules_of
from extender.engine.preemption.budgets import lower_priority_pods, violating
from extender.engine.preemption.costs import better_on_each_node
from extender.engine.preemption.dry_run import dry_run, reprieve
from extender.engine.preemption.evaluator import best_of
from extender.engine.runtime.cycle import Cycle
from extender.engine.snapshot import PodChanges, Rows, Snapshot
from extender.engine.snapshot.axes import Index, Mask
from extender.values.objects.pod import Pod
from extender.values.protocol.wire_types import MetaPod, MetaVictims
from extender.verbs.few_others import RowVictims, with_few_others

_UNKNOWN: Final = -1
"""Stands for the slot of a pod that is not known."""


def choose_victims(cycle: Cycle, given: Mapping[str, MetaVictims]) -> dict[str, MetaVictims]:
    """Returns the victims that the preemption needs on each candidate node, of which the caller's victims are given;
    nodes where it does not help are left out. Raises PluginError.

    All Filters of the profile run, by the rules of its preemption. Where the caller's victims suffice, those of them
    that need not go are reprieved. Where they do not suffice, the victims are those with one or two others, or are
    chosen among all pods of lower priority. Where the pod fits as it is, another extender must have refused it: the
    caller's victims stay, and where it named none (kubernetes#135486), the node is passed on without any. A profile
    without a PostFilter plugin is one of plugins besides the caller's: its Filters cannot tell which of the caller's
    victims need not go, so that all of them are kept. A victim that is not known here takes no room here, and is kept:
    the caller has found it in its own snapshot.
    """
    snapshot, pod, rules = cycle.snapshot, cycle.pod, rules_of(cycle.framework.plugins.post_filter)
    if pod.spec.preemption_policy == "Never" or (rules.delay_of is not None and rules.delay_of(pod) > 0):
        return {}
    outcome = cycle.run_pre_filter_plugins()
    if outcome.status.code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return {}
    if outcome.node_names is not None:
        given = {name: each for name, each in given.items() if name in outcome.node_names}
    usable = _usable(snapshot, pod, given, rules)
    nodes, named, named_row = usable.nodes, usable.slots, usable.row
    if not len(nodes):
        return {}

    # 1 where the caller's victims do not suffice, or are protected, all pods of lower priority are possible victims
    lower, lower_row = lower_priority_pods(snapshot, pod, nodes, rules)
    came_free = np.bincount(named_row, minlength=len(nodes)) == 0
    may_go = np.isin(named, lower)
    named, named_row = named[may_go], named_row[may_go]
    suffices = _fits_without(cycle, nodes, named, named_row)
    # A node has victims of one kind: the named ones where they suffice, all of lower priority elsewhere.
    slots = np.r_[named[suffices[named_row]], lower[~suffices[lower_row]]]
    row = np.r_[named_row[suffices[named_row]], lower_row[~suffices[lower_row]]]

    # 2 reprieve victims where the pod fits without them: those that the caller did not name first
    fits = _fits_without(cycle, nodes, slots, row)
    slots, row = slots[fits[row]], row[fits[row]]
    slots, row = _in_order_of_reprieve(snapshot, slots, row, np.isin(slots, named), rules)
    # The caller may have assumed pods that are nominated to a node: none whom it named is spared for their room.
    without = Rows.of(snapshot, nodes).changed(_removed(slots, row)).changed(_nominated(cycle, usable, suffices, given))
    victims_left = ~reprieve(cycle, without, slots, row)
    # Where all could stay, an extender before us wants the caller's to go, for a resource that we cannot know.
    fits_as_is = suffices & (np.bincount(row[victims_left], minlength=len(nodes)) == 0)
    # The caller's come last in the order, so that keeping them changes nothing for the others.
    victims_left |= np.isin(slots, named) & (fits_as_is[row] | (not cycle.framework.plugins.post_filter))

    slots, row = slots[victims_left], row[victims_left]

    # 3 where the caller's victims did not suffice and several have to go, fewer may do
    tried = ~suffices & (np.bincount(row, minlength=len(nodes)) > 1)
    if tried.any():
        place = np.cumsum(tried) - 1  # of the node among those that are tried
        pods = ((named, named_row), (lower, lower_row), (slots, row))
        ours, others, general = (RowVictims(some[tried[of]], place[of[tried[of]]]) for some, of in pods)
        few = with_few_others(cycle, nodes[tried], ours, others, general, rules)
        slots, row = np.r_[slots[~tried[row]], few.slots], np.r_[row[~tried[row]], np.flatnonzero(tried)[few.row]]

    # 4 the remaining victims, by the policies of the rules, and those that nobody knows here
    by_node = _by_node(snapshot, nodes, slots, row, came_free & fits_as_is, rules)
    return _with_unknown(snapshot, usable, _by_policy(cycle, nodes, by_node, rules), given, rules)


def _by_node(
    snapshot: Snapshot, nodes: Index, slots: Index, row: Index, may_be_free: Mask, rules: fwk.PreemptionRules
) -> dict[str, MetaVictims]:
    """Returns the victims of each node, in the order of the rules; without the nodes that have none and need some."""
    order = rules.by_importance(snapshot, slots, row)
    slots, row = slots[order], row[order]
    # By importance first: the pods that come first use a budget up, and those after them violate it.
    violates = violating(snapshot, slots, row, rules)
    order = rules.as_listed(snapshot, slots, row, violates)
    slots, violates = slots[order], violates[order]
    # Row by row; on each the rules' order stays.
    order = np.argsort(row, kind="stable")
    # Then those of the node at position i are victims[ends[i - 1] : ends[i]].
    victims = [MetaPod(snapshot.pod_at(slot).uid) for slot in slots[order].tolist()]
    violations = np.bincount(row, violates, len(nodes)).astype(np.int64).tolist()
    ends = np.bincount(row, minlength=len(nodes)).cumsum().tolist()
    return {
        snapshot.nodes.objects[place].metadata.name: MetaVictims(victims[start:end], violations[at])
        for at, (place, start, end) in enumerate(zip(nodes.tolist(), [0, *ends], ends, strict=False))
        if end > start or may_be_free[at]
    }


def _by_policy(
    cycle: Cycle, nodes: Index, chosen: dict[str, MetaVictims], rules: fwk.PreemptionRules
) -> dict[str, MetaVictims]:
    """Returns the victims after the rules' policies: cheaper ones if known, none where they are too costly."""
    if not rules.also_by and rules.too_costly is None:
        return chosen
    free = {name: each for name, each in chosen.items() if not each.pods}
    candidates = candidates_of(cycle, chosen)
    if rules.also_by:
        for each in (rules, *rules.also_by):
            candidates = better_on_each_node(candidates.joined(dry_run(cycle, cycle.pod, nodes, each).candidates))
    if rules.too_costly is not None and len(candidates):
        refused = np.logical_or.reduce([mask for _, mask in rules.too_costly(candidates)])
        candidates = candidates.take(np.flatnonzero(~refused))
    return free | {
        candidate.node: MetaVictims.of(tuple(victim.uid for victim in candidate.victims), candidate.num_pdb_violations)
        for candidate in candidates.listed()
    }


def _with_unknown(
    snapshot: Snapshot,
    usable: "_Usable",
    chosen: dict[str, MetaVictims],
    given: Mapping[str, MetaVictims],
    rules: fwk.PreemptionRules,
) -> dict[str, MetaVictims]:
    """Returns the victims with those of the caller's that are not known here, each before whom it was named before."""
    if not usable.unknown:
        return chosen
    order = rules.by_importance(snapshot, usable.slots, usable.row)
    named, row = usable.slots[order], usable.row[order]
    violations = np.bincount(row, violating(snapshot, named, row, rules), len(usable.names)).astype(np.int64).tolist()
    merged = dict(chosen)
    for name, counted in zip(usable.names, violations, strict=True):
        unknown = usable.unknown.get(name)
        if unknown is None or name not in chosen:
            continue
        uids = [*chosen[name].uids]
        place = len(uids)
        for uid in reversed(given[name].uids):
            if uid in unknown:
                uids.insert(place, uid)
            elif uid in uids:
                place = uids.index(uid)
        # Only the caller can say whether they violate budgets: what it counted beyond those of the others.
        theirs = min(max(given[name].num_pdb_violations - counted, 0), len(unknown))
        merged[name] = MetaVictims.of(uids, chosen[name].num_pdb_violations + theirs)
    return merged


def without_policies(cycle: Cycle, given: Mapping[str, MetaVictims]) -> fwk.Candidate | None:
    """Returns what the caller would choose of its candidates, if victim policies may change that."""
    rules = rules_of(cycle.framework.plugins.post_filter).without_policies
    return None if rules is None else best_of(_candidates(cycle, given, rules))


def candidates_of(cycle: Cycle, chosen: Mapping[str, MetaVictims]) -> fwk.Candidates:
    """Returns results of `choose_victims` as arrays over the snapshot, without those that are empty or gone."""
    return _candidates(cycle, chosen, rules_of(cycle.framework.plugins.post_filter))


def _candidates(cycle: Cycle, given: Mapping[str, MetaVictims], rules: fwk.PreemptionRules) -> fwk.Candidates:
    usable = _usable(cycle.snapshot, cycle.pod, given, rules)
    violations = np.array([given[name].num_pdb_violations for name in usable.names], np.int64)
    counts = np.bincount(usable.row, minlength=len(usable.names))
    # A node without victims costs nothing, which the criteria cannot compare. The others' are node by node.
    has_victims = counts > 0
    first = np.r_[0, counts[has_victims].cumsum()].astype(np.intp)
    return fwk.Candidates(
        cycle.snapshot, usable.nodes[has_victims], usable.slots, first, violations[has_victims], rules
    )


class _Usable(NamedTuple):
    """The candidates of which the node is known, and no victim is known elsewhere, or not to be of a lower priority."""

    names: Sequence[str]
    """Of B nodes."""
    nodes: Index
    """(B,) their places."""
    slots: Index
    """(V,) their victims, but for the unknown ones."""
    row: Index
    """(V,) the positions of these among the B nodes."""
    unknown: Mapping[str, frozenset[str]]
    """Node -> UIDs of the victims that are not known here."""


def _usable(snapshot: Snapshot, pod: Pod, given: Mapping[str, MetaVictims], rules: fwk.PreemptionRules) -> _Usable:
    pods, index = snapshot.pods, snapshot.nodes.index
    known = [name for name in given if name in index]
    named = [given[name].pods for name in known]
    place = np.array([index[name] for name in known], np.intp)
    row = np.repeat(np.arange(len(known)), [len(each) for each in named])
    slots = np.fromiter(
        map(pods.slots.get, (pod.uid for each in named for pod in each), repeat(_UNKNOWN)), np.intp, len(row)
    )
    is_unknown = slots == _UNKNOWN
    # An unknown slot, -1, indexes the last pod: what is read of that does not matter.
    is_wrong = ~is_unknown & ((pods.node[slots] != place[row]) | (pods.priority[slots] >= pod.priority))
    unknown: defaultdict[str, set[str]] = defaultdict(set)
    if is_unknown.any():
        # Whether a pod that nobody knows here is protected cannot be told, nor what has no UID is a pod.
        is_judged = rules.protects is not None or rules.may_go is not None
        uids = [pod.uid for each in named for pod in each]
        for at in np.flatnonzero(is_unknown).tolist():
            is_wrong[at] = is_judged or not uids[at]
            unknown[known[row[at]]].add(uids[at])
    is_usable = np.bincount(row[is_wrong], minlength=len(known)) == 0
    of_usable = np.flatnonzero(is_usable[row] & ~is_unknown)
    of_usable = of_usable[
        np.sort(np.unique(slots[of_usable], return_index=True)[1])
    ]  # a pod that is named twice counts once
    names = [name for name, is_one in zip(known, is_usable.tolist(), strict=True) if is_one]
    # The position of a usable node among the usable ones is the number of those before it.
    return _Usable(
        names,
        place[is_usable],
        slots[of_usable],
        (is_usable.cumsum() - 1)[row[of_usable]],
        {name: frozenset(uids) for name, uids in unknown.items()},
    )


def _fits_without(cycle: Cycle, nodes: Index, slots: Index, row: Index) -> Mask:
    rows = Rows.of(cycle.snapshot, nodes).changed(_removed(slots, row))
    return cycle.run_filters_with_nominated_pods(rows).ok


def _nominated(cycle: Cycle, usable: "_Usable", chosen: Mask, given: Mapping[str, MetaVictims]) -> PodChanges:
    """Returns a +1 for the pods of lower priority, other than victims, that are nominated to the chosen nodes."""
    added = [
        (row, slot)
        for row, name in enumerate(usable.names if cycle.nominations.by_node else ())
        if chosen[row]
        for slot, other in cycle.nominations.by_node.get(name, ())
        if other.priority < cycle.pod.priority and other.uid not in given[name].uids
    ]
    rows, slots = np.array(added, np.intp).reshape(-1, 2).T
    return PodChanges(rows, slots, np.ones(len(added), np.int64))


def _removed(slots: Index, row: Index) -> PodChanges:
    return PodChanges(row, slots, np.full(len(slots), -1))


def _in_order_of_reprieve(
    snapshot: Snapshot, slots: Index, row: Index, is_named: Mask, rules: fwk.PreemptionRules
) -> tuple[Index, Index]:
    """Returns slots and rows in the order of reprieve, row by row: pods that the caller did not name come before those
    it named, those that violate a budget before others, then by importance.
    """
    order = rules.by_importance(snapshot, slots, row)
    slots, row, is_named = slots[order], row[order], is_named[order]
    # The last key of lexsort comes first; it is stable, so that importance decides what the keys leave open.
    order = np.lexsort((~violating(snapshot, slots, row, rules), is_named, row))
    return slots[order], row[order]
