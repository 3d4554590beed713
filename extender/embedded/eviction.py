"""The eviction subresource: a pod goes if its disruption budget allows it.

Upstream: pkg/registry/core/pod/storage/eviction.go (v1.36.2).
"""

from typing import Any, Final

import msgspec

from extender.embedded import decoding, faces, registry, schema, statuses
from extender.embedded.binding import set_condition
from extender.embedded.query import WriteOptions, dry_run_errors, options_invalid
from extender.embedded.resources import POD_DISRUPTION_BUDGETS, PODS, Object, Resource
from extender.embedded.statuses import ApiStatus
from extender.embedded.store import Stored
from extender.objects.label_selectors import SelectorError, selector_of
from extender.objects.meta import LabelSelector

MAX_DISRUPTED_PODS: Final = 2000
"""More evictions than these the controller has to confirm first."""
_TOO_MANY: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_BUDGET: Final = Resource("policy", "v1", "poddisruptionbudget", "poddisruptionbudget", "PodDisruptionBudget", True)
"""What refusals call it: upstream leaves out the plural."""


def evict(reg: registry.Registry, namespace: str, name: str, raw: Any, write: WriteOptions | None = None) -> Object:
    """Delete a pod as its disruption budget allows; a Status.

    Raises:
        ApiStatus: 429 if the budget does not allow it now; 404 if there is no such pod.
    """
    options = _read(name, raw, write or WriteOptions())
    stored = reg.store.get(PODS, namespace, name)
    if stored is None:
        raise statuses.not_found(PODS, name)
    pod = faces.shown(PODS, stored)
    if _is_beyond_budgets(pod):
        if _is_pending(pod):
            _pin(options, pod)
        reg.delete(PODS, namespace, name, _disrupted(reg, stored, pod, options))
        return statuses.success(201)
    budgets = _budgets_of(reg, namespace, stored)
    if len(budgets) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise ApiStatus(500, "", message)
    for kept in budgets:
        budget = faces.shown(POD_DISRUPTION_BUDGETS, kept)
        if _needs_no_budget(pod, budget):
            _pin(options, pod)
        else:
            _spend(reg, kept, budget, name, is_dry_run=bool(options.get("dryRun")))
    reg.delete(PODS, namespace, name, _disrupted(reg, stored, pod, options))
    return statuses.success(201)


def _read(name: str, raw: Any, write: WriteOptions) -> Object:
    """The DeleteOptions of an Eviction."""
    eviction = decoding.read(schema.lookup("policy", "v1", "Eviction"), raw, write, "Eviction")
    if eviction["metadata"].get("name", "") != name:
        raise statuses.bad_request("name in URL does not match name in Eviction object")
    options: Object = dict(eviction.get("deleteOptions") or {})
    errors = dry_run_errors(options.get("dryRun") or ())
    if errors:
        raise options_invalid("DeleteOptions", errors)
    if write.dry_run:
        options["dryRun"] = ["All"]
    return options


def _is_beyond_budgets(pod: Object) -> bool:
    """Terminal, pending or terminating: it disrupts nobody any more. Upstream: canIgnorePDB."""
    return _is_pending(pod) or _is_done(pod)


def _is_pending(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") == "Pending" and "deletionTimestamp" not in pod["metadata"]


def _is_done(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed") or "deletionTimestamp" in pod["metadata"]


def _pin(options: Object, pod: Object) -> None:
    """The pod must still be the one that was looked at when it is deleted."""
    wanted = options["preconditions"] = dict(options.get("preconditions") or {})
    wanted.setdefault("resourceVersion", pod["metadata"]["resourceVersion"])


def _disrupted(reg: registry.Registry, stored: Stored, pod: Object, options: Object) -> Object:
    """Say on the pod why it goes; the options, for the pod as it is then. Upstream: addConditionAndDeletePod."""
    wanted = options.get("preconditions") or {}
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    if uid is not None and uid != pod["metadata"]["uid"]:
        raise statuses.wrong_uid(PODS, stored.key, stored.name, uid, pod["metadata"]["uid"])
    if version is not None and version != str(stored.resource_version):
        raise statuses.wrong_version(PODS, stored.key, stored.name, version, str(stored.resource_version))
    if options.get("dryRun"):
        return options
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    set_condition(pod.setdefault("status", {}), condition, registry.timestamp(reg.now()))
    if pod != faces.shown(PODS, stored):
        reg.replace(PODS, stored, pod)
    return {**options, "preconditions": {**wanted, "resourceVersion": pod["metadata"]["resourceVersion"]}}


def _budgets_of(reg: registry.Registry, namespace: str, pod: Stored) -> list[Stored]:
    found = []
    for stored in reg.store.read(POD_DISRUPTION_BUDGETS, namespace):
        selector = stored.decoded()["spec"].get("selector")
        if not selector:
            continue
        try:
            if selector_of(msgspec.convert(selector, LabelSelector)).matches(pod.labels):
                found.append(stored)
        except (SelectorError, msgspec.ValidationError):
            # One that cannot be read selects nothing.
            continue
    return found


def _needs_no_budget(pod: Object, budget: Object) -> bool:
    """A pod that is not ready counts for nothing, if enough others are or the budget says so."""
    status = budget["status"]
    conditions = pod.get("status", {}).get("conditions", ())
    if any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return bool(0 < status.get("desiredHealthy", 0) <= status.get("currentHealthy", 0))


def _spend(reg: registry.Registry, stored: Stored, budget: Object, pod: str, *, is_dry_run: bool) -> None:
    """Take one disruption from the budget. Upstream: checkAndDecrement."""
    status, name = budget["status"], stored.name
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _too_many(f"The disruption budget {name} is still being processed by the server.", 10)
    allowed, disrupted = status.get("disruptionsAllowed", 0), status.get("disruptedPods", {})
    if allowed < 0:
        raise statuses.forbidden(_BUDGET, name, "pdb disruptions allowed is negative")
    if len(disrupted) > MAX_DISRUPTED_PODS:
        raise statuses.forbidden(_BUDGET, name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if allowed == 0:
        raise _too_many(_shortage(name, status), 0)
    if is_dry_run:
        return
    now = registry.timestamp(reg.now())
    status["disruptionsAllowed"] = allowed - 1
    status["disruptedPods"] = {**disrupted, pod: now}
    if allowed == 1:
        _disallow(budget, now)
    reg.replace(POD_DISRUPTION_BUDGETS, stored, budget)


def _shortage(name: str, status: Object) -> str:
    desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    for condition in status.get("conditions", ()):
        if condition["type"] == "DisruptionAllowed" and condition["status"] == "False" and condition["reason"] == "SyncFailed":
            return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {condition['message']}"
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _disallow(budget: Object, now: str) -> None:
    """Upstream: component-helpers/apps/poddisruptionbudget, UpdateDisruptionAllowedCondition."""
    conditions = budget["status"].setdefault("conditions", [])
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": budget["status"].get("observedGeneration", 0),
        "lastTransitionTime": now,
        "reason": "InsufficientPods",
        "message": "",
    }
    for former in conditions:
        if former["type"] == "DisruptionAllowed":
            if former["status"] == "False":
                condition["lastTransitionTime"] = former["lastTransitionTime"]
            former.update(condition)
            return
    conditions.append(condition)


def _too_many(why: str, retry_after: int) -> ApiStatus:
    return statuses.too_many_requests(_TOO_MANY, retry_after, [{"reason": "DisruptionBudget", "message": why}])
