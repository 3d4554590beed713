"""Filter: the skew between a domain and the one with the fewest pods, with each row's own pod changes.

A row changes the count of its own domain only. The minimum of a row is therefore either its own count or the minimum of
the other domains, and two numbers per constraint are enough for all rows.

Upstream: framework/plugins/podtopologyspread/filtering.go.
"""

from collections.abc import Sequence
from typing import Final, final

import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins.pod_topology_spread.constraints import (
    CompiledConstraint,
    Inclusion,
    columns_of,
    pods_counted,
    pods_counted_by_value,
    pods_moved,
    with_all_keys,
)
from extender.engine.snapshot.axes import Codes, Int64s, Mask, any_of
from extender.engine.snapshot.columns import LabelColumn, sums_by_value

NOT_MATCHED: Final = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL: Final = f"{NOT_MATCHED} (missing required label)"

_NO_DOMAIN: Final = 2**31 - 1
"""The minimum over no domains. Upstream: filtering.go, newCriticalPaths."""


@final
class Domains(msgspec.Struct, frozen=True):
    """The counts of a constraint in the snapshot by the V values of its key; the last entry is for nodes without it."""

    constraint: CompiledConstraint
    self_match: int
    """1 if the constraint counts the pod itself."""
    column: LabelColumn
    included: Mask
    """(N,) the nodes that count."""
    is_domain: Mask
    """(V + 1,) the values of included nodes."""
    counts: Int64s
    """(V + 1,) pods on the included nodes of the domain."""
    fewest: int
    """The number of pods in the domain with the fewest."""
    fewest_at: int
    """The code of that domain; the first, if there are several."""
    fewest_elsewhere: int
    """The fewest pods in any other domain."""
    is_too_few: bool
    """True if there are fewer domains than minDomains, so that the minimum counts as 0."""


def decisive(snapshot: fwk.Snapshot, constraints: Sequence[CompiledConstraint]) -> Sequence[CompiledConstraint]:
    """Returns the constraints that decide, all of them in general. A topology key that no node has decides alone: no
    node counts for any constraint then, so that none is beyond its maxSkew, and every node lacks that key.
    """
    if any(constraint.max_skew < 1 for constraint in constraints):
        return constraints
    on_no_node = next(
        (constraint for constraint in constraints if constraint.topology_key not in snapshot.nodes.label_keys), None
    )
    return constraints if on_no_node is None else [on_no_node]


def measure(snapshot: fwk.Snapshot, pod: fwk.Pod, constraints: Sequence[CompiledConstraint]) -> Sequence[Domains]:
    """Returns the domains of each constraint. Upstream: filtering.go, calPreFilterState."""
    columns = columns_of(snapshot, constraints)
    inclusion = Inclusion(snapshot, pod, with_all_keys(columns))
    # With one key, the nodes with all keys are those with this one: the sums by value that the tally keeps serve all
    # pods of a workload as they are.
    counts_all_nodes = len({column.key for column in columns}) == 1
    return [
        _measured(
            snapshot,
            pod,
            constraint,
            column,
            inclusion.of(constraint),
            counts_all_nodes and inclusion.is_by_keys_alone(constraint),
        )
        for constraint, column in zip(constraints, columns, strict=True)
    ]


def _measured(
    snapshot: fwk.Snapshot,
    pod: fwk.Pod,
    constraint: CompiledConstraint,
    column: LabelColumn,
    included: Mask,
    is_by_key_alone: bool,
) -> Domains:
    """Returns the domains of one constraint over the (N,) nodes included, perhaps all that have the topology key."""
    if is_by_key_alone:
        is_domain = column.in_use
        counts = pods_counted_by_value(snapshot, pod.namespace, constraint.selector, column).copy()
        counts[-1] = 0
    else:
        is_domain = np.zeros(len(column.values) + 1, np.bool_)
        is_domain[column.codes[included]] = True
        counts = sums_by_value(column, pods_counted(snapshot, pod.namespace, constraint.selector) * included)
    # Values that only excluded nodes have are no domains, and must not be the minimum with their 0 pods.
    candidates = np.where(is_domain, counts, _NO_DOMAIN)
    fewest_at = int(candidates.argmin())
    fewest = int(candidates[fewest_at])
    # Without the domain of the minimum, what is left is the minimum of the others. Upstream keeps the same pair as its
    # criticalPaths.
    candidates[fewest_at] = _NO_DOMAIN
    return Domains(
        constraint=constraint,
        self_match=int(constraint.matches_itself(pod)),
        column=column,
        included=included,
        is_domain=is_domain,
        counts=counts,
        fewest=fewest,
        fewest_at=fewest_at,
        fewest_elsewhere=int(candidates[candidates.argmin()]),  # faster than min
        is_too_few=int(np.count_nonzero(is_domain)) < constraint.min_domains,
    )


def verdicts(pod: fwk.Pod, rows: fwk.Rows, measured: Sequence[Domains]) -> fwk.Verdicts:
    """Refuses rows without a topology key (unresolvable), and rows whose domain would exceed the skew."""
    checks: list[fwk.Verdicts] = []
    for domains in measured:
        if not domains.column.is_everywhere:
            lacks_key = rows.codes_of_nodes(domains.column.codes) < 0
            if any_of(lacks_key):
                checks.append(fwk.reject(lacks_key, MISSING_LABEL, unresolvable=True))
        moved = pods_moved(rows, pod.namespace, domains.constraint.selector)
        if moved is None:
            ahead = _exceeds_skew(domains)
            if not any_of(ahead):
                continue
            refused = rows.of_values(domains.column, ahead)
        else:
            refused = _would_exceed_skew(domains, rows, rows.codes_of_nodes(domains.column.codes), moved)
        if any_of(refused):
            checks.append(fwk.reject(refused, NOT_MATCHED))
    return fwk.first_of(checks) if checks else fwk.accept(len(rows))


def _exceeds_skew(domains: Domains) -> Mask:
    """(V + 1,) the values whose nodes cannot take one more pod, in the snapshot."""
    fewest = 0 if domains.is_too_few else domains.fewest
    ahead: Mask = domains.counts + (domains.self_match - fewest) > domains.constraint.max_skew
    # Nodes without the key are refused for that, as unresolvable.
    ahead[-1] = False
    return ahead


def _would_exceed_skew(domains: Domains, rows: fwk.Rows, code: Codes, moved: Int64s) -> Mask:
    """(R,) the rows, with values `code`, that cannot take one more pod after (R,) changes of their count."""
    # Pods on a node that the policies exclude are not counted, whether they come or go. Code -1 reads the last entry,
    # and `code >= 0` drops the result below.
    count = domains.counts[code] + moved * domains.included[rows.node]
    fewest: Int64s | int = 0
    if not domains.is_too_few:
        # A row changes its own domain. If that held the minimum, the second lowest of the snapshot is what the others
        # have; else it is the minimum itself.
        elsewhere = np.where(code == domains.fewest_at, domains.fewest_elsewhere, domains.fewest)
        # A node that does not count may have a value that no counting node has: such a value is no domain.
        fewest = np.where(domains.is_domain[code], np.minimum(elsewhere, count), domains.fewest)
    ahead: Mask = count + domains.self_match - fewest > domains.constraint.max_skew
    return ahead & (code >= 0)
