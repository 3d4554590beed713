"""Findings: the results of PreFilter and the Filters for a pod, and the diagnosis made of them when no node is
feasible.

Upstream: pkg/scheduler/schedule_one.go, findNodesThatFitPod; framework/types.go, Diagnosis (v1.36.2).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.snapshot import Rows


@final
@dataclass(frozen=True, slots=True)
class Findings:
    """The results of PreFilter and the Filters, as arrays that hold until the next snapshot."""

    rows: Rows
    """The nodes that were filtered; none if PreFilter refused the pod."""
    verdicts: fwk.Verdicts
    """(R,) their verdicts."""
    pre_filter: fwk.Status = fwk.SUCCESS
    narrowed_by: tuple[str, ...] = ()
    """PreFilter plugins that left only some nodes in play."""
    by_extenders: Mapping[str, fwk.Status] = field(default_factory=dict)
    """Node name -> why an extender refused a node that passed the Filters."""


def refused_by_pre_filter(cycle: Cycle) -> Findings:
    """Returns the findings for a pod that PreFilter refused, so that no Filter ran."""
    no_node = Rows.of(cycle.snapshot, np.zeros(0, np.intp))
    return Findings(no_node, fwk.accept(0), cycle.pre_filter.status, cycle.pre_filter.narrowed_by)


def find(cycle: Cycle) -> Findings:
    """Runs all Filters on all nodes that PreFilter left in play, and returns the findings.

    Raises:
        PluginError: a plugin failed.
    """
    rows = Rows.of(cycle.snapshot, cycle.within)
    return Findings(
        rows, cycle.run_filters_with_nominated_pods(rows), cycle.pre_filter.status, cycle.pre_filter.narrowed_by
    )


def diagnosis_of(cycle: Cycle, findings: Findings) -> fwk.Diagnosis:
    """Returns why no node is feasible."""
    outcome = cycle.pre_filter
    if not outcome.status.is_success:
        plugins = frozenset(outcome.narrowed_by) | ({outcome.status.plugin} if outcome.status.plugin else frozenset())
        return fwk.Diagnosis(
            fwk.NodeStatuses(absent=outcome.status), plugins, pre_filter_message=outcome.status.message
        )
    rows, verdicts = findings.rows, findings.verdicts
    plugins = frozenset(outcome.narrowed_by) | {name for name, mask in verdicts.refused_by if mask.any()}
    waits = verdicts.codes == fwk.Code.PENDING
    pending = frozenset(name for name, mask in verdicts.refused_by if (mask & waits).any())
    return fwk.Diagnosis(fwk.NodeStatuses.refused(verdicts, rows, status_out_of_play(cycle)), plugins, pending)


def status_out_of_play(cycle: Cycle) -> fwk.Status:
    """Returns the status of the nodes that PreFilter excluded."""
    if cycle.pre_filter.node_names is None:
        return fwk.unresolvable()
    return fwk.unresolvable(out_of_play_reason(cycle.pre_filter.narrowed_by))


def out_of_play_reason(plugins: Iterable[str]) -> str:
    """Returns the reason of the nodes that are out of play, since these PreFilter plugins narrowed the search to
    others.
    """
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]"
