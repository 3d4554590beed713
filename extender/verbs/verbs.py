"""What we answer when kube-scheduler calls us: filter, prioritize, preempt, bind. Plain functions over a Snapshot; nothing is written.

The engine brings the snapshot (with the nodes of the request in it) and the framework of the pod's profile; the faces turn bytes into
arguments and results into bytes.

Upstream, the caller's side: pkg/scheduler/extender.go (v1.36.2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.preemption import Candidates
from extender.preemption.budgets import violating
from extender.preemption.dry_run import lower_priority_pods, reprieve
from extender.preemption.importance import by_importance
from extender.records.reporter import Findings
from extender.runtime.framework import Framework
from extender.runtime.nominations import Nominations
from extender.snapshot import PodChanges, Rows, Snapshot
from extender.snapshot.axes import Index, Int64s, Mask

UNKNOWN_NODE = "node not known to the extender yet"
MAX_EXTENDER_PRIORITY = 10
"""Upstream: extenderv1.MaxExtenderPriority."""

_OF_ROOM = frozenset({"NodePorts", "NodeResourcesFit"})
"""Plugins that look at what pods take from each other."""


class VerbError(Exception):
    """The question was understood and cannot be answered; the text is for the pod's events."""


@final
@dataclass(frozen=True, slots=True)
class FilterResult:
    """Every asked node is in exactly one of the three."""

    kept: list[int]
    """Places in what was asked, in the order asked."""
    failed: dict[str, str] = field(default_factory=dict)
    """Node -> reason; preemption might help."""
    failed_and_unresolvable: dict[str, str] = field(default_factory=dict)
    """Node -> reason; preemption cannot help."""
    findings: Findings | None = field(default=None, compare=False, repr=False)
    """The same as arrays, until the next snapshot."""


@final
@dataclass(frozen=True, slots=True)
class Victims:
    """Pods that would have to leave a node, by UID, most important first."""

    uids: tuple[str, ...]
    num_pdb_violations: int


def filter_nodes(framework: Framework, snapshot: Snapshot, nominations: Nominations, pod: Pod, asked: Sequence[str]) -> FilterResult:
    """Which of the asked nodes the pod can run on, and why not on the others.

    Raises:
        PluginError: a plugin failed; the message names it.
    """
    state = framework.begin_cycle(snapshot, nominations)
    places, known = _places(snapshot, asked)
    result = FilterResult([], {asked[position]: UNKNOWN_NODE for position in np.flatnonzero(~known).tolist()})
    outcome = framework.run_pre_filter_plugins(state, pod)
    if not outcome.status.is_success:
        into = result.failed if outcome.status.code is fwk.Code.UNSCHEDULABLE else result.failed_and_unresolvable
        into.update({name: outcome.status.message for name, is_known in zip(asked, known, strict=True) if is_known})
        nobody = Rows.of(snapshot, np.zeros(0, np.intp))
        return replace(result, findings=Findings(nobody, fwk.accept(0), outcome.status, outcome.narrowed_by))
    positions = np.flatnonzero(known)
    rows = _rows(snapshot, places[known])
    verdicts = framework.run_filters_with_nominated_pods(state, pod, rows)
    readable = _not_in(snapshot.nodes.invalid, rows.node)
    inside = (
        readable
        if outcome.node_names is None
        else readable & np.fromiter((name in outcome.node_names for name in rows.names), np.bool_, len(rows))
    )
    kept = verdicts.ok & inside
    elsewhere = f"node(s) didn't satisfy plugin(s) [{' '.join(outcome.narrowed_by)}]"
    for row in np.flatnonzero(~kept).tolist():
        name = asked[int(positions[row])]
        if not readable[row]:
            result.failed[name] = f"node's allocatable cannot be read: {snapshot.nodes.invalid[int(rows.node[row])]}"
        elif not inside[row]:
            result.failed_and_unresolvable[name] = elsewhere
        else:
            status = verdicts.status_of(row)
            resolvable = status.code is not fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            (result.failed if resolvable else result.failed_and_unresolvable)[name] = status.message
    result.kept.extend(positions[kept].tolist())
    in_play = inside & readable
    if in_play.all():
        return replace(result, findings=Findings(rows, verdicts, narrowed_by=outcome.narrowed_by))
    return replace(result, findings=Findings(rows.take(in_play), _only(verdicts, in_play), narrowed_by=outcome.narrowed_by))


