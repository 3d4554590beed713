"""The filter verb, which filters the given nodes for a pod; and the check of a node before a pod is bound to it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, repeat, takewhile
from operator import itemgetter
from typing import Final, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.findings import Findings, refused_by_pre_filter, status_out_of_play
from extender.engine.snapshot import Rows, Snapshot
from extender.engine.snapshot.axes import Index, Mask
from extender.values import limits

UNKNOWN_NODE: Final = "node not known to the extender yet"


@final
@dataclass(frozen=True, slots=True)
class FilterResult:
    """Every given node is in exactly one of `kept`, `failed` and `failed_and_unresolvable`."""

    kept: Sequence[int]
    """Places among the given nodes, in their order."""
    failed: dict[str, str] = field(default_factory=dict)
    """Node -> reason; preemption might help."""
    failed_and_unresolvable: dict[str, str] = field(default_factory=dict)
    """Node -> reason; preemption cannot help."""
    findings: Findings | None = field(default=None, compare=False, repr=False)
    """The same as arrays, which hold until the next snapshot."""


def filter_nodes(cycle: Cycle, names: Sequence[str], *, nominated_count: bool = True) -> FilterResult:
    """Returns the given nodes on which the pod can run, and the reasons of the others. Raises PluginError."""
    snapshot = cycle.snapshot
    places, is_known_node = places_of(snapshot, names)
    result = FilterResult([], {names[position]: UNKNOWN_NODE for position in np.flatnonzero(~is_known_node).tolist()})
    outcome = cycle.run_pre_filter_plugins()
    if not outcome.status.is_success:
        into = result.failed if outcome.status.code is fwk.Code.UNSCHEDULABLE else result.failed_and_unresolvable
        into.update(
            {name: outcome.status.message for name, is_known in zip(names, is_known_node, strict=True) if is_known}
        )
        return replace(result, findings=refused_by_pre_filter(cycle))
    rows, row_of = rows_at(snapshot, places[is_known_node])
    verdicts = (cycle.run_filters_with_nominated_pods if nominated_count else cycle.run_filter_plugins)(rows)
    readable = _not_in(snapshot.nodes.invalid, rows.node)
    inside = (
        readable
        if outcome.node_names is None
        else readable & np.fromiter((name in outcome.node_names for name in rows.names), np.bool_, len(rows))
    )
    in_play = inside & readable
    # `positions` leads to the places of known nodes among the given ones: unknown ones have no row.
    is_kept, positions = (verdicts.ok & inside)[row_of], np.flatnonzero(is_known_node)
    refused, out_of_play = row_of[~is_kept], status_out_of_play(cycle).message
    reasons: dict[int, str] = {}  # by status: many rows share one
    for position, row, status in zip(
        positions[~is_kept].tolist(), refused.tolist(), verdicts.statuses_of(refused), strict=True
    ):
        name = names[position]
        if not readable[row]:
            result.failed[name] = f"node's allocatable cannot be read: {snapshot.nodes.invalid[int(rows.node[row])]}"
        elif not inside[row]:
            result.failed_and_unresolvable[name] = out_of_play
        else:
            reason = reasons.get(id(status))
            if reason is None:
                reason = reasons[id(status)] = _shortened(status)
            resolvable = status.code is not fwk.Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            (result.failed if resolvable else result.failed_and_unresolvable)[name] = reason
    # What is out of play was no Filter's to refuse: records count only the nodes that were asked about.
    if not in_play.all():
        rows, verdicts = rows.take(in_play), _only(verdicts, in_play)
    # Most often all nodes pass, which are not listed one by one.
    passed = range(len(names)) if len(refused) == 0 and is_known_node.all() else positions[is_kept].tolist()
    return replace(result, kept=passed, findings=Findings(rows, verdicts, narrowed_by=outcome.narrowed_by))


def _shortened(status: fwk.Status) -> str:
    """Returns the message of a status; if it is too long, only its first reasons.

    A pod may request thousands of resources that a node lacks, and the message is repeated for each node.
    """
    if len(status.message) <= limits.NODE_REASON:
        return status.message
    # As many reasons as fit, each with the comma and the blank that follow it.
    num_shown = sum(
        1 for _ in takewhile(limits.NODE_REASON.__ge__, accumulate(len(reason) + 2 for reason in status.reasons))
    )
    return f"{', '.join(status.reasons[:num_shown])} and {len(status.reasons) - num_shown} more reasons"


def why_refused(cycle: Cycle, node: str) -> str:
    """Returns the plugins that refuse the cycle's pod on this node, and the reason; else an empty text. Raises
    PluginError.

    Nominated pods do not count: whoever chose the node has counted them, and only Reserve leaves room for one that was
    nominated since.
    """
    result = filter_nodes(cycle, [node], nominated_count=False)
    if result.kept:
        return ""
    reason = (result.failed | result.failed_and_unresolvable)[node]
    findings = result.findings
    if findings is None:
        return reason
    plugins = [findings.pre_filter.plugin, *(name for name, mask in findings.verdicts.refused_by if mask.any())]
    refusing = ", ".join(filter(None, plugins))
    return f"{refusing} refused it: {reason}" if refusing else reason


def places_of(snapshot: Snapshot, names: Sequence[str]) -> tuple[Index, Mask]:
    """Returns (A,) places of the named nodes on axis N, and (A,) the known ones; the places of others mean nothing."""
    index = snapshot.nodes.index
    # Most often all names are known, and one itemgetter looks them up in a single call; of one name it makes no tuple.
    try:
        node_places: Iterable[int] = itemgetter(*names)(index) if len(names) > 1 else map(index.__getitem__, names)
        places = np.fromiter(node_places, np.intp, len(names))
    except KeyError:
        places = np.fromiter(map(index.get, names, repeat(-1)), np.intp, len(names))
    return places, places >= 0


def rows_at(snapshot: Snapshot, places: Index) -> tuple[Rows, Index]:
    """Returns the nodes at these places as rows, and (A,) the row of each; all nodes are the columns themselves."""
    num_nodes = len(snapshot.all_nodes)
    # Each node once, in any order: then a place is its own row, and nothing is copied.
    if len(places) == num_nodes and (np.bincount(places, minlength=num_nodes) == 1).all():
        return Rows.of(snapshot), places
    return Rows.of(snapshot, places), np.arange(len(places))


def _only(verdicts: fwk.Verdicts, rows: Mask) -> fwk.Verdicts:
    return fwk.Verdicts(
        verdicts.codes[rows],
        tuple((reason, mask[rows]) for reason, mask in verdicts.reasons),
        tuple((plugin, mask[rows]) for plugin, mask in verdicts.refused_by),
    )


def _not_in(invalid: Mapping[int, str], node: Index) -> Mask:
    # Most often every node can be read, and nothing is looked up.
    if not invalid:
        return np.ones(len(node), np.bool_)
    return ~np.isin(node, list(invalid))
