"""The status of PodDisruptionBudgets: how many of their pods are healthy, and how many may be disrupted.

Pods are counted as they change, not all at once. An owner that this cluster never held (as in a dump of nodes and
pods) is taken to want as many pods as there are; upstream's controller gives up.

Upstream: pkg/controller/disruption/disruption.go; component-helpers/apps/poddisruptionbudget/helpers.go.
"""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, final

from extender.rules.api_resources import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Object,
    of_kind,
)
from extender.values.golang.times import moment_of
from extender.values.objects.label_selectors import Selector
from extender.values.workloads.deployments import desired_healthy
from extender.values.workloads.templates import selector_in
from reprieve.cluster.controllers.controller_loop import SETTLING, Controller, ControllerContext, Steps
from reprieve.cluster.controllers.controller_writes import RequeueAfter, changed_status
from reprieve.cluster.controllers.observed_objects import Key, Observed, ObservedOwner, ObservedPod
from reprieve.cluster.controllers.pod_tallies import PodTallies, PodTally, is_healthy
from reprieve.cluster.registry.conditions import condition, with_condition

_SCALED: Final = (REPLICATION_CONTROLLERS, REPLICA_SETS, DEPLOYMENTS, STATEFUL_SETS)
_WITHOUT_SCALE: Final = ("DaemonSet", "Job", "Node")
"""Kinds that own pods and have no scale subresource, for which upstream knows no expected number of pods."""
_STALE: Final = timedelta(minutes=2)
"""The time within which a pod with a DisruptionTarget must be deleted. Upstream: stalePodDisruptionTimeout."""


class _NoScaleError(Exception):
    """The expected number of pods is unknown."""


@final
class Disruption(Controller):
    """Controls PodDisruptionBudgets. Keys are theirs, and (namespace, "") for the budgets of pods that have changed."""

    name = "disruption"

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._selectors: defaultdict[str, dict[str, Selector]] = defaultdict(dict)
        self._pods: defaultdict[str, PodTallies] = defaultdict(PodTallies)

    def observe(self, old: Observed | None, new: Observed | None) -> None:
        obj = new or old
        if obj is None:
            return
        if obj.resource is POD_DISRUPTION_BUDGETS:
            if new is None:
                self._selectors[obj.namespace].pop(obj.name, None)
                return
            self._selectors[new.namespace][new.name] = selector_in(new.content())
            self.queue.add(new.key)
        elif new is not None and new.resource in _SCALED:
            self._observe_workload(new)

    def _observe_workload(self, workload: Observed) -> None:
        below = self.cluster.controlled(REPLICA_SETS, workload.uid) if workload.resource is DEPLOYMENTS else ()
        for owner in (workload, *below):
            for labels in self.cluster.pods_of(owner.uid).labels:
                self._pods[workload.namespace].changed(labels)
        self._look_at_changed(workload.namespace)

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        if old is not None and new is not None and _counts_alike(old, new):
            return
        for pod, one in ((old, -1), (new, 1)):
            if pod is not None:
                self._pods[pod.namespace].count(pod, one)
                self._look_at_changed(pod.namespace)

    def _look_at_changed(self, namespace: str) -> None:
        self.queue.add_after((namespace, ""), SETTLING)

    def reconcile(self, key: Key) -> Steps:
        namespace, name = key
        if not name:
            self._look_at_budgets(namespace)
            return
        budget, selector = self.cluster.get(POD_DISRUPTION_BUDGETS, *key), self._selectors[namespace].get(name)
        if budget is None or selector is None:
            return
        content = budget.content()
        tally = self._pods[namespace].of(selector)
        delay = None
        try:
            expected = self._expected(namespace, tally) if _needs_scale(content["spec"]) else tally.total
            names = (content.get("status") or {}).get("disruptedPods") or {}
            pods = [(victim, self.cluster.pods.get((namespace, victim))) for victim in names]
            victims = {victim: pod for victim, pod in pods if pod is not None and selector.matches(pod.labels.by_name)}
            status, delay = budget_status(
                content, expected=expected, healthy=tally.healthy, victims=victims, now=self.now()
            )
        except (_NoScaleError, ValueError) as exc:
            status = failed_status(content, str(exc), self.now())
        yield from changed_status(budget, content, status)
        if delay is not None:
            yield RequeueAfter(delay)

    def _look_at_budgets(self, namespace: str) -> None:
        pods = self._pods[namespace]
        changed = pods.take_changed()
        for name, selector in self._selectors[namespace].items():
            if pods.selected(selector) & changed:
                self.queue.add((namespace, name))
        pods.drop_empty()
        if pods.is_empty:
            del self._pods[namespace]

    def _expected(self, namespace: str, tally: PodTally) -> int:
        """Returns the sum of the replicas of the pods' controllers (getExpectedScale)."""
        scales: dict[str, int] = {}
        for owner, count, pod in tally.owners.values():
            uid, scale = self._scale(namespace, owner, count, pod)
            scales[uid] = max(scale, scales.get(uid, 0))
        return sum(scales.values())

    def _scale(self, namespace: str, owner: ObservedOwner, count: int, pod: str) -> tuple[str, int]:
        resource = of_kind(owner.api_version, owner.kind)
        workload = None if resource is None else self.cluster.get(resource, namespace, owner.name)
        if resource not in _SCALED or workload is None or workload.uid != owner.uid:
            if owner.kind in _WITHOUT_SCALE or self.cluster.is_gone(owner.uid):
                raise _NoScaleError(f'found no controllers for pod "{pod}"')
            return owner.uid, count
        above = workload.controller
        if resource is REPLICA_SETS and above is not None and above.kind == DEPLOYMENTS.kind:
            deployment = self.cluster.get(DEPLOYMENTS, namespace, above.name)
            if deployment is not None and deployment.uid == above.uid:
                workload = deployment
        replicas = workload.content()["spec"].get("replicas", 1)
        return workload.uid, replicas if isinstance(replicas, int) else 1