def prioritize_nodes(framework: Framework, snapshot: Snapshot, nominations: Nominations, pod: Pod, asked: Sequence[str]) -> list[int]:
    """A score from 0 to 10 for each asked node: the profile's weighted total, as a share of the best node's.

    Nodes that we do not know get 0.

    Raises:
        PluginError: a plugin failed; the message names it.
    """
    state = framework.begin_cycle(snapshot, nominations)
    places, known = _places(snapshot, asked)
    scores = np.zeros(len(asked), np.int64)
    if known.any() and framework.plugins.score:
        # Score plugins may read what their PreFilter kept; its verdict does not matter here, the caller has filtered.
        framework.run_pre_filter_plugins(state, pod)
        rows = _rows(snapshot, places[known])
        framework.run_pre_score_plugins(state, pod, rows)
        total = framework.run_score_plugins(state, pod, rows).total
        scores[known] = _on_extender_scale(total)
    return [int(score) for score in scores]


def choose_victims(
    framework: Framework, snapshot: Snapshot, nominations: Nominations, pod: Pod, candidates: Mapping[str, Victims]
) -> dict[str, Victims]:
    """For each candidate node: the pods that really have to go, or no entry where that does not help.

    The whole framework is asked. The caller's victims are taken as they are when they suffice, less those that need not go; when they do
    not suffice (or none were named: upstream sends such candidates for nodes that an extender refused) pods of lower priority are added,
    as few as will do.

    Raises:
        PluginError: a plugin failed; the message names it.
    """
    if pod.spec.preemption_policy == "Never":
        return {}
    state = framework.begin_cycle(snapshot, nominations)
    outcome = framework.run_pre_filter_plugins(state, pod)
    if outcome.status.code is fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return {}
    usable = [
        (place, slots)
        for name, asked in candidates.items()
        if (outcome.node_names is None or name in outcome.node_names) and (found := _usable(snapshot, pod, name, asked)) is not None
        for place, slots in (found,)
    ]
    if not usable:
        return {}
    nodes = np.array([place for place, _ in usable], np.intp)
    named = np.concatenate([slots for _, slots in usable])
    named_row = np.repeat(np.arange(len(usable)), [len(slots) for _, slots in usable])

    # 1 whose victims suffice as named? On the other nodes every pod of lower priority may have to go.
    suffices = _fits_without(framework, state, pod, nodes, named, named_row) & (np.bincount(named_row, minlength=len(nodes)) > 0)
    lower, lower_row = lower_priority_pods(snapshot, pod, nodes)
    by_us = ~suffices[lower_row]
    slots = np.r_[named[suffices[named_row]], lower[by_us]]
    row = np.r_[named_row[suffices[named_row]], lower_row[by_us]]

    # 2 where the pod fits without them, those that need not go come back: our own finds before the caller's choice
    fits = _fits_without(framework, state, pod, nodes, slots, row)
    slots, row = slots[fits[row]], row[fits[row]]
    slots, row = _sorted(snapshot, slots, row, np.isin(slots, named))
    without = Rows.of(snapshot, nodes).changed(_gone(slots, row))
    victims = ~reprieve(framework, state, pod, without, slots, row)

    # 3 who is left has to go, most important first
    slots, row = slots[victims], row[victims]
    order = by_importance(snapshot, slots, row)
    slots, row = slots[order], row[order]
    violates = violating(snapshot, slots, row)
    chosen: dict[str, Victims] = {}
    for at in np.unique(row).tolist():
        of_node = row == at
        uids = tuple(snapshot.pod_at(slot).uid for slot in slots[of_node].tolist())
        chosen[snapshot.nodes.objects[int(nodes[at])].name] = Victims(uids, int(violates[of_node].sum()))
    return chosen


