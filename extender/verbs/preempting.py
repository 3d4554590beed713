"""The preempt verb: chooses the victims that a preemption really needs, for each candidate node of the caller."""

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
from extender.values.protocol.wire_types import MetaVictims
from extender.verbs.few_others import RowVictims, with_few_others

_UNKNOWN: Final = -1
"""The slot of an unknown pod."""


def choose_victims(cycle: Cycle, caller_victims: Mapping[str, MetaVictims]) -> dict[str, MetaVictims]:
    """Returns the victims that the preemption needs on each candidate node; leaves out nodes where it does not help.

    | on a node where | the victims are |
    |---|---|
    | the caller's victims suffice | those of them that have to go |
    | they do not suffice | these with one or two others, or a choice among all pods of lower priority |
    | the pod fits as it is | the caller's, perhaps none: another extender has refused it (kubernetes#135486) |
    | the profile has no PostFilter plugin | all of the caller's: its Filters cannot tell which need not go |

    All Filters of the profile run, by the rules of its preemption. A victim that is unknown here takes no room, and is
    kept: the caller has found it in its own snapshot. Raises PluginError.
    """
    snapshot, pod, rules = cycle.snapshot, cycle.pod, rules_of(cycle.framework.plugins.post_filter)
    if pod.spec.preemption_policy == "Never" or (rules.delay_of is not None and rules.delay_of(pod) > 0):
        return {}
    outcome = cycle.run_pre_filter_plugins()
    if outcome.status.code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return {}
    if outcome.node_names is not None:
        caller_victims = {
            name: meta_victims for name, meta_victims in caller_victims.items() if name in outcome.node_names
        }
    usable = _usable(snapshot, pod, caller_victims, rules)
    nodes = usable.nodes
    if not len(nodes):
        return {}

    # 1 where the caller's victims do not suffice, or are protected, all pods of lower priority are possible victims
    lower = RowVictims(*lower_priority_pods(snapshot, pod, nodes, rules))
    came_free = np.bincount(usable.victims.row, minlength=len(nodes)) == 0
    named_victims = usable.victims.where(np.isin(usable.victims.slots, lower.slots))
    suffices = _fits_without(cycle, nodes, named_victims)
    # A node has victims of one kind: the named ones where they suffice, all of lower priority elsewhere.
    victims = named_victims.where(suffices[named_victims.row]).joined(lower.where(~suffices[lower.row]))

    # 2 reprieve victims where the pod fits without them: those that the caller did not name first
    fits = _fits_without(cycle, nodes, victims)
    victims = victims.where(fits[victims.row]).in_order_of_reprieve(snapshot, named_victims.slots, rules)
    # The caller may have assumed pods that are nominated to a node: none whom it named is spared for their room.
    rows_without = (
        Rows.of(snapshot, nodes).changed(victims.removed).changed(_nominated(cycle, usable, suffices, caller_victims))
    )
    must_go = ~reprieve(cycle, rows_without, *victims)
    # Where all could stay, an extender before us wants the caller's to go, for a resource that we cannot know.
    fits_as_is = suffices & (np.bincount(victims.row[must_go], minlength=len(nodes)) == 0)
    # The caller's come last in the order, so that keeping them changes nothing for the others.
    must_go |= np.isin(victims.slots, named_victims.slots) & (
        fits_as_is[victims.row] | (not cycle.framework.plugins.post_filter)
    )
    victims = victims.where(must_go)

    # 3 where the caller's victims did not suffice and several have to go, fewer may do
    is_retried = ~suffices & (np.bincount(victims.row, minlength=len(nodes)) > 1)
    if is_retried.any():
        retried_rows = np.flatnonzero(is_retried)
        ours, lower_victims, general = (
            node_victims.of_rows(retried_rows, len(nodes)) for node_victims in (named_victims, lower, victims)
        )
        few = with_few_others(cycle, nodes[retried_rows], ours, lower_victims, general, rules)
        victims = victims.where(~is_retried[victims.row]).joined(RowVictims(few.slots, retried_rows[few.row]))

    # 4 the remaining victims, by the policies of the rules, and those that nobody knows here
    chosen = _by_policy(cycle, nodes, victims, came_free & fits_as_is, rules)
    return _with_unknown(snapshot, usable, chosen, caller_victims, rules)


