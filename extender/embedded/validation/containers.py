"""Containers: names, images, ports, environment, mounts, probes, restart policies.

Upstream: pkg/apis/core/validation/validation.go, validateContainerCommon, validateContainers, validateInitContainers (v1.36.2).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from extender.embedded.resources import Object
from extender.embedded.validation.environment import env, env_from
from extender.embedded.validation.names import dns_label, id_errors, port_errors, port_name_errors
from extender.embedded.validation.probes import lifecycle, probe
from extender.embedded.validation.resources import container_resources
from extender.golang.field_errors import (
    FieldError,
    all_invalid,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    one_of,
    required,
)

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_TERMINATION_MESSAGES: Final = ("File", "FallbackToLogsOnError")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_ONLY_SIDECARS: Final = "may not be set for init containers without restartPolicy=Always"


@final
@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a container may refer to: the pod's volumes by name, its claims, its grace period."""

    volumes: Mapping[str, Object]
    claims: Collection[str]
    grace: int | None


def containers(path: str, values: Sequence[Object], around: Surroundings) -> list[FieldError]:
    """The ordinary containers of a pod. Upstream: validateContainers."""
    if not values:
        return [required(path)]
    errors: list[FieldError] = []
    names: set[str] = set()
    for place, container in enumerate(values):
        here = f"{path}[{place}]"
        errors += _common(here, container, around)
        errors += _new_name(here, container, names)
        errors += _probes(here, container, around.grace)
        policy = container.get("restartPolicy")
        if policy is not None and policy not in _RESTART_POLICIES:
            errors.append(not_supported(f"{here}.restartPolicy", policy, _RESTART_POLICIES))
    return errors + _host_ports(path, values)


def init_containers(path: str, values: Sequence[Object], ordinary: Sequence[Object], around: Surroundings) -> list[FieldError]:
    """The containers that run before the others, or beside them. Upstream: validateInitContainers."""
    errors: list[FieldError] = []
    names = {container.get("name", "") for container in ordinary}
    for place, container in enumerate(values):
        here = f"{path}[{place}]"
        errors += _common(here, container, around)
        policy = container.get("restartPolicy")
        if policy is not None and policy not in _RESTART_POLICIES:
            errors.append(not_supported(f"{here}.restartPolicy", policy, _RESTART_POLICIES))
        errors += _new_name(here, container, names)
        errors += _host_ports(path, [container])
        if policy == "Always":
            errors += _probes(here, container, around.grace)
        else:
            errors += [forbidden(f"{here}.{name}", _ONLY_SIDECARS) for name in ("lifecycle", *_PROBES) if container.get(name) is not None]
    return errors


def images(path: str, values: Sequence[Object]) -> list[FieldError]:
    """What holds for pods but not for templates. Upstream: validateContainersOnlyForPod."""
    return [
        invalid(f"{path}[{place}].image", container["image"], "must not have leading or trailing whitespace")
        for place, container in enumerate(values)
        if container.get("image", "") != container.get("image", "").strip()
    ]


def _common(path: str, container: Object, around: Surroundings) -> list[FieldError]:
    name = container.get("name", "")
    errors = dns_label(f"{path}.name", name) if name else [required(f"{path}.name")]
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    errors += one_of(f"{path}.terminationMessagePolicy", container.get("terminationMessagePolicy"), _TERMINATION_MESSAGES)
    errors += _ports(f"{path}.ports", container.get("ports") or ())
    errors += env(f"{path}.env", container.get("env") or ())
    errors += env_from(f"{path}.envFrom", container.get("envFrom") or ())
    errors += _mounts(f"{path}.volumeMounts", container, around.volumes)
    errors += _devices(f"{path}.volumeDevices", container, around.volumes)
    errors += one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), _PULL_POLICIES)
    errors += container_resources(f"{path}.resources", container.get("resources") or {}, around.claims)
    return errors + _security(f"{path}.securityContext", container.get("securityContext") or {})


def _new_name(path: str, container: Object, names: set[str]) -> list[FieldError]:
    name = container.get("name", "")
    if name in names:
        return [duplicate(f"{path}.name", name)]
    names.add(name)
    return []


def _probes(path: str, container: Object, grace: int | None) -> list[FieldError]:
    errors = lifecycle(f"{path}.lifecycle", container.get("lifecycle") or {}, grace)
    for name in _PROBES:
        if container.get(name) is not None:
            errors += probe(f"{path}.{name}", container[name], grace, name)
    return errors


