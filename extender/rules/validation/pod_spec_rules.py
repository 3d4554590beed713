"""Rules for the spec of a pod or template: names, containers, volumes, and the fields for scheduling.

Fields that only a kubelet or a network reads (probes, environment, mounts, security, DNS) are not checked.

Upstream: pkg/apis/core/validation/validation.go, ValidatePodSpec, ValidatePodTemplateSpec.
"""

from collections.abc import Collection, Sequence
from typing import Final

from extender.rules.api_resources import Object
from extender.rules.validation import placement_rules
from extender.rules.validation.amount_rules import container_resources, pod_resources, pod_within_containers
from extender.rules.validation.metadata_rules import (
    MAX_INT32,
    annotations,
    dns_label,
    label_name,
    labels,
    port_errors,
    range_error,
)
from extender.rules.validation.storage_rules import claim_spec
from extender.values.golang.field_errors import (
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
from extender.values.objects.name_syntax import subdomain_errors

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")


def pod_spec(path: str, spec: Object, *, is_pod: bool) -> list[FieldError]:
    """Returns the errors of a spec. `is_pod`: it is the spec of a Pod and not of a template."""
    errors: list[FieldError] = []
    if spec.get("terminationGracePeriodSeconds") is None:
        errors.append(required(f"{path}.terminationGracePeriodSeconds"))
    claims = spec.get("resourceClaims") or ()
    claim_names = {claim["name"] for claim in claims if claim.get("name")}
    ordinary = spec.get("containers") or ()
    errors += _volumes(f"{path}.volumes", spec.get("volumes") or ()) + _resource_claims(
        f"{path}.resourceClaims", claims
    )
    errors += _containers(path, ordinary, spec.get("initContainers") or (), claim_names)
    if spec.get("resources") is not None:
        errors += pod_resources(f"{path}.resources", spec["resources"], claim_names)
        errors += pod_within_containers(f"{path}.resources", spec)
    errors += _host_network(path, spec, is_pod)
    errors += one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), _RESTART_POLICIES)
    errors += labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    errors += placement_rules.affinity(f"{path}.affinity", spec.get("affinity"))
    errors += _scheduling_gates(f"{path}.schedulingGates", spec.get("schedulingGates") or ())
    errors += placement_rules.topology_spread(
        f"{path}.topologySpreadConstraints", spec.get("topologySpreadConstraints") or ()
    )
    if spec.get("nodeName"):
        errors += all_invalid(f"{path}.nodeName", spec["nodeName"], subdomain_errors(spec["nodeName"]))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_INT32:
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, range_error(1, MAX_INT32)))
    errors += placement_rules.tolerations(f"{path}.tolerations", spec.get("tolerations") or ())
    for name in ("priorityClassName", "runtimeClassName"):
        if spec.get(name) is not None:
            errors += all_invalid(f"{path}.{name}", spec[name], subdomain_errors(spec[name]))
    if spec.get("preemptionPolicy") is not None:
        errors += one_of(f"{path}.preemptionPolicy", spec["preemptionPolicy"], _PREEMPTION_POLICIES)
    if spec.get("overhead") is not None:
        errors += container_resources(f"{path}.overhead", {"limits": spec["overhead"]}, ())
    return errors


