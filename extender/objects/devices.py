"""Dynamic resource allocation: claims, device classes, and the devices that drivers publish (resource.k8s.io/v1)."""

import msgspec

from extender.objects.meta import ApiObject, NodeSelector, ObjectMeta


class CELDeviceSelector(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.CELDeviceSelector."""

    expression: str = ""


class DeviceSelector(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.DeviceSelector."""

    cel: CELDeviceSelector | None = None


class DeviceClassSpec(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.DeviceClassSpec."""

    selectors: list[DeviceSelector] = []
    extended_resource_name: str | None = None


class DeviceClass(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.DeviceClass."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: DeviceClassSpec = msgspec.field(default_factory=DeviceClassSpec)


class ResourceClaimConsumerReference(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.ResourceClaimConsumerReference."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class ExactDeviceRequest(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.ExactDeviceRequest."""

    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None


class DeviceSubRequest(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.DeviceSubRequest."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = ""
    count: int = 0


class DeviceRequest(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.DeviceRequest."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] = []


class DeviceConstraint(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.DeviceConstraint."""

    requests: list[str] = []
    match_attribute: str | None = None


class DeviceClaim(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.DeviceClaim."""

    requests: list[DeviceRequest] = []
    constraints: list[DeviceConstraint] = []


class ResourceClaimSpec(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.ResourceClaimSpec."""

    devices: DeviceClaim = msgspec.field(default_factory=DeviceClaim)


class DeviceRequestAllocationResult(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.DeviceRequestAllocationResult."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None


class DeviceAllocationResult(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.DeviceAllocationResult."""

    results: list[DeviceRequestAllocationResult] = []


class AllocationResult(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.AllocationResult."""

    devices: DeviceAllocationResult = msgspec.field(default_factory=DeviceAllocationResult)
    node_selector: NodeSelector | None = None


class ResourceClaimStatus(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.ResourceClaimStatus."""

    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumerReference] = []


class ResourceClaim(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.ResourceClaim."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ResourceClaimSpec = msgspec.field(default_factory=ResourceClaimSpec)
    status: ResourceClaimStatus = msgspec.field(default_factory=ResourceClaimStatus)


class ResourcePool(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.ResourcePool."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class DeviceAttribute(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.DeviceAttribute: exactly one of the members is set."""

    int_value: int | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None


class DeviceCapacity(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.DeviceCapacity."""

    value: str | int | float = "0"


class Device(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.Device."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}


class ResourceSliceSpec(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.ResourceSliceSpec."""

    driver: str = ""
    pool: ResourcePool = msgspec.field(default_factory=ResourcePool)
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    devices: list[Device] = []


class ResourceSlice(ApiObject, frozen=True, gc=False, rename="camel"):
    """resourcev1.ResourceSlice."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)
    spec: ResourceSliceSpec = msgspec.field(default_factory=ResourceSliceSpec)
