"""ResourceClaims: which devices somebody wants, which they got, and what drivers say of those."""

from typing import Final

from extender.embedded.schema.declaring import TYPE_META, keep, map_list, named, null, omit, zero
from extender.embedded.schema.devices import DEVICE_SELECTOR, OPAQUE_DEVICE_CONFIGURATION
from extender.embedded.schema.meta import CONDITION, OBJECT_META
from extender.embedded.schema.scheduling_fields import NODE_SELECTOR
from extender.embedded.schema.types import ANYTHING, BOOL, INT64, QUANTITY, STRING, STRINGS, TIME, ListOf, MapOf, Struct

_FULLY_QUALIFIED_NAME: Final = named("v1.FullyQualifiedName")
_QUANTITIES: Final = MapOf(QUANTITY, go_type="map[v1.QualifiedName]resource.Quantity")
_CONFIGURATION: Final = {"opaque": keep(OPAQUE_DEVICE_CONFIGURATION)}

DEVICE_TOLERATION: Final = Struct(
    "io.k8s.api.resource.v1.DeviceToleration",
    {
        "key": omit(STRING, "Empty with Exists: every taint."),
        "operator": omit(named("v1.DeviceTolerationOperator", "Equal", "Exists"), default="Equal"),
        "value": omit(STRING, "For Equal only."),
        "effect": omit(named("v1.DeviceTaintEffect", "NoExecute", "NoSchedule", "None"), "Empty: any."),
        "tolerationSeconds": keep(INT64, "For how long NoExecute is borne. Absent: for ever."),
    },
    "Taints of devices that do not matter.",
)

# What may be said of devices both in a request and in one of its alternatives.
_WANTED: Final = {
    "deviceClassName": zero(STRING, required=True),
    "selectors": omit(ListOf(DEVICE_SELECTOR), "Conditions beyond those of the class."),
    "allocationMode": omit(named("v1.DeviceAllocationMode", "All", "ExactCount"), "A number of devices, or every one that matches."),
    "count": omit(INT64, "How many, for ExactCount. One if not said."),
}
_TOLERATIONS: Final = omit(ListOf(DEVICE_TOLERATION))
_CAPACITY: Final = keep(
    Struct(
        "io.k8s.api.resource.v1.CapacityRequirements",
        {"requests": omit(_QUANTITIES, "The least that each device must give, by capacity.")},
    )
)

EXACT_DEVICE_REQUEST: Final = Struct(
    "io.k8s.api.resource.v1.ExactDeviceRequest",
    _WANTED
    | {
        "adminAccess": keep(BOOL, "Looks at devices that others may use as well. For monitoring."),
        "tolerations": _TOLERATIONS,
        "capacity": _CAPACITY,
    },
)

DEVICE_SUB_REQUEST: Final = Struct(
    "io.k8s.api.resource.v1.DeviceSubRequest",
    {"name": zero(STRING, required=True)} | _WANTED | {"tolerations": _TOLERATIONS, "capacity": _CAPACITY},
    "One alternative.",
)

DEVICE_REQUEST: Final = Struct(
    "io.k8s.api.resource.v1.DeviceRequest",
    {
        "name": zero(STRING, "By which pods and constraints refer to it.", required=True),
        "exactly": keep(EXACT_DEVICE_REQUEST, "This and nothing else."),
        "firstAvailable": omit(ListOf(DEVICE_SUB_REQUEST), "The first of these that can be had. Not with exactly."),
    },
    "Devices of one sort.",
)

RESOURCE_CLAIM_SPEC: Final = Struct(
    "io.k8s.api.resource.v1.ResourceClaimSpec",
    {
        "devices": zero(
            Struct(
                "io.k8s.api.resource.v1.DeviceClaim",
                {
                    "requests": null(ListOf(DEVICE_REQUEST), "All of them must be met."),
                    "constraints": omit(
                        ListOf(
                            Struct(
                                "io.k8s.api.resource.v1.DeviceConstraint",
                                {
                                    "requests": omit(STRINGS, "For the devices of these requests; empty: of all."),
                                    "matchAttribute": keep(_FULLY_QUALIFIED_NAME, "Has the same value in all of them."),
                                    "distinctAttribute": keep(_FULLY_QUALIFIED_NAME, "Has another value in each of them."),
                                },
                            )
                        ),
                        "What devices must have in common or not.",
                    ),
                    "config": omit(
                        ListOf(
                            Struct(
                                "io.k8s.api.resource.v1.DeviceClaimConfiguration",
                                {"requests": omit(STRINGS, "For the devices of these requests; empty: of all.")} | _CONFIGURATION,
                            )
                        ),
                        "Goes to the drivers of the devices.",
                    ),
                },
            )
        )
    },
    "What is wanted.",
)