def pod_template(path: str, template: Object) -> list[FieldError]:
    """Returns the errors of the template of a workload's pods. Upstream: ValidatePodTemplateSpec."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    errors = labels(f"{path}.labels", metadata.get("labels")) + annotations(
        f"{path}.annotations", metadata.get("annotations")
    )
    errors += pod_spec(f"{path}.spec", spec, is_pod=False)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"))
    return errors


def images(path: str, values: Sequence[Object]) -> list[FieldError]:
    """Returns the errors of images in pods, but not in templates. Upstream: validateContainersOnlyForPod."""
    return [
        invalid(f"{path}[{place}].image", container["image"], "must not have leading or trailing whitespace")
        for place, container in enumerate(values)
        if container.get("image", "") != container.get("image", "").strip()
    ]


def _containers(
    path: str, ordinary: Sequence[Object], init: Sequence[Object], claims: Collection[str]
) -> list[FieldError]:
    if not ordinary:
        return [required(f"{path}.containers"), *_init_containers(f"{path}.initContainers", init, set(), claims)]
    errors: list[FieldError] = []
    names: set[str] = set()
    for place, container in enumerate(ordinary):
        container_path = f"{path}.containers[{place}]"
        errors += (
            _container(container_path, container, claims)
            + _new_name(container_path, container, names)
            + _restart_policy(container_path, container)
        )
    errors += _host_ports(f"{path}.containers", ordinary)
    return errors + _init_containers(f"{path}.initContainers", init, names, claims)


def _init_containers(path: str, values: Sequence[Object], names: set[str], claims: Collection[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for place, container in enumerate(values):
        container_path = f"{path}[{place}]"
        errors += (
            _container(container_path, container, claims)
            + _restart_policy(container_path, container)
            + _new_name(container_path, container, names)
        )
        errors += _host_ports(path, [container])
    return errors


def _container(path: str, container: Object, claims: Collection[str]) -> list[FieldError]:
    name = container.get("name", "")
    errors = dns_label(f"{path}.name", name) if name else [required(f"{path}.name")]
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    errors += _ports(f"{path}.ports", container.get("ports") or ())
    return errors + container_resources(f"{path}.resources", container.get("resources") or {}, claims)


def _restart_policy(path: str, container: Object) -> list[FieldError]:
    policy = container.get("restartPolicy")
    if policy is None or policy in _RESTART_POLICIES:
        return []
    return [not_supported(f"{path}.restartPolicy", policy, sorted(_RESTART_POLICIES))]


def _new_name(path: str, container: Object, names: set[str]) -> list[FieldError]:
    name = container.get("name", "")
    if name in names:
        return [duplicate(f"{path}.name", name)]
    names.add(name)
    return []


def _ports(path: str, ports: Sequence[Object]) -> list[FieldError]:
    errors = []
    for place, port in enumerate(ports):
        port_path, number = f"{path}[{place}]", port.get("containerPort", 0)
        if number == 0:
            errors.append(required(f"{port_path}.containerPort"))
        else:
            errors += all_invalid(f"{port_path}.containerPort", number, port_errors(number))
        if port.get("hostPort"):
            errors += all_invalid(f"{port_path}.hostPort", port["hostPort"], port_errors(port["hostPort"]))
        errors += one_of(f"{port_path}.protocol", port.get("protocol"), _PROTOCOLS)
    return errors


def _host_ports(path: str, values: Sequence[Object]) -> list[FieldError]:
    """Checks that each port of the host is used once. Upstream: checkHostPortConflicts."""
    errors = []
    host_ports = set()
    for place, container in enumerate(values):
        for number, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                taking = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if taking in host_ports:
                    errors.append(duplicate(f"{path}[{place}].ports[{number}].hostPort", taking))
                host_ports.add(taking)
    return errors


def _host_network(path: str, spec: Object, is_pod: bool) -> list[FieldError]:
    """Upstream: validatePodHostNetworkDeps."""
    errors = []
    for place, container in enumerate(spec.get("containers") or () if spec.get("hostNetwork") else ()):
        for number, port in enumerate(container.get("ports") or ()):
            host_port = port.get("hostPort", 0)
            if (is_pod or host_port) and host_port != port.get("containerPort", 0):
                port_path = f"{path}.containers[{place}].ports[{number}].hostPort"
                errors.append(invalid(port_path, host_port, "must match `containerPort` when `hostNetwork` is true"))
    return errors


def _volumes(path: str, values: Sequence[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for place, volume in enumerate(values):
        volume_path, name = f"{path}[{place}]", volume.get("name", "")
        wrong = _volume_source(volume_path, volume) + (
            dns_label(f"{volume_path}.name", name) if name else [required(f"{volume_path}.name")]
        )
        if name in names:
            wrong.append(duplicate(f"{volume_path}.name", name))
        if not wrong:
            # Upstream remembers only the names of valid volumes.
            names.add(name)
        errors += wrong
    return errors


def _volume_source(path: str, volume: Object) -> list[FieldError]:
    sources = [name for name, value in volume.items() if name != "name" and value is not None]
    if not sources:
        return [required(path, "must specify a volume type")]
    # Upstream looks at emptyDir first.
    source, *extra = sorted(sources, key=lambda name: name != "emptyDir")
    errors = _volume_source_fields(f"{path}.{source}", source, volume[source])
    return errors + [forbidden(f"{path}.{name}", "may not specify more than 1 volume type") for name in extra]


def _volume_source_fields(path: str, source: str, value: Object) -> list[FieldError]:
    if source == "persistentVolumeClaim":
        return [] if value.get("claimName") else [required(f"{path}.claimName")]
    if source == "csi":
        return [] if value.get("driver") else [required(f"{path}.driver")]
    if source != "ephemeral":
        return []
    template = value.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{path}.volumeClaimTemplate")]
    return claim_spec(f"{path}.volumeClaimTemplate.spec", template.get("spec") or {})


def _resource_claims(path: str, claims: Sequence[Object]) -> list[FieldError]:
    errors = []
    names = set()
    for place, claim in enumerate(claims):
        claim_path, name = f"{path}[{place}]", claim.get("name", "")
        if not name:
            errors.append(required(f"{claim_path}.name"))
        elif name in names:
            errors.append(duplicate(f"{claim_path}.name", name))
        else:
            errors += dns_label(f"{claim_path}.name", name)
            names.add(name)
        sources = [
            source for source in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(source) is not None
        ]
        claim_text = in_go({"name": "", **claim}, "Name", "ResourceClaimName", "ResourceClaimTemplateName")
        if len(sources) > 1:
            errors.append(
                invalid(
                    claim_path,
                    claim_text,
                    "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
                )
            )
        if not sources:
            errors.append(
                invalid(claim_path, claim_text, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
            )
        for source in sources:
            errors += all_invalid(f"{claim_path}.{source}", claim[source], subdomain_errors(claim[source]))
    return errors


def _scheduling_gates(path: str, gates: Sequence[Object]) -> list[FieldError]:
    errors = []
    names = set()
    for place, gate in enumerate(gates):
        name = gate.get("name", "")
        errors += label_name(f"{path}[{place}]", name)
        if name in names:
            errors.append(duplicate(f"{path}[{place}]", name))
        names.add(name)
    return errors