def why_full(framework: Framework, snapshot: Snapshot, pod: Pod, node: str) -> str:
    """What the node lacks for the pod by now; empty if there is room, or if we cannot tell.

    Only what pods take from each other is looked at. Whoever asks has filtered, and may know of volumes and claims what we hear later.
    """
    place = snapshot.nodes.index.get(node)
    if place is None or place in snapshot.nodes.invalid:
        return ""
    rows = _rows(snapshot, np.array([place], np.intp))
    state = framework.begin_cycle(snapshot, Nominations())
    for name, plugin in framework.plugins.filter:
        if name not in _OF_ROOM:
            continue
        if isinstance(plugin, fwk.PreFilterPlugin) and plugin.pre_filter(state, pod, snapshot).status.code is fwk.Code.SKIP:
            continue
        verdicts = plugin.filter(state, pod, rows)
        if not verdicts.ok.all():
            return verdicts.status_of(0).message
    return ""


def candidates_of(snapshot: Snapshot, chosen: Mapping[str, Victims]) -> Candidates:
    """What `choose_victims` answered, as arrays over the same snapshot."""
    slots = snapshot.pods.slots
    counts = [len(victims.uids) for victims in chosen.values()]
    return Candidates(
        snapshot,
        np.array([snapshot.nodes.index[name] for name in chosen], np.intp),
        np.array([slots[uid] for victims in chosen.values() for uid in victims.uids], np.intp),
        np.r_[0, np.cumsum(counts)].astype(np.intp),
        np.array([victims.num_pdb_violations for victims in chosen.values()], np.int64),
    )


def _only(verdicts: fwk.Verdicts, rows: Mask) -> fwk.Verdicts:
    return fwk.Verdicts(
        verdicts.codes[rows],
        tuple((reason, mask[rows]) for reason, mask in verdicts.reasons),
        tuple((plugin, mask[rows]) for plugin, mask in verdicts.refused_by),
    )


def _usable(snapshot: Snapshot, pod: Pod, name: str, asked: Victims) -> tuple[int, Index] | None:
    """Place and victim slots of a candidate, if the node and its victims are known and all of lower priority."""
    place = snapshot.nodes.index.get(name)
    slots = [snapshot.pods.slots.get(uid, -1) for uid in dict.fromkeys(asked.uids)]
    if place is None or -1 in slots:
        return None
    named = np.array(slots, np.intp)
    if (snapshot.pods.node[named] != place).any() or (snapshot.pods.priority[named] >= pod.priority).any():
        return None
    return place, named


def _fits_without(framework: Framework, state: fwk.CycleState, pod: Pod, nodes: Index, slots: Index, row: Index) -> Mask:
    """(B,) whether the pod fits each node once these pods are gone."""
    rows = Rows.of(framework.snapshot, nodes).changed(_gone(slots, row))
    return framework.run_filters_with_nominated_pods(state, pod, rows).ok


def _gone(slots: Index, row: Index) -> PodChanges:
    return PodChanges(row, slots, np.full(len(slots), -1))


def _sorted(snapshot: Snapshot, slots: Index, row: Index, is_named: Mask) -> tuple[Index, Index]:
    """The order in which pods are reprieved, row by row: ours before the caller's, those with a budget first, then by importance."""
    order = by_importance(snapshot, slots, row)
    slots, row, is_named = slots[order], row[order], is_named[order]
    order = np.lexsort((~violating(snapshot, slots, row), is_named, row))
    return slots[order], row[order]


def _places(snapshot: Snapshot, asked: Sequence[str]) -> tuple[Index, Mask]:
    index = snapshot.nodes.index
    places = np.array([index.get(name, -1) for name in asked], np.intp)
    return places, places >= 0


def _rows(snapshot: Snapshot, places: Index) -> Rows:
    """The asked nodes as rows; all of them in visiting order are the columns themselves."""
    return Rows.of(snapshot, None if np.array_equal(places, snapshot.all_nodes) else places)


def _not_in(invalid: Mapping[int, str], node: Index) -> Mask:
    if not invalid:
        return np.ones(len(node), np.bool_)
    return ~np.isin(node, list(invalid))


def _on_extender_scale(total: Int64s) -> Int64s:
    """(R,) 10 for the best, the others by their share of it, rounded: what kube-scheduler's own normalising does with 100.

    Totals below 0, which a negative weight can make, are no share. Weights are int32, so that 20 times a total fits an int64.
    """
    best = int(total.max(initial=0))
    return (2 * MAX_EXTENDER_PRIORITY * np.maximum(total, 0) + best) // (2 * best) if best > 0 else np.zeros_like(total)
