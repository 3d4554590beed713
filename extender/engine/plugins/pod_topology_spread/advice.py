"""How much a pod would have to relax its spread constraints."""

from collections.abc import Iterator

import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins.pod_topology_spread.constraints import DO_NOT_SCHEDULE, compiled
from extender.engine.plugins.pod_topology_spread.filtering import decisive, measure
from extender.values import limits
from extender.values.objects.decoding import replaced


def suggestions(pod: fwk.Pod, rows: fwk.Rows) -> Iterator[fwk.Suggestion]:
    """Yields each constraint with the smallest maxSkew that admits one of the rows, and as a mere preference."""
    required = [
        (at, one)
        for at, one in enumerate(pod.spec.topology_spread_constraints)
        if one.when_unsatisfiable == DO_NOT_SCHEDULE
    ]
    for (at, constraint), needed in zip(
        required[: limits.SUGGESTED_ONE_BY_ONE], _skews_needed(pod, rows), strict=False
    ):
        over = constraint.topology_key
        if needed is not None and needed > constraint.max_skew:
            text = f"allow a maxSkew of {needed} over {over} instead of {constraint.max_skew}"
            yield fwk.Suggestion("spread", text, spreading(pod, at, max_skew=needed))
        yield fwk.Suggestion("spread", f"only prefer to spread over {over} (ScheduleAnyway)", spreading(pod, at))


def without_requirements(pod: fwk.Pod) -> fwk.Suggestion | None:
    """Returns the pod with all constraints as mere preferences; None if it has no others."""
    changed, keys = pod, []
    for at, constraint in enumerate(pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable == DO_NOT_SCHEDULE:
            changed = spreading(changed, at)
            keys.append(constraint.topology_key)
    return (
        fwk.Suggestion("spread", f"only prefer to spread over {' and '.join(keys)} (ScheduleAnyway)", changed)
        if keys
        else None
    )


def spreading(pod: fwk.Pod, at: int, *, max_skew: int | None = None) -> fwk.Pod:
    """Returns the pod with one of its spread constraints changed: to this maxSkew, or without one to a mere
    preference.
    """
    constraints = list(pod.spec.topology_spread_constraints)
    changed = {"when_unsatisfiable": "ScheduleAnyway"} if max_skew is None else {"max_skew": max_skew}
    constraints[at] = replaced(constraints[at], **changed)
    return replaced(pod, spec=replaced(pod.spec, topology_spread_constraints=constraints))


def _skews_needed(pod: fwk.Pod, rows: fwk.Rows) -> list[int | None]:
    """For each required constraint the smallest maxSkew that admits one of the rows; None if the constraint refuses
    none of them.
    """
    constraints = compiled(pod.spec.topology_spread_constraints, pod.labels, DO_NOT_SCHEDULE)
    if not len(rows) or not constraints or len(decisive(rows.snapshot, constraints)) < len(constraints):
        # A pod without constraints of its own is held to those of the profile, which it cannot relax. And a topology
        # key that no node has leaves no nodes to count.
        return [None] * len(constraints)
    needed: list[int | None] = []
    for domains in measure(rows.snapshot, pod, constraints):
        at = domains.column.codes[rows.node]
        # The skew of a row is what its domain would have with the pod, less what the emptiest domain has.
        skews = domains.counts[at[at >= 0]] + (domains.self_match - (0 if domains.is_too_few else domains.fewest))
        beyond = skews[skews > domains.constraint.max_skew]
        needed.append(int(np.min(beyond)) if len(beyond) else None)
    return needed
