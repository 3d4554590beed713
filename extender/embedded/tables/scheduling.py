"""Disruption budgets, priority classes, and what dynamic resource allocation knows.

Upstream: pkg/printers/internalversion/printers.go, printPodDisruptionBudget, printPriorityClass and following (v1.36.2).
"""

from typing import Any, Final

from extender.embedded.resources import Object
from extender.embedded.tables.ages import Ages
from extender.embedded.tables.layout import AGE, NAME, Column, Layout, is_going, name_of, spec_of, status_of


def _pod_disruption_budget(obj: Object, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    return [
        name_of(obj),
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        status_of(obj).get("disruptionsAllowed") or 0,
        ages.of(obj),
    ]


POD_DISRUPTION_BUDGETS: Final = Layout(
    (
        NAME,
        Column("Min Available", "The minimum number of pods that must be available."),
        Column("Max Unavailable", "The maximum number of pods that may be unavailable."),
        Column("Allowed Disruptions", "Calculated number of pods that may be disrupted at this time.", "integer"),
        AGE,
    ),
    _pod_disruption_budget,
)


def _priority_class(obj: Object, ages: Ages) -> list[Any]:
    return [name_of(obj), obj.get("value") or 0, bool(obj.get("globalDefault")), ages.of(obj), obj.get("preemptionPolicy") or ""]


PRIORITY_CLASSES: Final = Layout(
    (
        NAME,
        Column("Value", "The priority of pods of this class.", "integer"),
        Column("Global-Default", "Whether pods that name no class are of this one.", "boolean"),
        AGE,
        Column("PreemptionPolicy", "Whether pods of this class may preempt others."),
    ),
    _priority_class,
)


def _resource_claim(obj: Object, ages: Ages) -> list[Any]:
    return [name_of(obj), ",".join(_claim_states(obj)), ages.of(obj)]


def _claim_states(claim: Object) -> list[str]:
    status = status_of(claim)
    states = ["deleted"] if is_going(claim) else []
    if status.get("allocation") is None:
        return states or ["pending"]
    return [*states, "allocated", *(["reserved"] if status.get("reservedFor") else [])]


RESOURCE_CLAIMS: Final = Layout(
    (NAME, Column("State", "A summary of the current state (allocated, pending, reserved, etc.)."), AGE), _resource_claim
)


def _only_age(obj: Object, ages: Ages) -> list[Any]:
    return [name_of(obj), ages.of(obj)]


ONLY_AGE: Final = Layout((NAME, AGE), _only_age)
"""Resource claim templates and device classes: nothing but how old they are."""


def _resource_slice(obj: Object, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    return [
        name_of(obj),
        spec.get("nodeName") or "",
        spec.get("driver") or "",
        (spec.get("pool") or {}).get("name") or "",
        ages.of(obj),
    ]


RESOURCE_SLICES: Final = Layout(
    (
        NAME,
        Column("Node", "The node that the devices belong to."),
        Column("Driver", "The driver that offers the devices."),
        Column("Pool", "The pool that the slice is a part of."),
        AGE,
    ),
    _resource_slice,
)
