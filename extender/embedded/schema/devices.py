"""Devices on offer: the ResourceSlices of drivers, and DeviceClasses."""

from typing import Final

from extender.embedded.schema.declaring import TYPE_META, keep, named, null, omit, zero
from extender.embedded.schema.meta import OBJECT_META
from extender.embedded.schema.scheduling_fields import NODE_SELECTOR
from extender.embedded.schema.types import ANYTHING, BOOL, INT64, QUANTITY, STRING, STRINGS, TIME, ListOf, MapOf, Struct

DEVICE_SELECTOR: Final = Struct(
    "io.k8s.api.resource.v1.DeviceSelector",
    {
        "cel": keep(
            Struct(
                "io.k8s.api.resource.v1.CELDeviceSelector",
                {"expression": zero(STRING, "True for a `device` that will do.", required=True)},
            )
        )
    },
    "A condition that a device must meet.",
)

OPAQUE_DEVICE_CONFIGURATION: Final = Struct(
    "io.k8s.api.resource.v1.OpaqueDeviceConfiguration",
    {
        "driver": zero(STRING, "The driver that understands it.", required=True),
        "parameters": null(ANYTHING, "What the driver should know.", required=True),
    },
    "Words for a driver; Kubernetes does not look inside.",
)

DEVICE_CLASS: Final = Struct(
    "io.k8s.api.resource.v1.DeviceClass",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(
            Struct(
                "io.k8s.api.resource.v1.DeviceClassSpec",
                {
                    "selectors": omit(ListOf(DEVICE_SELECTOR), "Devices that meet all of these are of this class."),
                    "config": omit(
                        ListOf(
                            Struct(
                                "io.k8s.api.resource.v1.DeviceClassConfiguration",
                                {"opaque": keep(OPAQUE_DEVICE_CONFIGURATION)},
                            )
                        ),
                        "Goes to the driver of each device that is claimed by this class.",
                    ),
                    "extendedResourceName": keep(STRING, "The extended resource by which containers may request such devices too."),
                },
            ),
            required=True,
        ),
    },
    "A name for a sort of devices.",
)

_COUNTERS: Final = MapOf(
    Struct("io.k8s.api.resource.v1.Counter", {"value": zero(QUANTITY, required=True)}, "An amount of something that devices share.")
)

DEVICE_ATTRIBUTE: Final = Struct(
    "io.k8s.api.resource.v1.DeviceAttribute",
    {
        "int": keep(INT64),
        "bool": keep(BOOL),
        "string": keep(STRING),
        "version": keep(STRING, "A semantic version."),
        "ints": omit(ListOf(INT64)),
        "bools": omit(ListOf(BOOL)),
        "strings": omit(STRINGS),
        "versions": omit(STRINGS, "Semantic versions."),
    },
    "Exactly one of these.",
)

CAPACITY_REQUEST_POLICY: Final = Struct(
    "io.k8s.api.resource.v1.CapacityRequestPolicy",
    {
        "default": null(QUANTITY, "What a request gets that does not say how much."),
        "validValues": omit(ListOf(QUANTITY), "A request is rounded up to one of these."),
        "validRange": keep(
            Struct(
                "io.k8s.api.resource.v1.CapacityRequestPolicyRange",
                {
                    "min": keep(QUANTITY, "A request for less is rounded up.", required=True),
                    "max": keep(QUANTITY, "A request for more fails."),
                    "step": keep(QUANTITY, "A request is rounded up to the minimum and so many steps."),
                },
            ),
            "Not with validValues.",
        ),
    },
    "How much of a capacity may be requested at a time.",
)

DEVICE_CAPACITY: Final = Struct(
    "io.k8s.api.resource.v1.DeviceCapacity",
    {"value": zero(QUANTITY, "All there is.", required=True), "requestPolicy": keep(CAPACITY_REQUEST_POLICY)},
    "How much of something a device has.",
)

DEVICE_COUNTER_CONSUMPTION: Final = Struct(
    "io.k8s.api.resource.v1.DeviceCounterConsumption",
    {
        "counterSet": zero(STRING, "The set that is drawn from.", required=True),
        "counters": omit(_COUNTERS, "How much of which.", required=True),
    },
    "What is used up of shared counters while a device is allocated.",
)

