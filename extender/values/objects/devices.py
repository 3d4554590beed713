"""Dynamic resource allocation (resource.k8s.io/v1), without attributes that are lists (alpha in 1.36)."""

import operator
from collections.abc import Iterable
from typing import Any

import msgspec

from extender.values.objects.decoding import replaced
from extender.values.objects.meta import ApiObject, Condition, HasMetadata, Int64, Namespaced, NodeSelector
from extender.values.objects.quantity import RawQuantity


class CELDeviceSelector(ApiObject, frozen=True):
    expression: str = ""


class DeviceSelector(ApiObject, frozen=True):
    cel: CELDeviceSelector | None = None


class OpaqueDeviceConfiguration(ApiObject, frozen=True):
    """resourcev1.OpaqueDeviceConfiguration: what only the driver understands."""

    driver: str = ""
    parameters: Any = None


class DeviceClassConfiguration(ApiObject, frozen=True):
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaimConfiguration(ApiObject, frozen=True):
    """resourcev1.DeviceClaimConfiguration: for all requests, or only those that are named."""

    requests: list[str] = []
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationConfiguration(ApiObject, frozen=True):
    """resourcev1.DeviceAllocationConfiguration: `source` is FromClass or FromClaim."""

    source: str = ""
    requests: list[str] = []
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(ApiObject, frozen=True):
    selectors: list[DeviceSelector] = []
    config: list[DeviceClassConfiguration] = []
    extended_resource_name: str | None = None


class DeviceClass(HasMetadata, frozen=True):
    spec: DeviceClassSpec = msgspec.field(default_factory=DeviceClassSpec)


class ResourceClaimConsumerReference(ApiObject, frozen=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceToleration(ApiObject, frozen=True):
    """resourcev1.DeviceToleration: `operator` is Exists or Equal, which is the default."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class CapacityRequirements(ApiObject, frozen=True):
    """resourcev1.CapacityRequirements: how much of a device's capacity is asked for."""

    requests: dict[str, RawQuantity] = {}


class ExactDeviceRequest(ApiObject, frozen=True):
    """resourcev1.ExactDeviceRequest: `allocation_mode` is ExactCount or All."""

    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = []
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(ApiObject, frozen=True):
    """resourcev1.DeviceSubRequest: one of several alternatives, without admin access."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: list[DeviceToleration] = []
    capacity: CapacityRequirements | None = None


class DeviceRequest(ApiObject, frozen=True):
    """resourcev1.DeviceRequest: either `exactly`, or the first that is available."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] = []


class DeviceConstraint(ApiObject, frozen=True):
    """resourcev1.DeviceConstraint: over all requests, or only those that are named."""

    requests: list[str] = []
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(ApiObject, frozen=True):
    requests: list[DeviceRequest] = []
    constraints: list[DeviceConstraint] = []
    config: list[DeviceClaimConfiguration] = []


class ResourceClaimSpec(ApiObject, frozen=True):
    devices: DeviceClaim = msgspec.field(default_factory=DeviceClaim)


class DeviceRequestAllocationResult(ApiObject, frozen=True):
    """resourcev1.DeviceRequestAllocationResult. With a `share_id` only `consumed_capacity` of the device is taken."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = []
    binding_conditions: list[str] = []
    binding_failure_conditions: list[str] = []
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, RawQuantity] = {}


class DeviceAllocationResult(ApiObject, frozen=True):
    results: list[DeviceRequestAllocationResult] = []
    config: list[DeviceAllocationConfiguration] = []


class AllocationResult(ApiObject, frozen=True):
    devices: DeviceAllocationResult = msgspec.field(default_factory=DeviceAllocationResult)
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class AllocatedDeviceStatus(ApiObject, frozen=True):
    """resourcev1.AllocatedDeviceStatus: what the driver says of an allocated device."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: list[Condition] = []


class ResourceClaimStatus(ApiObject, frozen=True):
    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumerReference] = []
    devices: list[AllocatedDeviceStatus] = []