def _by_policy(
    cycle: Cycle, nodes: Index, victims: RowVictims, may_be_free: Mask, rules: fwk.PreemptionRules
) -> dict[str, MetaVictims]:
    """Returns the victims of each node, or cheaper ones by the rules' policies; leaves out nodes where they are too
    costly, or where there are none though some are needed.
    """
    snapshot = cycle.snapshot
    candidates = victims.candidates(snapshot, nodes, rules)
    for policy_rules in (rules, *rules.also_by) if rules.also_by else ():
        candidates = better_on_each_node(candidates.joined(dry_run(cycle, cycle.pod, nodes, policy_rules).candidates))
    if rules.too_costly is not None and len(candidates):
        refused = np.logical_or.reduce([mask for _, mask in rules.too_costly(candidates)])
        candidates = candidates.take(np.flatnonzero(~refused))
    is_free = may_be_free & (np.bincount(victims.row, minlength=len(nodes)) == 0)
    return {snapshot.nodes.objects[place].name: MetaVictims() for place in nodes[is_free].tolist()} | {
        candidate.node: MetaVictims.of((victim.uid for victim in candidate.victims), candidate.num_pdb_violations)
        for candidate in candidates.listed()
    }


def _with_unknown(
    snapshot: Snapshot,
    usable: "_Usable",
    chosen: dict[str, MetaVictims],
    caller_victims: Mapping[str, MetaVictims],
    rules: fwk.PreemptionRules,
) -> dict[str, MetaVictims]:
    """Returns the victims with the caller's unknown ones, each before the one that followed it in the caller's list."""
    if not usable.unknown:
        return chosen
    named_victims = usable.victims.by_importance(snapshot, rules)
    violations = np.bincount(
        named_victims.row[violating(snapshot, *named_victims, rules)], minlength=len(usable.names)
    ).tolist()
    merged = dict(chosen)
    for name, num_violations in zip(usable.names, violations, strict=True):
        unknown = usable.unknown.get(name)
        if unknown is None or name not in chosen:
            continue
        uids = [*chosen[name].uids]
        place = len(uids)
        for uid in reversed(caller_victims[name].uids):
            if uid in unknown:
                uids.insert(place, uid)
            elif uid in uids:
                place = uids.index(uid)
        # Only the caller can say whether they violate budgets: what it counted beyond those of the others.
        theirs = min(max(caller_victims[name].num_pdb_violations - num_violations, 0), len(unknown))
        merged[name] = MetaVictims.of(uids, chosen[name].num_pdb_violations + theirs)
    return merged


def without_policies(cycle: Cycle, caller_victims: Mapping[str, MetaVictims]) -> fwk.Candidate | None:
    """Returns the caller's own choice among its candidates, if victim policies may change it."""
    rules = rules_of(cycle.framework.plugins.post_filter).without_policies
    return None if rules is None else best_of(_candidates(cycle, caller_victims, rules))


def candidates_of(cycle: Cycle, chosen: Mapping[str, MetaVictims]) -> fwk.Candidates:
    """Returns results of `choose_victims` as arrays over the snapshot, without those that are empty or gone."""
    return _candidates(cycle, chosen, rules_of(cycle.framework.plugins.post_filter))


