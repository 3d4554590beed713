"""Rules for Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, ReplicationController and Scale.

Upstream: validation.go of pkg/apis/apps/validation, batch/validation and core/validation.
"""

from collections.abc import Mapping
from typing import Any, Final

from extender.rules.api_resources import Object
from extender.rules.validation.metadata_rules import (
    is_empty,
    label_selector,
    object_meta,
    object_meta_update,
    percent_errors,
)
from extender.rules.validation.pod_spec_rules import pod_template
from extender.rules.validation.storage_rules import claim_spec
from extender.values.golang.field_errors import (
    FieldError,
    forbidden,
    invalid,
    non_negative,
    not_supported,
    required,
)
from extender.values.objects.name_syntax import dns_label_errors

_TOO_MANY: Final = "cannot be greater than status.replicas"
_PARTS: Final = ("fullyLabeledReplicas", "updatedReplicas", "currentReplicas", "readyReplicas", "availableReplicas")
_MUTABLE: Final = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy", "minReadySeconds",
)  # fmt: skip
_FROZEN: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_RETENTION: Final = ("Retain", "Delete")


def stateful_set(obj: Object) -> list[FieldError]:
    errors = object_meta(obj["metadata"], namespaced=True, rule=dns_label_errors)
    return errors + _stateful_set_spec(obj["spec"])


def stateful_set_update(new: Object, old: Object) -> list[FieldError]:
    errors = object_meta_update(new["metadata"], old["metadata"]) + _stateful_set_spec(new["spec"])
    rest = [{name: value for name, value in obj["spec"].items() if name not in _MUTABLE} for obj in (new, old)]
    if rest[0] != rest[1]:
        errors.append(forbidden("spec", _FROZEN))
    return errors


def numbers_update(new: Object, old: Object) -> list[FieldError]:
    errors = object_meta_update(new["metadata"], old["metadata"])
    for name, value in (new.get("status") or {}).items():
        errors += non_negative(f"status.{name}", value) if isinstance(value, int) else []
    return errors


def replication_controller(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=True)
    errors += non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    selector = {"matchLabels": spec.get("selector") or {}}
    if is_empty(selector):
        errors.append(required("spec.selector"))
    errors += non_negative("spec.replicas", spec.get("replicas"))
    template = spec.get("template")
    if template is None:
        return [*errors, required("spec.template")]
    return errors + _template("spec.template", template, selector, "ReplicationController")


def status_update(new: Object, old: Object) -> list[FieldError]:
    status = new.get("status") or {}
    errors = numbers_update(new, old)
    counts = {name: status.get(name, 0) for name in (*_PARTS, "replicas")}
    errors += [
        invalid(f"status.{name}", counts[name], _TOO_MANY) for name in _PARTS if counts[name] > counts["replicas"]
    ]
    if counts["availableReplicas"] > counts["readyReplicas"]:
        errors.append(
            invalid("status.availableReplicas", counts["availableReplicas"], "cannot be greater than readyReplicas")
        )
    return errors


def validate_scale(obj: Object) -> list[FieldError]:
    """Returns the errors of a Scale. Upstream: pkg/apis/autoscaling/validation, ValidateScale."""
    return object_meta(obj["metadata"], namespaced=True) + non_negative("spec.replicas", obj["spec"].get("replicas"))


def positive_int_or_percent(path: str, value: int | str) -> list[FieldError]:
    """Returns the errors of a count or percentage (ValidatePositiveIntOrPercent, IsNotMoreThan100Percent)."""
    if isinstance(value, int):
        return non_negative(path, value)
    wrong = percent_errors(value)
    if not wrong and int(value[:-1]) > 100:
        wrong = ["must not be greater than 100%"]
    return [invalid(path, value, error) for error in wrong]


