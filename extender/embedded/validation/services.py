"""Services.

Upstream: pkg/apis/core/validation/validation.go, ValidateService, ValidateServiceUpdate (v1.36.2).
"""

from collections.abc import Sequence
from typing import Final

from extender.embedded.resources import Object
from extender.embedded.validation.containers import PROTOCOLS
from extender.embedded.validation.metadata import label_name, labels, object_meta, object_meta_update
from extender.embedded.validation.names import dns_1035_errors, dns_label, ip, port_errors, port_or_name, subdomain
from extender.golang.field_errors import FieldError, all_invalid, duplicate, forbidden, in_go, invalid, not_supported, one_of, required

_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES: Final = ("ClientIP", "None")
_FAMILIES: Final = ("IPv4", "IPv6")
_FAMILY_POLICIES: Final = ("PreferDualStack", "RequireDualStack", "SingleStack")
_TRAFFIC: Final = ("Cluster", "Local")
_HEADLESS: Final = ["None"]
_MAX_AFFINITY_SECONDS: Final = 86400


def service(obj: Object) -> list[FieldError]:
    """A service."""
    spec = obj["spec"]
    kind, addresses, ports = spec.get("type", ""), spec.get("clusterIPs") or [], spec.get("ports") or ()
    errors = object_meta(obj["metadata"], namespaced=True, rule=dns_1035_errors)
    is_headless = addresses == _HEADLESS
    if not ports and not is_headless and kind != "ExternalName":
        errors.append(required("spec.ports"))
    if kind in ("LoadBalancer", "NodePort") and is_headless:
        errors.append(invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services"))
    if kind == "ExternalName":
        errors += _external_name(spec)
    errors += _ports(ports) + labels("spec.selector", spec.get("selector"))
    errors += _affinity(spec)
    if kind != "ExternalName":
        errors += _addresses(spec, addresses)
    for place, address in enumerate(spec.get("externalIPs") or ()):
        errors += ip(f"spec.externalIPs[{place}]", address)
    errors += one_of("spec.type", kind, _TYPES)
    if kind == "ClusterIP":
        detail = "may not be used when `type` is 'ClusterIP'"
        errors += [forbidden(f"spec.ports[{place}].nodePort", detail) for place, port in enumerate(ports) if port.get("nodePort")]
    errors += _taken_twice(ports)
    if kind != "LoadBalancer":
        for name in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if spec.get(name) is not None:
                errors.append(forbidden(f"spec.{name}", "may only be used when `type` is 'LoadBalancer'"))
    return errors + _traffic(spec)


def service_update(new: Object, old: Object) -> list[FieldError]:
    """A service that replaces another one: its address stays while it has one."""
    errors = object_meta_update(new["metadata"], old["metadata"])
    addresses, former = new["spec"].get("clusterIPs") or [], old["spec"].get("clusterIPs") or []
    if "ExternalName" not in (new["spec"].get("type"), old["spec"].get("type")) and former:
        if not addresses:
            errors.append(invalid("spec.clusterIPs[0]", None, "primary clusterIP can not be unset"))
        elif addresses[0] != former[0]:
            errors.append(invalid("spec.clusterIPs[0]", addresses, "may not change once set"))
    return errors + service(new)


def _external_name(spec: Object) -> list[FieldError]:
    errors = [
        forbidden(f"spec.{name}", "may not be set for ExternalName services") for name in ("clusterIPs", "ipFamilies") if spec.get(name)
    ]
    if spec.get("ipFamilyPolicy") is not None:
        errors.append(forbidden("spec.ipFamilyPolicy", "may not be set for ExternalName services"))
    name = spec.get("externalName", "").removesuffix(".")
    return errors + (subdomain("spec.externalName", name) if name else [required("spec.externalName")])


def _ports(ports: Sequence[Object]) -> list[FieldError]:
    errors = []
    names = set()
    for place, port in enumerate(ports):
        here, name, number = f"spec.ports[{place}]", port.get("name", ""), port.get("port", 0)
        if name:
            errors += dns_label(f"{here}.name", name)
            errors += [duplicate(f"{here}.name", name)] if name in names else []
            names.add(name)
        elif len(ports) > 1:
            errors.append(required(f"{here}.name"))
        errors += all_invalid(f"{here}.port", number, port_errors(number))
        errors += one_of(f"{here}.protocol", port.get("protocol"), PROTOCOLS)
        errors += port_or_name(f"{here}.targetPort", port.get("targetPort", 0))
        if port.get("appProtocol") is not None:
            errors += label_name(f"{here}.appProtocol", port["appProtocol"])
    return errors


def _taken_twice(ports: Sequence[Object]) -> list[FieldError]:
    """A port and a node port are taken once for a protocol."""
    errors = []
    for place, port in enumerate(ports):
        before = ports[:place]
        same = [other for other in before if other.get("protocol") == port.get("protocol")]
        if port.get("nodePort") and any(other.get("nodePort") == port["nodePort"] for other in same):
            errors.append(duplicate(f"spec.ports[{place}].nodePort", port["nodePort"]))
        if any(other.get("port") == port.get("port") for other in same):
            key = {"name": "", "protocol": port.get("protocol", ""), "port": port.get("port", 0), "targetPort": 0, "nodePort": 0}
            shown = in_go(key, "Name", "Protocol", "AppProtocol", "Port", "TargetPort", "NodePort")
            errors.append(duplicate(f"spec.ports[{place}]", shown))
    return errors


def _affinity(spec: Object) -> list[FieldError]:
    affinity, config = spec.get("sessionAffinity"), spec.get("sessionAffinityConfig")
    errors = one_of("spec.sessionAffinity", affinity, _AFFINITIES)
    path = "spec.sessionAffinityConfig"
    if affinity == "None" and config is not None:
        errors.append(forbidden(path, "must not be set when session affinity is None"))
    if affinity == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds")
        if seconds is None:
            errors.append(required(path, "when session affinity type is ClientIP"))
        elif not 0 < seconds <= _MAX_AFFINITY_SECONDS:
            detail = f"must be greater than 0 and less than {_MAX_AFFINITY_SECONDS}"
            errors.append(invalid(f"{path}.clientIP.timeoutSeconds", seconds, detail))
    return errors


def _addresses(spec: Object, addresses: list[str]) -> list[FieldError]:
    """Upstream: ValidateServiceClusterIPsRelatedFields."""
    errors: list[FieldError] = []
    first = spec.get("clusterIP", "")
    if first and not addresses:
        errors.append(required("spec.clusterIPs"))
    elif first and addresses[0] != first:
        errors.append(invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`"))
    elif addresses and not first:
        errors.append(invalid("spec.clusterIPs", addresses, "must be empty when `clusterIP` is not specified"))
    families = spec.get("ipFamilies") or []
    for place, family in enumerate(families):
        if family not in _FAMILIES:
            errors.append(not_supported(f"spec.ipFamilies[{place}]", family, _FAMILIES))
        if family in families[:place]:
            errors.append(duplicate(f"spec.ipFamilies[{place}]", family))
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _FAMILY_POLICIES:
        errors.append(not_supported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES))
    for place, address in enumerate(addresses):
        if place == 0 and address == "None":
            errors += [invalid("spec.clusterIPs", addresses, "'None' must be the first and only value")] if len(addresses) > 1 else []
        else:
            errors += ip(f"spec.clusterIPs[{place}]", address)
    return errors


def _traffic(spec: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    kind, external = spec.get("type"), spec.get("externalTrafficPolicy", "")
    if kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and spec.get("externalIPs")):
        errors += one_of("spec.externalTrafficPolicy", external, _TRAFFIC)
    elif external:
        errors.append(invalid("spec.externalTrafficPolicy", external, "may only be set for externally-accessible services"))
    internal = spec.get("internalTrafficPolicy")
    if internal is not None and internal not in _TRAFFIC:
        errors.append(not_supported("spec.internalTrafficPolicy", internal, _TRAFFIC))
    return errors