def _candidates(cycle: Cycle, caller_victims: Mapping[str, MetaVictims], rules: fwk.PreemptionRules) -> fwk.Candidates:
    usable = _usable(cycle.snapshot, cycle.pod, caller_victims, rules)
    violations = np.array([caller_victims[name].num_pdb_violations for name in usable.names], np.int64)
    counts = np.bincount(usable.victims.row, minlength=len(usable.names))
    # A node without victims costs nothing, which the criteria cannot compare. The others' are node by node.
    has_victims = counts > 0
    first = np.r_[0, counts[has_victims].cumsum()].astype(np.intp)
    return fwk.Candidates(
        cycle.snapshot, usable.nodes[has_victims], usable.victims.slots, first, violations[has_victims], rules
    )


class _Usable(NamedTuple):
    """The candidates whose node is known, and none of whose victims is elsewhere or not of a lower priority."""

    names: Sequence[str]
    """The names of B nodes."""
    nodes: Index
    """(B,) their places."""
    victims: RowVictims
    """The victims on them that are known here."""
    unknown: Mapping[str, frozenset[str]]
    """Node -> UIDs of the unknown victims."""


def _usable(
    snapshot: Snapshot, pod: Pod, caller_victims: Mapping[str, MetaVictims], rules: fwk.PreemptionRules
) -> _Usable:
    pods, index = snapshot.pods, snapshot.nodes.index
    node_names = [name for name in caller_victims if name in index]
    named_pods = [caller_victims[name].pods for name in node_names]
    place = np.array([index[name] for name in node_names], np.intp)
    row = np.repeat(np.arange(len(node_names)), [len(group) for group in named_pods])
    slots = np.fromiter(
        map(pods.slots.get, (pod.uid for group in named_pods for pod in group), repeat(_UNKNOWN)), np.intp, len(row)
    )
    is_unknown = slots == _UNKNOWN
    # An unknown slot, -1, indexes the last pod: what is read of that does not matter.
    is_wrong = ~is_unknown & ((pods.node[slots] != place[row]) | (pods.priority[slots] >= pod.priority))
    unknown: defaultdict[str, set[str]] = defaultdict(set)
    if is_unknown.any():
        # Whether a pod that nobody knows here is protected cannot be told, nor what has no UID is a pod.
        is_judged = rules.protects is not None or rules.may_go is not None
        uids = [pod.uid for group in named_pods for pod in group]
        for victim in np.flatnonzero(is_unknown).tolist():
            is_wrong[victim] = is_judged or not uids[victim]
            unknown[node_names[row[victim]]].add(uids[victim])
    is_usable = np.bincount(row[is_wrong], minlength=len(node_names)) == 0
    of_usable = np.flatnonzero(is_usable[row] & ~is_unknown)
    # A pod that is named twice counts once.
    of_usable = of_usable[np.sort(np.unique(slots[of_usable], return_index=True)[1])]
    names = [name for name, is_one in zip(node_names, is_usable.tolist(), strict=True) if is_one]
    # The position of a usable node among the usable ones is the number of those before it.
    return _Usable(
        names,
        place[is_usable],
        RowVictims(slots[of_usable], (is_usable.cumsum() - 1)[row[of_usable]]),
        {name: frozenset(uids) for name, uids in unknown.items()},
    )


def _fits_without(cycle: Cycle, nodes: Index, victims: RowVictims) -> Mask:
    return cycle.run_filters_with_nominated_pods(Rows.of(cycle.snapshot, nodes).changed(victims.removed)).ok


def _nominated(cycle: Cycle, usable: "_Usable", chosen: Mask, caller_victims: Mapping[str, MetaVictims]) -> PodChanges:
    """Returns a +1 for the pods of lower priority, other than victims, that are nominated to the chosen nodes."""
    added = [
        (row, slot)
        for row, name in enumerate(usable.names if cycle.nominations.by_node else ())
        if chosen[row]
        for slot, other in cycle.nominations.by_node.get(name, ())
        if other.priority < cycle.pod.priority and other.uid not in caller_victims[name].uids
    ]
    rows, slots = np.array(added, np.intp).reshape(-1, 2).T
    return PodChanges(rows, slots, np.ones(len(added), np.int64))
