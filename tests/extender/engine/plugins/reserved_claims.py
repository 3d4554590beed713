"""A profile with DynamicResources, and pods with claims that are reserved and bound on its one node."""

from collections.abc import Callable
from typing import Any

from extender.engine.framework import Handle, Status
from extender.engine.plugins.dynamic_resources.plugin import DynamicResources
from extender.testing import make_node
from extender.values.config.plugin_args import DynamicResourcesArgs
from extender.values.golang.times import Duration
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.devices import ResourceClaim, ResourceClaimStatus
from extender.values.objects.meta import HasMetadata
from tests.kit.devices import (
    Manifest,
    allocation_of,
    exactly,
    make_claim,
    make_device,
    make_device_class,
    make_slice,
    pod_with,
)
from tests.kit.reservations import Reservations

CLASS = make_device_class("any")
GPU = make_slice("gpu-1", "gpu-2", nodeName="n")
ATTACHED = make_slice(
    make_device("gpu-1", bindingConditions=["ready"], bindingFailureConditions=["broken"]), nodeName="n"
)


def make(_: object, handle: Handle) -> DynamicResources:
    """The plugin, with less patience than usual."""
    return DynamicResources(DynamicResourcesArgs(binding_timeout=Duration(60 * 10**9)), handle)


def claim(name: str = "c", *, version: str = "1", finalizers: tuple[str, ...] = (), **status: Any) -> ResourceClaim:
    return make_claim(name, exactly(1), metadata={"resourceVersion": version, "finalizers": list(finalizers)}, **status)


def allocated(*pods: str, **more: Any) -> Manifest:
    """Status of a claim that has gpu-1 and is reserved for these pods."""
    reserved_for = [{"resource": "pods", "name": pod, "uid": pod} for pod in pods]
    return {
        "allocation": allocation_of("gpu-1", allocationTimestamp="2026-01-01T00:00:00Z", **more),
        "reservedFor": reserved_for,
    }


class Scheduler(Reservations):
    """One profile with DynamicResources and one node `n`."""

    def __init__(self, *objects: HasMetadata, late: bool = False, slices: HasMetadata = GPU) -> None:
        super().__init__(make, make_node("n").label(zone="a"), CLASS, slices, *objects, late=late)
        (self.plugin,) = self.framework.plugins.pre_bind

    def cached_claim(self, name: str = "c") -> ResourceClaim:
        return self.cache.objects.resource_claims[("default", name)]

    def show(self, new: ResourceClaim) -> None:
        self.cache.objects.resource_claims[("default", new.metadata.name)] = new

    def device_says(self, kind: str, status: str = "True", **more: str) -> None:
        """The driver publishes a condition of gpu-1."""
        condition = {"type": kind, "status": status, **more}
        device = {"driver": "gpu.example.com", "pool": "pool", "device": "gpu-1", "conditions": [condition]}
        current = self.cached_claim()
        reported_devices = convert(ResourceClaimStatus, {"devices": [device]}).devices
        meta = replaced(current.metadata, resource_version=str(int(current.metadata.resource_version) + 5000))
        self.show(replaced(current, metadata=meta, status=replaced(current.status, devices=reported_devices)))

    def bind(self, *claims: str, later: tuple[float, Callable[[], None]] | None = None) -> tuple[Status, float]:
        """As `pre_bind`, of a pod with these claims."""
        pod = pod_with(*claims or ("c",))
        return self.pre_bind(self.reserved(pod), pod, *([later] if later else []))
