"""Counting in step how many of a pod fit: one more on every node at a time, where nodes have nothing to do with each other.

For pods of which all Filters that are asked look only at a node and its pods, it makes no difference which node a scheduler would choose
first: each is filled up in the end. So the copies need not be placed one after the other; a row with so many copies is a hypothesis.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from extender import framework as fwk
from extender.objects.pod import Pod
from extender.runtime.framework import Framework
from extender.runtime.nominations import Nominations
from extender.scheduler.schedule_pod import Search
from extender.snapshot import PodChanges, Rows, Snapshot
from extender.snapshot.axes import Index

_STEPS_KEPT: Final = 32
"""Hypotheses that are built on each other before they are written as one, so that not all of them stay in memory."""


@final
@dataclass(frozen=True, slots=True)
class FilledUp:
    """A cluster with as many copies of a pod as there is room for."""

    by_node: dict[str, int]
    """Node -> copies on it, where there are any."""
    message: str
    """What the next one would be told."""


def filled_up(framework: Framework, snapshot: Snapshot, nominations: Nominations, pod: Pod, slot: int, limit: int) -> FilledUp | None:
    """Fill every node with copies of the pod.

    Arguments:
        slot: the pod's, in the snapshot.

    Returns:
        None where copies would have to be placed one by one: they mind others elsewhere, need something reserved, or are refused at
        once; and where more than `limit` fit.

    Raises:
        PluginError: a plugin failed.
    """
    state = framework.begin_cycle(snapshot, nominations)
    outcome = framework.run_pre_filter_plugins(state, pod)
    if not len(snapshot.nodes) or not outcome.status.is_success or not is_local(framework, state):
        return None
    rows = Rows.of(snapshot, Search(framework, snapshot, state, pod, outcome).within)
    by_node: dict[str, int] = {}
    explicit: dict[str, fwk.Status] = {}
    copies = total = 0
    while len(rows):
        verdicts = framework.run_filters_with_nominated_pods(state, pod, rows, again=copies > 0)
        full = np.flatnonzero(~verdicts.ok)
        names = rows.take(full).names
        explicit.update(zip(names, verdicts.statuses_of(full), strict=True))
        by_node.update(dict.fromkeys(names, copies))
        rows = rows.take(verdicts.ok)
        copies, total = copies + 1, total + len(rows)
        if total > limit:
            return None
        rows = _with_one_more(rows, slot) if copies % _STEPS_KEPT else _with_copies(snapshot, rows.node, slot, copies)
    left_out = fwk.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(outcome.narrowed_by)}]")
    message = fwk.fit_error_message(len(snapshot.nodes), fwk.Diagnosis(fwk.NodeStatuses(explicit, left_out)))
    return FilledUp({name: number for name, number in by_node.items() if number}, message)


def is_local(framework: Framework, state: fwk.CycleState) -> bool:
    """Whether nothing that is asked about the pod looks beyond one node, and nothing is to be reserved for it."""
    skipped = state.skip_filter_plugins
    looks_further = any(not plugin.looks_only_at_node for name, plugin in framework.plugins.filter if name not in skipped)
    return not looks_further and all(plugin.name in skipped for plugin in framework.plugins.reserve)


def _with_one_more(rows: Rows, slot: int) -> Rows:
    number = len(rows)
    return rows.changed(PodChanges(np.arange(number), np.full(number, slot), np.ones(number, np.int64), one_a_row=True))


def _with_copies(snapshot: Snapshot, nodes: Index, slot: int, copies: int) -> Rows:
    number = len(nodes) * copies
    row = np.repeat(np.arange(len(nodes)), copies)
    return Rows.of(snapshot, nodes).changed(PodChanges(row, np.full(number, slot), np.ones(number, np.int64)))
