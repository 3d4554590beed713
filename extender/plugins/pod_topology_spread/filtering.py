"""Skew: how far a domain would be ahead of the emptiest one, with each row's own pod changes.

A row moves the count of its own domain only, so that the emptiest domain of a row is either its own or the emptiest of the others: two
numbers of the snapshot are enough for all rows.

Upstream: framework/plugins/podtopologyspread/filtering.go (v1.36.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from extender import framework as fwk
from extender.plugins.pod_topology_spread.constraints import (
    CompiledConstraint,
    Inclusion,
    columns_of,
    pods_counted,
    pods_moved,
    with_all_keys,
)
from extender.snapshot.axes import Codes, Int64s, Mask
from extender.snapshot.columns import LabelColumn, sums_by_value

NOT_MATCHED: Final = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL: Final = f"{NOT_MATCHED} (missing required label)"

_NO_DOMAIN: Final = 2**31 - 1
"""Pods in the emptiest of no domains. Upstream: filtering.go, newCriticalPaths."""


@final
@dataclass(frozen=True, slots=True)
class Domains:
    """What a constraint counts in the snapshot. Domains are values of the topology key, V of them; the place after the last is for none."""

    constraint: CompiledConstraint
    self_match: int
    """1 if the pod is one of those that are counted."""
    column: LabelColumn
    included: Mask
    """(N,) nodes that count."""
    is_domain: Mask
    """(V + 1,) values that an included node has."""
    counts: Int64s
    """(V + 1,) pods on the included nodes of the domain."""
    fewest: int
    """Pods in the emptiest domain."""
    fewest_at: int
    """Which domain that is; the first, if there are several."""
    fewest_elsewhere: int
    """Pods in the emptiest of the other domains."""
    is_too_few: bool
    """There are fewer domains than minDomains: whatever they hold, the emptiest counts as empty."""


def measure(snapshot: fwk.Snapshot, pod: fwk.Pod, constraints: Sequence[CompiledConstraint]) -> Sequence[Domains]:
    """The domains of each constraint. Upstream: filtering.go, calPreFilterState."""
    columns = columns_of(snapshot, constraints)
    inclusion = Inclusion(snapshot, pod, with_all_keys(columns))
    return [_measured(snapshot, pod, *of_one, inclusion) for of_one in zip(constraints, columns, strict=True)]


def _measured(snapshot: fwk.Snapshot, pod: fwk.Pod, constraint: CompiledConstraint, column: LabelColumn, inclusion: Inclusion) -> Domains:
    included = inclusion.of(constraint)
    is_domain = np.zeros(len(column.values) + 1, np.bool_)
    is_domain[column.codes[included]] = True
    counts = sums_by_value(column, pods_counted(snapshot, pod.namespace, constraint.selector) * included)
    candidates = np.where(is_domain, counts, _NO_DOMAIN)
    fewest_at = int(candidates.argmin())
    fewest = int(candidates[fewest_at])
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
        fewest_elsewhere=int(candidates.min()),
        is_too_few=int(is_domain.sum()) < constraint.min_domains,
    )


def verdicts(pod: fwk.Pod, rows: fwk.Rows, measured: Sequence[Domains]) -> fwk.Verdicts:
    """Rows that lack a topology key are refused for good, rows whose domain would be too far ahead for now.

    Upstream: filtering.go, Filter.
    """
    checks: list[fwk.Verdicts] = []
    for domains in measured:
        code = rows.codes_of_nodes(domains.column.codes)
        missing = code < 0
        if missing.any():
            checks.append(fwk.reject(missing, MISSING_LABEL, unresolvable=True))
        moved = pods_moved(rows, pod.namespace, domains.constraint.selector)
        refused = _is_ahead(domains)[code] if moved is None else _would_be_ahead(domains, rows, code, moved)
        if refused.any():
            checks.append(fwk.reject(refused, NOT_MATCHED))
    return fwk.first_of(checks) if checks else fwk.accept(len(rows))


def _is_ahead(domains: Domains) -> Mask:
    """(V + 1,) values whose nodes cannot take one more pod, as the cluster is."""
    fewest = 0 if domains.is_too_few else domains.fewest
    ahead: Mask = domains.counts + (domains.self_match - fewest) > domains.constraint.max_skew
    ahead[-1] = False
    return ahead


def _would_be_ahead(domains: Domains, rows: fwk.Rows, code: Codes, moved: Int64s) -> Mask:
    """(R,) rows that cannot take one more pod, as they are supposed to be.

    Arguments:
        code: (R,) their values of the topology key.
        moved: (R,) by how much the count of a row has changed.
    """
    count = domains.counts[code] + moved * domains.included[rows.node]
    fewest: Int64s | int = 0
    if not domains.is_too_few:
        elsewhere = np.where(code == domains.fewest_at, domains.fewest_elsewhere, domains.fewest)
        # A node that does not count can have a value that no node that counts has: such a value is no domain.
        fewest = np.where(domains.is_domain[code], np.minimum(elsewhere, count), domains.fewest)
    ahead: Mask = count + domains.self_match - fewest > domains.constraint.max_skew
    return ahead & (code >= 0)