_CONDITIONS_BEFORE_BINDING: Final = {
    "bindingConditions": omit(STRINGS, "As the device says: these must come true before a pod is bound."),
    "bindingFailureConditions": omit(STRINGS, "As the device says: any of these means that it failed."),
}

DEVICE_REQUEST_ALLOCATION_RESULT: Final = Struct(
    "io.k8s.api.resource.v1.DeviceRequestAllocationResult",
    {
        "request": zero(STRING, "The request; for an alternative `request/alternative`.", required=True),
        "driver": zero(STRING, required=True),
        "pool": zero(STRING, required=True),
        "device": zero(STRING, required=True),
        "adminAccess": keep(BOOL, "Others may use the device as well."),
        "tolerations": omit(ListOf(DEVICE_TOLERATION), "Those of the request at that time."),
    }
    | _CONDITIONS_BEFORE_BINDING
    | {
        "shareID": keep(named("types.UID"), "Tells those who share the device apart."),
        "consumedCapacity": omit(_QUANTITIES, "How much of a shared device, by capacity."),
    },
    "A device for a request.",
)

ALLOCATION_RESULT: Final = Struct(
    "io.k8s.api.resource.v1.AllocationResult",
    {
        "devices": zero(
            Struct(
                "io.k8s.api.resource.v1.DeviceAllocationResult",
                {
                    "results": omit(ListOf(DEVICE_REQUEST_ALLOCATION_RESULT)),
                    "config": omit(
                        ListOf(
                            Struct(
                                "io.k8s.api.resource.v1.DeviceAllocationConfiguration",
                                {
                                    "source": zero(named("v1.AllocationConfigSource", "FromClaim", "FromClass"), required=True),
                                    "requests": omit(STRINGS, "For the devices of these requests; empty: of all."),
                                }
                                | _CONFIGURATION,
                            )
                        ),
                        "That of the classes and of the claim, as it was then.",
                    ),
                },
            )
        ),
        "nodeSelector": keep(NODE_SELECTOR, "Where the devices can be used. Absent: everywhere."),
        "allocationTimestamp": keep(TIME, "Since when."),
    },
    "What a claim got.",
)

ALLOCATED_DEVICE_STATUS: Final = Struct(
    "io.k8s.api.resource.v1.AllocatedDeviceStatus",
    {
        "driver": zero(STRING, required=True),
        "pool": zero(STRING, required=True),
        "device": zero(STRING, required=True),
        "shareID": keep(STRING, "Tells those who share the device apart."),
        "conditions": null(map_list(CONDITION, "type")),
        "data": keep(ANYTHING, "Whatever the driver likes to say."),
        "networkData": keep(
            Struct(
                "io.k8s.api.resource.v1.NetworkDeviceData",
                {
                    "interfaceName": omit(STRING, "What the pod sees it as."),
                    "ips": omit(STRINGS, "Its addresses, each with the length of its prefix."),
                    "hardwareAddress": omit(STRING),
                },
            )
        ),
    },
    "What a driver says of a device that was allocated.",
)

RESOURCE_CLAIM_CONSUMER_REFERENCE: Final = Struct(
    "io.k8s.api.resource.v1.ResourceClaimConsumerReference",
    {
        "apiGroup": omit(STRING),
        "resource": zero(STRING, "In the plural, such as pods.", required=True),
        "name": zero(STRING, required=True),
        "uid": zero(named("types.UID"), required=True),
    },
    "Somebody who may use a claim.",
)

RESOURCE_CLAIM: Final = Struct(
    "io.k8s.api.resource.v1.ResourceClaim",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(RESOURCE_CLAIM_SPEC, required=True),
        "status": zero(
            Struct(
                "io.k8s.api.resource.v1.ResourceClaimStatus",
                {
                    "allocation": keep(ALLOCATION_RESULT),
                    "reservedFor": omit(
                        map_list(RESOURCE_CLAIM_CONSUMER_REFERENCE, "uid"),
                        "Who uses it now. While there is anybody it stays allocated.",
                        patch_key="uid",
                        patch_strategy="merge",
                    ),
                    "devices": omit(map_list(ALLOCATED_DEVICE_STATUS, "driver", "device", "pool", "shareID")),
                },
            )
        ),
    },
    "A wish for devices, for one pod or several.",
)

RESOURCE_CLAIM_TEMPLATE: Final = Struct(
    "io.k8s.api.resource.v1.ResourceClaimTemplate",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(
            Struct(
                "io.k8s.api.resource.v1.ResourceClaimTemplateSpec",
                {
                    "metadata": zero(OBJECT_META, "Labels and annotations for the claims; nothing else is allowed."),
                    "spec": zero(RESOURCE_CLAIM_SPEC, required=True),
                },
            ),
            required=True,
        ),
    },
    "What the claims of pods are made from.",
)