def _ports(path: str, ports: Sequence[Object]) -> list[FieldError]:
    errors = []
    names: set[str] = set()
    for place, port in enumerate(ports):
        here, name, number = f"{path}[{place}]", port.get("name", ""), port.get("containerPort", 0)
        if name:
            wrong = port_name_errors(name)
            errors += all_invalid(f"{here}.name", name, wrong)
            if not wrong and name in names:
                errors.append(duplicate(f"{here}.name", name))
            names |= {name} if not wrong else set()
        if number == 0:
            errors.append(required(f"{here}.containerPort"))
        else:
            errors += all_invalid(f"{here}.containerPort", number, port_errors(number))
        if port.get("hostPort"):
            errors += all_invalid(f"{here}.hostPort", port["hostPort"], port_errors(port["hostPort"]))
        errors += one_of(f"{here}.protocol", port.get("protocol"), PROTOCOLS)
    return errors


def _host_ports(path: str, values: Sequence[Object]) -> list[FieldError]:
    """A port of the host is taken once. Upstream: checkHostPortConflicts."""
    errors = []
    taken = set()
    for place, container in enumerate(values):
        for number, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                taking = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if taking in taken:
                    errors.append(duplicate(f"{path}[{place}].ports[{number}].hostPort", taking))
                taken.add(taking)
    return errors


def _mounts(path: str, container: Object, volumes: Mapping[str, Object]) -> list[FieldError]:
    """Upstream: ValidateVolumeMounts."""
    errors = []
    devices = container.get("volumeDevices") or ()
    points = set()
    for place, mount in enumerate(container.get("volumeMounts") or ()):
        here, name, point = f"{path}[{place}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.append(required(f"{here}.name"))
        if name not in volumes:
            errors.append(not_found(f"{here}.name", name))
        if not point:
            errors.append(required(f"{here}.mountPath"))
        if point in points:
            errors.append(invalid(f"{here}.mountPath", point, "must be unique"))
        points.add(point)
        if any(device.get("name") == name for device in devices):
            errors.append(invalid(f"{here}.name", name, "must not already exist in volumeDevices"))
        if any(device.get("devicePath") == point for device in devices):
            errors.append(invalid(f"{here}.mountPath", point, "must not already exist as a path in volumeDevices"))
        sub_path, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
        # Upstream forgets the index in these two paths.
        errors += _descending(f"{path}.subPath", sub_path)
        if expression and sub_path:
            errors.append(invalid(f"{here}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive"))
        errors += _descending(f"{path}.subPathExpr", expression)
    return errors


def _devices(path: str, container: Object, volumes: Mapping[str, Object]) -> list[FieldError]:
    """Upstream: ValidateVolumeDevices."""
    errors = []
    names, paths = set(), set()
    mounts = container.get("volumeMounts") or ()
    for place, device in enumerate(container.get("volumeDevices") or ()):
        here, name, device_path = f"{path}[{place}]", device.get("name", ""), device.get("devicePath", "")
        if not name:
            errors.append(required(f"{here}.name"))
        if name in names:
            errors.append(invalid(f"{here}.name", name, "must be unique"))
        volume = volumes.get(name)
        if volume is None:
            errors.append(not_found(f"{here}.name", name))
        elif not {"persistentVolumeClaim", "ephemeral"} & volume.keys():
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(f"{here}.name", name, detail))
        if not device_path:
            errors.append(required(f"{here}.devicePath"))
        if device_path in paths:
            errors.append(invalid(f"{here}.devicePath", device_path, "must be unique"))
        if any(mount.get("name") == name for mount in mounts):
            errors.append(invalid(f"{here}.name", name, "must not already exist in volumeMounts"))
        names.add(name)
        paths.add(device_path)
    return errors


def _descending(path: str, value: str) -> list[FieldError]:
    """A path below where one stands. Upstream: validateLocalDescendingPath."""
    errors = [invalid(path, value, "must be a relative path")] if value.startswith("/") else []
    if ".." in value.split("/"):
        errors.append(invalid(path, value, "must not contain '..'"))
    return errors


def _security(path: str, context: Mapping[str, Any]) -> list[FieldError]:
    """Upstream: ValidateSecurityContext."""
    errors = []
    for name in ("runAsUser", "runAsGroup"):
        if context.get(name) is not None:
            errors += all_invalid(f"{path}.{name}", context[name], id_errors(context[name]))
    if context.get("procMount") not in (None, "Default", "Unmasked"):
        errors.append(not_supported(f"{path}.procMount", context["procMount"], ("Default", "Unmasked")))
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid(path, dict(context), detail))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(invalid(path, dict(context), detail))
    return errors
