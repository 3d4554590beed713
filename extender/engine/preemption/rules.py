"""The rules of preemption in kube-scheduler 1.12, 1.17, 1.25 and 1.36, as values.

A plugin of your own takes one of them and replaces what it does differently: `dataclasses.replace(V1_36, may_go=...,
criteria=...)`.

A preemptionPolicy of Never is respected under all of them, though v1.12 did not know it, and v1.17 only behind a gate.

Upstream: pkg/scheduler/core/generic_scheduler.go (v1.12, v1.17);
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go,
pkg/scheduler/framework/preemption/preemption.go (v1.25, v1.36.2).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

import numpy as np

from extender.engine.framework import Code, PostFilterPlugin, PreemptionRules, Status
from extender.engine.preemption.budgets import by_importance, by_priority, forbidden, in_order, violated
from extender.engine.preemption.costs import ORDERED_SCORE_FUNCTIONS
from extender.engine.snapshot import Snapshot
from extender.engine.snapshot.axes import Index, Mask
from extender.values.objects.pod import Pod
from extender.values.objects.resource_names import INSUFFICIENT, TOO_MANY_PODS


def _most_important_first(snapshot: Snapshot, slots: Index, row: Index, violates: Mask) -> Index:
    # Full ties keep violating pods first, as upstream's stable sort of the order of reprieve does.
    pods = snapshot.pods
    return in_order(row, -pods.priority[slots], pods.start_time[slots], (~violates).astype(np.int64))


def _violating_first(snapshot: Snapshot, slots: Index, row: Index, violates: Mask) -> Index:
    # The order of reprieve, which v1.32 was the first release to undo: until then, the first victim need not be the
    # most important one.
    return np.lexsort((~violates, row))


def _is_being_preempted(pod: Pod) -> bool:
    if not pod.is_terminating:
        return False
    condition = next((condition for condition in pod.status.conditions if condition.type == "DisruptionTarget"), None)
    return condition is not None and condition.status == "True" and condition.reason == "PreemptionByScheduler"


# v1.12 and v1.17 had a list of unresolvable failures, unresolvablePredicateFailureErrors, where plugins now say so
# themselves. These are the reasons of which v1.36 makes something else; of a reason with a name in it, there is the
# beginning.

TOO_LITTLE_CAPACITY: Final = (INSUFFICIENT, TOO_MANY_PODS)
"""A request beyond the capacity of the node: it was resolvable like any shortage."""
NO_TOPOLOGY_LABEL: Final = "node(s) didn't match pod topology spread constraints (missing required label)"
"""A node without the label of a topology spread constraint: v1.17 made no difference between this and too large a skew.
"""
CLAIM_IN_USE: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
"""A ReadWriteOncePod claim that a pod on the node uses: at first, no pod was evicted for it."""


def _code_but(resolvable: tuple[str, ...], unresolvable: tuple[str, ...] = ()) -> Callable[[Status], Code]:
    """Returns refusal -> a release's code, given the beginnings of reasons that differ from today's."""

    def code_of(status: Status) -> Code:
        if status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE and status.reasons:
            is_resolvable = all(reason.startswith(resolvable) for reason in status.reasons)
            return Code.UNSCHEDULABLE if is_resolvable else status.code
        if status.code is Code.UNSCHEDULABLE and any(reason.startswith(unresolvable) for reason in status.reasons):
            return Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return status.code

    return code_of


V1_36: Final = PreemptionRules(
    name="v1.36",
    by_importance=by_importance,
    violated=violated,
    as_listed=_most_important_first,
    criteria=ORDERED_SCORE_FUNCTIONS,
    code_of=lambda status: status.code,
    waits_for=_is_being_preempted,
)
V1_25: Final = replace(
    V1_36,
    name="v1.25",
    as_listed=_violating_first,
    code_of=_code_but(TOO_LITTLE_CAPACITY, (CLAIM_IN_USE,)),
    waits_for=lambda pod: pod.is_terminating,
)
V1_17: Final = replace(
    V1_25,
    name="v1.17",
    violated=forbidden,
    code_of=_code_but((*TOO_LITTLE_CAPACITY, NO_TOPOLOGY_LABEL)),
    gives_up_unresolvable=False,
    tries_all_nodes=True,
    takes_free_nodes=True,
)
V1_12: Final = replace(V1_17, name="v1.12", by_importance=by_priority, criteria=ORDERED_SCORE_FUNCTIONS[:-1])

RULES: Final[Mapping[str, PreemptionRules]] = {rules.name: rules for rules in (V1_12, V1_17, V1_25, V1_36)}


def rules_of(plugins: Iterable[PostFilterPlugin]) -> PreemptionRules:
    """Returns the rules by which the PostFilter plugins of a profile preempt; those of v1.36 if no plugin names any."""
    return next((rules for plugin in plugins if (rules := plugin.preemption_rules) is not None), V1_36)
