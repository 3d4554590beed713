"""Nodes and namespaces.

Upstream: pkg/apis/core/validation/validation.go, ValidateNode, ValidateNodeUpdate, ValidateNamespace (v1.36.2).
"""

from extender.embedded.resources import Object
from extender.embedded.validation.metadata import label_name, object_meta, object_meta_update
from extender.embedded.validation.names import cidr
from extender.embedded.validation.resources import quantity_value
from extender.embedded.validation.scheduling import taints
from extender.golang.field_errors import FieldError, duplicate, forbidden, in_go, invalid
from extender.objects.validation import dns_label_errors


def node(obj: Object) -> list[FieldError]:
    """A node."""
    spec = obj["spec"]
    errors = object_meta(obj["metadata"], namespaced=False)
    # Upstream's path says metadata.
    errors += taints("metadata.taints", spec.get("taints") or ()) + _amounts(obj)
    networks = spec.get("podCIDRs") or ()
    for place, network in enumerate(networks):
        errors += cidr(f"spec.podCIDRs[{place}]", network)
    if len(networks) > len(set(networks)):
        errors += [duplicate(f"spec.podCIDRs[{place}]", each) for place, each in enumerate(networks) if each in networks[:place]]
    return errors


def node_update(new: Object, old: Object) -> list[FieldError]:
    """A node that replaces another one, by either door: where it comes from is said once."""
    spec, former = new["spec"], old["spec"]
    errors = object_meta_update(new["metadata"], old["metadata"]) + _amounts(new)
    addresses = (new.get("status") or {}).get("addresses") or []
    for place, address in enumerate(addresses):
        if address in addresses[:place]:
            errors.append(duplicate(f"status.addresses[{place}]", in_go(address, "Type", "Address")))
    if former.get("podCIDRs") and spec.get("podCIDRs") != former["podCIDRs"]:
        errors.append(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
    if former.get("providerID") and spec.get("providerID") != former["providerID"]:
        errors.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
    errors += taints("metadata.taints", spec.get("taints") or ())
    if spec.get("externalID") != former.get("externalID"):
        errors.append(forbidden("spec.externalID", "may not be updated"))
    return errors


def whole_node_update(new: Object, old: Object) -> list[FieldError]:
    """As the strategy of nodes has it: the new node is judged by itself, too."""
    return node(new) + node_update(new, old)


def namespace(obj: Object) -> list[FieldError]:
    """A namespace."""
    errors = object_meta(obj["metadata"], namespaced=False, rule=dns_label_errors)
    for finalizer in (obj.get("spec") or {}).get("finalizers") or ():
        errors += label_name("spec.finalizers", finalizer)
    return errors


def namespace_update(new: Object, old: Object) -> list[FieldError]:
    """A namespace that replaces another one."""
    return object_meta_update(new["metadata"], old["metadata"])


def namespace_status_update(new: Object, old: Object) -> list[FieldError]:
    """Upstream: ValidateNamespaceStatusUpdate."""
    errors = object_meta_update(new["metadata"], old["metadata"])
    phase = (new.get("status") or {}).get("phase", "")
    if not new["metadata"].get("deletionTimestamp") and phase != "Active":
        errors.append(invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty"))
    elif new["metadata"].get("deletionTimestamp") and phase != "Terminating":
        errors.append(invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty"))
    return errors


def _amounts(obj: Object) -> list[FieldError]:
    """Upstream: ValidateNodeResources."""
    status = obj.get("status") or {}
    return [
        error
        for part in ("capacity", "allocatable")
        for name, amount in (status.get(part) or {}).items()
        for error in quantity_value(f"status.{part}.{name}", name, amount)
    ]
