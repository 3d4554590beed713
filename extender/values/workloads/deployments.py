"""Deployments: the ReplicaSet of a template, and how many replicas each of them should have next; how many pods of a
workload may be missing or too many, by maxSurge, maxUnavailable and minAvailable, and which of too many go first.

Upstream: pkg/controller, deployment/rolling.go, recreate.go, sync.go, deployment_util.go; disruption/disruption.go;
controller_utils.go, ActivePodsWithRanks; replicaset/replica_set.go, getPodsToDelete; apimachinery/pkg/util/intstr.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from extender.values.objects.meta import Object
from extender.values.workloads.templates import HASH_LABEL, controller_reference, template_hash

REVISION: Final = "deployment.kubernetes.io/revision"
DESIRED_REPLICAS: Final = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS: Final = "deployment.kubernetes.io/max-replicas"
NOT_COPIED: Final = (
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    "deployment.kubernetes.io/revision-history",
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
)
"""Annotations of a Deployment that its ReplicaSets do not get."""


# The ReplicaSets.


def hash_of(deployment: Object) -> str:
    """Returns the value of HASH_LABEL on the pods of the Deployment's template."""
    return template_hash(deployment["spec"]["template"], (deployment.get("status") or {}).get("collisionCount"))


def new_replica_set(deployment: Object, replicas: int, revision: int) -> Object:
    """Returns the ReplicaSet for the Deployment's template. Upstream: sync.go, getNewReplicaSet."""
    spec, metadata = deployment["spec"], deployment["metadata"]
    template, code = spec["template"], hash_of(deployment)
    labels = {**((template.get("metadata") or {}).get("labels") or {}), HASH_LABEL: code}
    surge, _ = fenceposts(spec)
    desired = spec.get("replicas", 1)
    copied = {name: value for name, value in (metadata.get("annotations") or {}).items() if name not in NOT_COPIED}
    numbers = {DESIRED_REPLICAS: str(desired), MAX_REPLICAS: str(desired + surge), REVISION: str(revision)}
    selector = spec.get("selector") or {}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{code}",
            "labels": labels,
            "annotations": copied | numbers,
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": {
            "replicas": replicas,
            **({"minReadySeconds": spec["minReadySeconds"]} if spec.get("minReadySeconds") else {}),
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: code}},
            "template": {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}},
        },
    }


# Steps of a rollout.


@final
@dataclass(frozen=True, slots=True)
class Revision:
    """One of a Deployment's ReplicaSets: `replicas` by its spec, `available` ones by its status."""

    name: str
    replicas: int
    available: int

    @staticmethod
    def of(replica_set: Object) -> "Revision":
        spec, status = replica_set["spec"], replica_set.get("status") or {}
        return Revision(replica_set["metadata"]["name"], spec.get("replicas", 1), status.get("availableReplicas", 0))


def rolled(replicas: int, surge: int, unavailable: int, new: Revision, old: Sequence[Revision]) -> Mapping[str, int]:
    """Returns the replicas that each ReplicaSet should have next; those that do not change are left out.

    First the new one grows as far as the surge allows. Only when it cannot, the old ones shrink, oldest first: by
    replicas that are not available, and then by what the available ones can spare.
    """
    total = new.replicas + sum(revision.replicas for revision in old)
    if new.replicas > replicas:
        return {new.name: replicas}
    if new.replicas < replicas and total < replicas + surge:
        return {new.name: new.replicas + min(replicas + surge - total, replicas - new.replicas)}
    return _shrunk(replicas - unavailable, new, old, total)


def _shrunk(min_available: int, new: Revision, old: Sequence[Revision], total: int) -> Mapping[str, int]:
    spare = total - min_available - max(new.replicas - new.available, 0)
    replicas = {revision.name: revision.replicas for revision in old}
    if spare <= 0:
        return {}
    for revision in old:
        unhealthy = min(spare, replicas[revision.name] - revision.available)
        if unhealthy > 0:
            replicas[revision.name] -= unhealthy
            spare -= unhealthy
    dispensable = (
        new.available + sum(min(revision.available, replicas[revision.name]) for revision in old) - min_available
    )
    for revision in old:
        removed = min(max(dispensable, 0), replicas[revision.name])
        replicas[revision.name] -= removed
        dispensable -= removed
    return {revision.name: replicas[revision.name] for revision in old if replicas[revision.name] != revision.replicas}


def scaled(replicas: int, surge: int, revisions: Sequence[Revision]) -> Mapping[str, int]:
    """Returns how replicas are spread over these revisions, the newest last: one gets all, and several get them in
    proportion (sync.go, scale).
    """
    if len(revisions) == 1:
        return {revisions[0].name: replicas}
    allowed = replicas + surge if replicas else 0
    total = sum(revision.replicas for revision in revisions)
    if not total or allowed == total:
        return {}
    leftover = allowed - total
    desired: dict[str, int] = {}
    # The biggest first when growing; and the leftover of rounding goes to the biggest.
    order = sorted(revisions, key=lambda revision: -revision.replicas)
    for revision in order:
        portion = math.trunc((revision.replicas * allowed / total) - revision.replicas)
        portion = min(portion, leftover) if leftover > 0 else max(portion, leftover)
        desired[revision.name] = revision.replicas + portion
        leftover -= portion
    desired[order[0].name] = max(desired[order[0].name] + leftover, 0)
    return {
        revision.name: desired[revision.name] for revision in revisions if desired[revision.name] != revision.replicas
    }


# What may be missing.

_DEFAULT_SHARE: Final = "25%"


def scaled_value(value: int | str, total: int, *, round_up: bool) -> int:
    """Returns a number, or a percentage's share of the total (GetScaledValueFromIntOrPercent). Raises ValueError."""
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise ValueError("invalid type: string is not a percentage")
    exact = int(value[:-1]) * total
    return -(-exact // 100) if round_up else exact // 100


def fenceposts(spec: Object) -> tuple[int, int]:
    """Returns how many pods of a rolling Deployment may be too many, and missing (ResolveFenceposts)."""
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return 0, 0
    rolling = strategy.get("rollingUpdate") or {}
    replicas = spec.get("replicas", 1)
    surge = scaled_value(rolling.get("maxSurge", _DEFAULT_SHARE), replicas, round_up=True)
    unavailable = scaled_value(rolling.get("maxUnavailable", _DEFAULT_SHARE), replicas, round_up=False)
    if not surge and not unavailable:
        # Both may be 0 by rounding; then one pod at a time may be missing, or nothing would ever move.
        unavailable = 1
    return surge, min(unavailable, replicas)


def desired_healthy(budget_spec: Object, expected: int) -> int:
    """Returns how many of the expected pods a budget wants healthy (getExpectedPodCount). Raises ValueError."""
    if budget_spec.get("maxUnavailable") is not None:
        return max(expected - scaled_value(budget_spec["maxUnavailable"], expected, round_up=True), 0)
    if budget_spec.get("minAvailable") is not None:
        return scaled_value(budget_spec["minAvailable"], expected, round_up=True)
    return 0


DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


def deletion_rank(
    *, node: str, phase: str, is_ready: bool, cost: str, neighbours: int
) -> tuple[bool, int, bool, int, int]:
    """Returns a sort key: pods with a smaller one go first. Ages and restarts, which come last, are left to the caller.

    `node` is empty without one; `cost` is the annotation DELETION_COST, 0 if it is no number; `neighbours` are the pods
    of the controller and its siblings on the node: crowded nodes are thinned out first.
    """
    return bool(node), _PHASES.get(phase, 0), is_ready, _number(cost), -neighbours


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        return 0