@final
class StaleDisruptions(Controller):
    """Sets DisruptionTarget to False on pods that were not deleted in time (syncStalePodDisruption)."""

    name = "stale disruption"

    def observe_pod(self, old: ObservedPod | None, new: ObservedPod | None) -> None:
        if new is not None and new.is_victim and not new.deleted:
            self.queue.add_after(new.key, _STALE.total_seconds())

    def reconcile(self, key: Key) -> Steps:
        pod = self.cluster.pods.get(key)
        if pod is None or not pod.is_victim or not pod.is_active:
            return
        content = pod.content()
        target = condition(content["status"].get("conditions"), "DisruptionTarget") or {}
        since = moment_of(target.get("lastTransitionTime"))
        remaining = (since + _STALE - self.now()).total_seconds() if since is not None else 0.0
        if remaining > 0:
            yield RequeueAfter(remaining)
        elif target.get("reason") != "TerminationByKubelet":
            conditions = with_condition(
                content["status"]["conditions"], {"type": "DisruptionTarget", "status": "False"}, self.now()
            )
            yield from changed_status(pod, content, content["status"] | {"conditions": conditions})


def _counts_alike(old: ObservedPod, new: ObservedPod) -> bool:
    return is_healthy(old) == is_healthy(new) and old.labels is new.labels and old.controller == new.controller


DELETION_TIMEOUT: Final = timedelta(minutes=2)
"""The time for which a pod whose eviction was granted counts as gone. Upstream: DeletionTimeout."""


def budget_status(
    budget: Object, *, expected: int, healthy: int, victims: Mapping[str, ObservedPod], now: datetime
) -> tuple[Object, float | None]:
    """Returns the status, and the seconds until a granted eviction expires. Raises ValueError for a bad percentage.

    Arguments:
        expected: the number of pods that the budget refers to, desired or present ones.
        healthy: the number of healthy pods, granted evictions included.
        victims: the existing pods that `status.disruptedPods` names, by name.
    """
    spec, old = budget["spec"], budget.get("status") or {}
    disrupted, delay = {}, None
    # An eviction that was granted counts as done until the pod is deleted, or until the grant expires.
    for name, granted_at in (old.get("disruptedPods") or {}).items():
        pod, since = victims.get(name), moment_of(granted_at)
        if pod is None or pod.deleted or since is None or since + DELETION_TIMEOUT < now:
            continue
        disrupted[name] = granted_at
        remaining = (since + DELETION_TIMEOUT - now).total_seconds()
        delay = remaining if delay is None else min(delay, remaining)
        healthy -= is_healthy(pod) and remaining > 0
    desired = desired_healthy(spec, expected)
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    generation = budget["metadata"].get("generation", 0)
    status: Object = {
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "disruptionsAllowed": allowed,
        **({"disruptedPods": disrupted} if disrupted else {}),
        **({"observedGeneration": generation} if generation else {}),
    }
    reason = "SufficientPods" if allowed else "InsufficientPods"
    status["conditions"] = _with_allowed(old, status, reason, "", now)
    # Half a second is added, so that the grant has expired at the next look.
    return status, None if delay is None else delay + 0.5


def failed_status(budget: Object, message: str, now: datetime) -> Object:
    """Returns the status of a budget that cannot be calculated: it allows no disruption. Upstream: failSafe."""
    status = dict(budget.get("status") or {})
    status["disruptionsAllowed"] = 0
    status["conditions"] = _with_allowed(status, status, "SyncFailed", message, now)
    for name in ("currentHealthy", "desiredHealthy", "expectedPods"):
        status.setdefault(name, 0)
    return status


def _with_allowed(old: Object, status: Object, reason: str, message: str, now: datetime) -> list[Object]:
    """Returns the conditions of the old status with DisruptionAllowed as the new status implies it."""
    conditions: list[Object] = old.get("conditions") or []
    is_allowed, observed = str(status["disruptionsAllowed"] > 0), status.get("observedGeneration")
    allowance: Object = {"type": "DisruptionAllowed", "status": is_allowed, "reason": reason, "message": message}
    if observed:
        allowance["observedGeneration"] = observed
    old_allowance = condition(conditions, allowance["type"])
    if old_allowance is not None and all(old_allowance.get(name) == value for name, value in allowance.items()):
        return conditions
    return with_condition(conditions, allowance, now)


def _needs_scale(budget_spec: Object) -> bool:
    return budget_spec.get("maxUnavailable") is not None or isinstance(budget_spec.get("minAvailable"), str)