class ResourceClaim(Namespaced, frozen=True):
    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = msgspec.field(default_factory=ResourceClaimStatus)


class ResourcePool(ApiObject, frozen=True):
    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class DeviceAttribute(ApiObject, frozen=True):
    """resourcev1.DeviceAttribute: exactly one of the members is set."""

    int_value: Int64 | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None


class CapacityRequestPolicyRange(ApiObject, frozen=True):
    min: RawQuantity | None = None
    max: RawQuantity | None = None
    step: RawQuantity | None = None


class CapacityRequestPolicy(ApiObject, frozen=True):
    """resourcev1.CapacityRequestPolicy: which amounts may be asked for, and what counts as asked when nothing is."""

    default: RawQuantity | None = None
    valid_values: list[RawQuantity] = []
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(ApiObject, frozen=True):
    value: RawQuantity = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(ApiObject, frozen=True):
    value: RawQuantity = "0"


class CounterSet(ApiObject, frozen=True):
    """resourcev1.CounterSet: what the partitions of a physical device share."""

    name: str = ""
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(ApiObject, frozen=True):
    counter_set: str = ""
    counters: dict[str, Counter] = {}


class DeviceTaint(ApiObject, frozen=True):
    """resourcev1.DeviceTaint: `effect` is NoSchedule, NoExecute or None."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Device(ApiObject, frozen=True):
    """resourcev1.Device. Node name, selector and `all_nodes` count only in slices with `per_device_node_selection`."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: list[DeviceCounterConsumption] = []
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[DeviceTaint] = []
    binds_to_node: bool | None = None
    binding_conditions: list[str] = []
    binding_failure_conditions: list[str] = []
    allow_multiple_allocations: bool | None = None


class ResourceSliceSpec(ApiObject, frozen=True):
    """resourcev1.ResourceSliceSpec: devices, or the counters that devices of the same pool share."""

    driver: str = ""
    pool: ResourcePool = msgspec.field(default_factory=ResourcePool)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] = []
    shared_counters: list[CounterSet] = []


class ResourceSlice(HasMetadata, frozen=True):
    spec: ResourceSliceSpec = msgspec.field(default_factory=ResourceSliceSpec)


class DeviceTaintSelector(ApiObject, frozen=True):
    """resourcev1beta2.DeviceTaintSelector: a field of None selects everything."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None

    def selects(self, resource_slice: ResourceSlice, device: Device) -> bool:
        spec = resource_slice.spec
        pairs = ((self.driver, spec.driver), (self.pool, spec.pool.name), (self.device, device.name))
        return all(name is None or name == actual for name, actual in pairs)


class DeviceTaintRuleSpec(ApiObject, frozen=True):
    """resourcev1beta2.DeviceTaintRuleSpec: a rule without a selector taints nothing."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = msgspec.field(default_factory=DeviceTaint)


class DeviceTaintRule(HasMetadata, frozen=True):
    """resourcev1beta2.DeviceTaintRule: a taint that administrators give to devices, whichever driver publishes them."""

    spec: DeviceTaintRuleSpec = msgspec.field(default_factory=DeviceTaintRuleSpec)


def with_taints_of(rules: Iterable[DeviceTaintRule], resource_slice: ResourceSlice) -> ResourceSlice:
    """Returns the slice with the taints of all rules that select its devices; itself if none does.

    Upstream: dynamic-resource-allocation/resourceslice/tracker/tracker.go, applyPatches.
    """
    specs = [(rule.spec.device_selector, rule.spec.taint) for rule in rules]
    devices: list[Device] = []
    for device in resource_slice.spec.devices:
        taints = [
            taint for selector, taint in specs if selector is not None and selector.selects(resource_slice, device)
        ]
        devices.append(replaced(device, taints=[*device.taints, *taints]) if taints else device)
    if all(map(operator.is_, devices, resource_slice.spec.devices)):
        return resource_slice
    return replaced(resource_slice, spec=replaced(resource_slice.spec, devices=devices))