DEVICE_TAINT: Final = Struct(
    "io.k8s.api.resource.v1.DeviceTaint",
    {
        "key": zero(STRING, required=True),
        "value": omit(STRING),
        "effect": zero(named("v1.DeviceTaintEffect", "NoExecute", "NoSchedule", "None"), required=True),
        "timeAdded": keep(TIME, "Since when."),
    },
    "Keeps claims away from a device unless they tolerate it.",
)

DEVICE: Final = Struct(
    "io.k8s.api.resource.v1.Device",
    {
        "name": zero(STRING, "Unique in its pool.", required=True),
        "attributes": omit(MapOf(DEVICE_ATTRIBUTE, go_type="map[v1.QualifiedName]v1.DeviceAttribute"), "What selectors may ask for."),
        "capacity": omit(MapOf(DEVICE_CAPACITY, go_type="map[v1.QualifiedName]v1.DeviceCapacity"), "How much it has, of what."),
        "consumesCounters": omit(ListOf(DEVICE_COUNTER_CONSUMPTION)),
        "nodeName": keep(STRING, "The only node that can use it. For slices with perDeviceNodeSelection, as are the next two."),
        "nodeSelector": keep(NODE_SELECTOR, "The nodes that can use it."),
        "allNodes": keep(BOOL, "Every node can use it."),
        "taints": omit(ListOf(DEVICE_TAINT)),
        "bindsToNode": keep(BOOL, "A claim that gets it holds for the chosen node only."),
        "bindingConditions": omit(STRINGS, "Conditions that must come true before a pod is bound."),
        "bindingFailureConditions": omit(STRINGS, "Conditions any of which means that it failed."),
        "allowMultipleAllocations": keep(BOOL, "Several requests may share it."),
        "nodeAllocatableResourceMappings": omit(
            MapOf(
                Struct(
                    "io.k8s.api.resource.v1.NodeAllocatableResourceMapping",
                    {
                        "capacityKey": keep(named("v1.QualifiedName"), "The capacity whose consumption counts."),
                        "allocationMultiplier": keep(QUANTITY, "How much for each unit of that capacity, or for the device."),
                    },
                ),
                go_type="map[v1.ResourceName]v1.NodeAllocatableResourceMapping",
            ),
            "How much of the node's own resources goes with it.",
        ),
    },
    "Something that a driver has to offer.",
)

RESOURCE_SLICE: Final = Struct(
    "io.k8s.api.resource.v1.ResourceSlice",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(
            Struct(
                "io.k8s.api.resource.v1.ResourceSliceSpec",
                {
                    "driver": zero(STRING, "Who offers.", required=True),
                    "pool": zero(
                        Struct(
                            "io.k8s.api.resource.v1.ResourcePool",
                            {
                                "name": zero(STRING, "Often that of the node.", required=True),
                                "generation": zero(INT64, "Slices of an older generation do not count.", required=True),
                                "resourceSliceCount": zero(INT64, "How many slices make up this generation.", required=True),
                            },
                            "Devices that are published together, in one slice or more.",
                        ),
                        required=True,
                    ),
                    "nodeName": keep(STRING, "The only node that can use the devices."),
                    "nodeSelector": keep(NODE_SELECTOR, "The nodes that can use the devices."),
                    "allNodes": keep(BOOL, "Every node can use the devices."),
                    "devices": omit(ListOf(DEVICE)),
                    "perDeviceNodeSelection": keep(BOOL, "Each device says for itself which nodes can use it."),
                    "sharedCounters": omit(
                        ListOf(
                            Struct(
                                "io.k8s.api.resource.v1.CounterSet",
                                {"name": zero(STRING, required=True), "counters": omit(_COUNTERS, required=True)},
                                "Counters that belong together.",
                            )
                        ),
                        "What partitions of one device share. Not in a slice with devices.",
                    ),
                },
            ),
            required=True,
        ),
    },
    "A part of what a driver has to offer.",
)
