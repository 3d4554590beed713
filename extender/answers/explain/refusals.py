"""Which plugins refuse which nodes, each asked by itself, as arrays over nodes."""

from dataclasses import dataclass
from typing import final

import numpy as np

from extender.engine.evaluation.evaluate import Evaluation
from extender.engine.framework import Code, NodeStatuses, Verdicts
from extender.engine.runtime.cycle import PreFilterOutcome
from extender.engine.snapshot.axes import Int64s, Mask


@final
@dataclass(frozen=True, slots=True)
class Refusals:
    """The refusals of one evaluation."""

    evaluation: Evaluation
    by_plugin: dict[str, Verdicts]
    statuses: NodeStatuses
    pre_filter: PreFilterOutcome
    refused: Mask
    """(N,) nodes that are not feasible."""
    left_out: Mask
    """(N,) nodes that PreFilter left out of the search."""
    counts: Int64s
    """(N,) how many Filters refuse the node."""

    @staticmethod
    def of(evaluation: Evaluation) -> "Refusals | None":
        """Returns None if no Filter was asked: PreFilter refused the pod, or a plugin failed."""
        by_plugin, statuses, pre_filter = evaluation.by_plugin, evaluation.statuses, evaluation.pre_filter
        if not by_plugin or statuses is None or pre_filter is None:
            return None
        nodes = evaluation.snapshot.nodes
        refused = np.ones(len(nodes), np.bool_)
        refused[[nodes.index[name] for name in evaluation.feasible]] = False
        left_out = np.zeros(len(nodes), np.bool_)
        if pre_filter.node_names is not None:
            left_out[:] = True
            left_out[[nodes.index[name] for name in pre_filter.node_names if name in nodes.index]] = False
        counts: Int64s = np.stack([~verdicts.ok for verdicts in by_plugin.values()]).sum(axis=0, dtype=np.int64)
        return Refusals(evaluation, by_plugin, statuses, pre_filter, refused, left_out, counts)

    @property
    def hopeless(self) -> Mask:
        """(N,) nodes on which preemption cannot help."""
        never = [verdicts.codes == Code.UNSCHEDULABLE_AND_UNRESOLVABLE for verdicts in self.by_plugin.values()]
        hopeless: Mask = np.logical_or.reduce(never) | self.left_out
        return hopeless

    @property
    def plugin_sets(self) -> Int64s:
        """(N,) a number for the set of Filters that refuse the node; equal sets have equal numbers."""
        sets = np.zeros(len(self.refused), np.int64)
        for verdicts in self.by_plugin.values():
            # The sets get new numbers at each step, so that any number of plugins fits into an int64.
            sets = np.unique(2 * sets + ~verdicts.ok, return_inverse=True)[1]
        return sets

    def refused_by(self, plugin: str) -> Mask:
        """Returns (N,) nodes that the plugin refuses."""
        verdicts = self.by_plugin.get(plugin)
        return np.zeros(len(self.refused), np.bool_) if verdicts is None else ~verdicts.ok

    def only_by(self, plugin: str) -> Mask:
        """Returns (N,) nodes that no other plugin refuses. Nominated pods do not count."""
        only: Mask = self.refused & (self.counts == self.refused_by(plugin))
        return only if plugin in self.pre_filter.narrowed_by else only & ~self.left_out

    def of_node(self, place: int) -> dict[str, list[str]]:
        """Returns plugin -> its reasons, for one node that is refused; that of the node's status where no Filter
        refuses it by itself.
        """
        alone = {
            plugin: verdicts.reasons_of(place)
            for plugin, verdicts in self.by_plugin.items()
            if verdicts.codes[place] != Code.SUCCESS
        }
        status = self.statuses.at_place(place, self.evaluation.snapshot)
        if status is not self.statuses.absent:
            alone.setdefault(status.plugin, list(status.reasons))
        elif not alone.keys() & set(self.pre_filter.narrowed_by):
            alone |= {plugin: list(status.reasons) for plugin in self.pre_filter.narrowed_by}
        return alone