def deployment_spec(spec: Object) -> list[FieldError]:
    errors = non_negative("spec.replicas", spec.get("replicas")) + _selector_and_template(spec, "deployment")
    errors += _strategy("spec.strategy", spec.get("strategy") or {})
    for name in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        errors += non_negative(f"spec.{name}", spec.get(name))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        errors.append(invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return errors


def replica_set_spec(spec: Object) -> list[FieldError]:
    errors = non_negative("spec.replicas", spec.get("replicas")) + non_negative(
        "spec.minReadySeconds", spec.get("minReadySeconds")
    )
    return errors + _selector_and_template(spec, "deployment")


def _stateful_set_spec(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.get("podManagementPolicy") not in ("OrderedReady", "Parallel"):
        errors.append(
            invalid(
                "spec.podManagementPolicy", spec.get("podManagementPolicy", ""), "must be 'OrderedReady' or 'Parallel'"
            )
        )
    strategy = spec.get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        errors.append(invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'"))
    elif strategy["type"] == "OnDelete" and rolling is not None:
        errors.append(
            invalid("spec.updateStrategy.rollingUpdate", rolling, "only allowed for updateStrategy 'RollingUpdate'")
        )
    elif rolling is not None:
        errors += non_negative("spec.updateStrategy.rollingUpdate.partition", rolling.get("partition"))
    for name in ("whenDeleted", "whenScaled"):
        policy = (spec.get("persistentVolumeClaimRetentionPolicy") or {}).get(name)
        if policy is not None and policy not in _RETENTION:
            errors.append(not_supported(f"spec.persistentVolumeClaimRetentionPolicy.{name}", policy, _RETENTION))
    for name in ("replicas", "minReadySeconds", "revisionHistoryLimit"):
        errors += non_negative(f"spec.{name}", spec.get(name))
    errors += non_negative("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))
    templates = spec.get("volumeClaimTemplates") or ()
    for place, template in enumerate(templates):
        errors += claim_spec(f"spec.volumeClaimTemplates[{place}].spec", template.get("spec") or {})
    return errors + _selector_and_template(_with_claims(spec), "statefulset")


def daemon_set_spec(spec: Object) -> list[FieldError]:
    errors = _selector_and_template(spec, "daemonset")
    for name in ("minReadySeconds", "revisionHistoryLimit"):
        errors += non_negative(f"spec.{name}", spec.get(name))
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return errors
    if strategy.get("type") != "RollingUpdate":
        return [*errors, not_supported("spec.updateStrategy", strategy, ("RollingUpdate", "OnDelete"))]
    path, rolling = "spec.updateStrategy.rollingUpdate", strategy.get("rollingUpdate") or {}
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    errors += positive_int_or_percent(f"{path}.maxUnavailable", unavailable)
    errors += positive_int_or_percent(f"{path}.maxSurge", surge)
    if (unavailable in (0, "0%")) == (surge in (0, "0%")):
        if surge in (0, "0%"):
            errors.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
        else:
            errors.append(invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    return errors


def job_spec(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"):
        errors += non_negative(f"spec.{name}", spec.get(name))
    mode = spec.get("completionMode")
    if mode not in ("NonIndexed", "Indexed"):
        errors.append(not_supported("spec.completionMode", mode or "", ("NonIndexed", "Indexed")))
    elif mode == "Indexed" and spec.get("completions") is None:
        errors.append(required("spec.completions", "when completion mode is Indexed"))
    template, path = spec.get("template") or {}, "spec.template"
    if (template.get("spec") or {}).get("restartPolicy") not in ("OnFailure", "Never"):
        errors.append(required(f"{path}.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    return errors + pod_template(path, template)


def _with_claims(spec: Object) -> Object:
    """Returns the spec with the volumes of its pods: a claim template replaces a volume of its name."""
    names = [template["metadata"].get("name", "") for template in spec.get("volumeClaimTemplates") or ()]
    template = spec.get("template") or {}
    if not names:
        return spec
    inner = template.get("spec") or {}
    volumes = [volume for volume in inner.get("volumes") or () if volume.get("name") not in names]
    volumes = [*volumes, *({"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names)]
    return spec | {"template": template | {"spec": inner | {"volumes": volumes}}}


def _selector_and_template(spec: Object, kind: str) -> list[FieldError]:
    """Checks that the selector is not empty, and selects the labels of the template."""
    selector = spec.get("selector")
    pods_of = {"statefulset": "StatefulSet", "daemonset": "DaemonSet"}.get(kind, "ReplicaSet")
    errors = label_selector("spec.selector", selector) if selector is not None else [required("spec.selector")]
    if selector is not None and errors:
        return [*errors, invalid("spec.selector", selector, "invalid label selector")]
    if selector is not None and is_empty(selector):
        errors.append(invalid("spec.selector", selector, f"empty selector is invalid for {kind}"))
    return errors + _template("spec.template", spec.get("template") or {}, selector, pods_of)


def _template(path: str, template: Object, selector: Mapping[str, Any] | None, kind: str) -> list[FieldError]:
    labels = (template.get("metadata") or {}).get("labels") or {}
    errors: list[FieldError] = []
    # A missing selector selects nothing, an empty one everything.
    if selector is None or not (is_empty(selector) or _matches(selector, labels)):
        errors.append(invalid(f"{path}.metadata.labels", labels or None, "`selector` does not match template `labels`"))
    errors += pod_template(path, template)
    spec = template.get("spec") or {}
    if spec.get("restartPolicy") != "Always":
        errors.append(not_supported(f"{path}.spec.restartPolicy", spec.get("restartPolicy", ""), ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        errors.append(
            forbidden(f"{path}.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported")
        )
    return errors


def _matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    for requirement in selector.get("matchExpressions") or ():
        value, values = labels.get(requirement["key"]), requirement.get("values") or ()
        holds = {
            "In": value is not None and value in values,
            "NotIn": value is None or value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }
        if not holds.get(requirement["operator"], False):
            return False
    return True


def _strategy(path: str, strategy: Object) -> list[FieldError]:
    """Upstream: ValidateDeploymentStrategy."""
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "Recreate":
        detail = "may not be specified when strategy `type` is 'Recreate'"
        return [forbidden(f"{path}.rollingUpdate", detail)] if rolling is not None else []
    if strategy.get("type") != "RollingUpdate":
        return [not_supported(path, strategy, ("Recreate", "RollingUpdate"))]
    rolling = rolling or {}
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    errors = positive_int_or_percent(f"{path}.rollingUpdate.maxUnavailable", unavailable)
    if isinstance(surge, int) or percent_errors(surge):
        errors += positive_int_or_percent(f"{path}.rollingUpdate.maxSurge", surge)
    if unavailable in (0, "0%") and surge in (0, "0%"):
        errors.append(invalid(f"{path}.rollingUpdate.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors
