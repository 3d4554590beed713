"""The spec of a pod, of its own or in a template.

Upstream: pkg/apis/core/validation/validation.go, ValidatePodSpec, ValidatePodTemplateSpec (v1.36.2).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from extender.embedded.resources import Object
from extender.embedded.validation import scheduling
from extender.embedded.validation.containers import Surroundings, containers, init_containers
from extender.embedded.validation.metadata import annotations, label_name, labels
from extender.embedded.validation.names import MAX_ID, dns_label, id_errors, ip, range_error
from extender.embedded.validation.resources import container_resources, pod_resources, pod_within_containers
from extender.embedded.validation.volumes import volumes
from extender.golang.field_errors import (
    FieldError,
    all_invalid,
    duplicate,
    forbidden,
    in_go,
    invalid,
    not_supported,
    one_of,
    required,
)
from extender.objects.validation import subdomain_errors

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_SYSTEMS: Final = ("linux", "windows")
_MAX_NAMESERVERS: Final = 3


def pod_spec(path: str, spec: Object, *, is_pod: bool) -> list[FieldError]:
    """The spec; `is_pod`: it stands in a Pod and not in a template."""
    errors: list[FieldError] = []
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    known, wrong = volumes(f"{path}.volumes", spec.get("volumes") or ())
    claims = spec.get("resourceClaims") or ()
    around = Surroundings(known, {claim["name"] for claim in claims if claim.get("name")}, grace)
    ordinary = spec.get("containers") or ()
    errors += wrong + _resource_claims(f"{path}.resourceClaims", claims)
    errors += containers(f"{path}.containers", ordinary, around)
    errors += init_containers(f"{path}.initContainers", spec.get("initContainers") or (), ordinary, around)
    if spec.get("resources") is not None:
        errors += pod_resources(f"{path}.resources", spec["resources"]) + pod_within_containers(f"{path}.resources", spec)
    errors += _host_network(path, spec, is_pod)
    errors += one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES)
    errors += one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    errors += labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    errors += _security(f"{path}.securityContext", spec.get("securityContext") or {})
    errors += scheduling.affinity(f"{path}.affinity", spec.get("affinity"))
    errors += _dns_config(f"{path}.dnsConfig", spec)
    for place, gate in enumerate(spec.get("readinessGates") or ()):
        errors += label_name(f"{path}.readinessGates[{place}].conditionType", gate.get("conditionType", ""))
    errors += _scheduling_gates(f"{path}.schedulingGates", spec.get("schedulingGates") or ())
    errors += scheduling.topology_spread(f"{path}.topologySpreadConstraints", spec.get("topologySpreadConstraints") or ())
    errors += _names(path, spec)
    errors += scheduling.tolerations(f"{path}.tolerations", spec.get("tolerations") or ())
    errors += _host_aliases(f"{path}.hostAliases", spec.get("hostAliases") or ())
    for name in ("priorityClassName", "runtimeClassName"):
        if spec.get(name) is not None:
            errors += all_invalid(f"{path}.{name}", spec[name], subdomain_errors(spec[name]))
    if spec.get("preemptionPolicy") is not None:
        errors += one_of(f"{path}.preemptionPolicy", spec["preemptionPolicy"], _PREEMPTION_POLICIES)
    if spec.get("overhead") is not None:
        errors += container_resources(f"{path}.overhead", {"limits": spec["overhead"]}, ())
    return errors + _system(f"{path}.os", spec.get("os"))


def pod_template(path: str, template: Object) -> list[FieldError]:
    """What the pods of a workload look like. Upstream: ValidatePodTemplateSpec."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors = labels(f"{path}.labels", metadata.get("labels")) + annotations(f"{path}.annotations", metadata.get("annotations"))
    errors += pod_spec(f"{path}.spec", spec, is_pod=False)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"))
    return errors


def _resource_claims(path: str, claims: Sequence[Object]) -> list[FieldError]:
    errors = []
    names = set()
    for place, claim in enumerate(claims):
        here, name = f"{path}[{place}]", claim.get("name", "")
        if not name:
            errors.append(required(f"{here}.name"))
        elif name in names:
            errors.append(duplicate(f"{here}.name", name))
        else:
            errors += dns_label(f"{here}.name", name)
            names.add(name)
        given = [source for source in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(source) is not None]
        shown = in_go({"name": "", **claim}, "Name", "ResourceClaimName", "ResourceClaimTemplateName")
        if len(given) > 1:
            errors.append(invalid(here, shown, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"))
        if not given:
            errors.append(invalid(here, shown, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"))
        for source in given:
            errors += all_invalid(f"{here}.{source}", claim[source], subdomain_errors(claim[source]))
    return errors


def _host_network(path: str, spec: Object, is_pod: bool) -> list[FieldError]:
    """Upstream: validatePodHostNetworkDeps."""
    errors = []
    for place, container in enumerate(spec.get("containers") or () if spec.get("hostNetwork") else ()):
        for number, port in enumerate(container.get("ports") or ()):
            host_port = port.get("hostPort", 0)
            if (is_pod or host_port) and host_port != port.get("containerPort", 0):
                here = f"{path}.containers[{place}].ports[{number}].hostPort"
                errors.append(invalid(here, host_port, "must match `containerPort` when `hostNetwork` is true"))
    return errors


def _security(path: str, context: Mapping[str, Any]) -> list[FieldError]:
    """Upstream: validatePodSpecSecurityContext."""
    errors = []
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        if context.get(name) is not None:
            errors += all_invalid(f"{path}.{name}", context[name], id_errors(context[name]))
    for place, group in enumerate(context.get("supplementalGroups") or ()):
        errors += all_invalid(f"{path}.supplementalGroups[{place}]", group, id_errors(group))
    for name, supported in (
        ("fsGroupChangePolicy", ("Always", "OnRootMismatch")),
        ("supplementalGroupsPolicy", ("Merge", "Strict")),
        ("seLinuxChangePolicy", ("MountOption", "Recursive")),
    ):
        if context.get(name) is not None and context[name] not in supported:
            errors.append(not_supported(f"{path}.{name}", context[name], supported))
    return errors


def _dns_config(path: str, spec: Object) -> list[FieldError]:
    """Upstream: validatePodDNSConfig."""
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not config.get("nameservers"):
            return [required(f"{path}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None")]
    errors = []
    servers = (config or {}).get("nameservers") or ()
    if len(servers) > _MAX_NAMESERVERS:
        errors.append(invalid(f"{path}.nameservers", list(servers), f"must not have more than {_MAX_NAMESERVERS} nameservers"))
    for place, server in enumerate(servers):
        errors += ip(f"{path}.nameservers[{place}]", server)
    for place, option in enumerate((config or {}).get("options") or ()):
        if not option.get("name"):
            errors.append(required(f"{path}.options[{place}]", "must not be empty"))
    return errors


def _scheduling_gates(path: str, gates: Sequence[Object]) -> list[FieldError]:
    errors = []
    seen = set()
    for place, gate in enumerate(gates):
        name = gate.get("name", "")
        errors += label_name(f"{path}[{place}]", name)
        if name in seen:
            errors.append(duplicate(f"{path}[{place}]", name))
        seen.add(name)
    return errors


def _names(path: str, spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in ("serviceAccountName", "nodeName"):
        if spec.get(name):
            errors += all_invalid(f"{path}.{name}", spec[name], subdomain_errors(spec[name]))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_ID:
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, range_error(1, MAX_ID)))
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            errors += dns_label(f"{path}.{name}", spec[name])
    return errors


def _host_aliases(path: str, aliases: Sequence[Object]) -> list[FieldError]:
    errors = []
    for place, alias in enumerate(aliases):
        errors += ip(f"{path}[{place}].ip", alias.get("ip", ""))
        for number, name in enumerate(alias.get("hostnames") or ()):
            errors += all_invalid(f"{path}[{place}].hostnames[{number}]", name, subdomain_errors(name))
    return errors


def _system(path: str, system: Object | None) -> list[FieldError]:
    """Upstream: validateOS."""
    if system is None:
        return []
    if not system.get("name"):
        return [required(f"{path}.name", "cannot be empty")]
    return [] if system["name"] in _SYSTEMS else [not_supported(f"{path}.name", system["name"], _SYSTEMS)]
