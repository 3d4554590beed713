"""Nodes: what they have, how they are, and what keeps pods away from them."""

from typing import Final

from extender.embedded.schema.declaring import RESOURCE_LIST, TYPE_META, keep, map_list, named, null, omit, set_of, zero
from extender.embedded.schema.meta import OBJECT_META
from extender.embedded.schema.scheduling_fields import TAINT
from extender.embedded.schema.types import BOOL, INT32, INT64, STRING, STRINGS, TIME, ListOf, Struct

_UNIQUE_VOLUME_NAME: Final = named("v1.UniqueVolumeName")

# The kubelet takes no configuration from the API any more, but objects may still say so.
NODE_CONFIG_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.NodeConfigSource",
    {
        "configMap": keep(
            Struct(
                "io.k8s.api.core.v1.ConfigMapNodeConfigSource",
                {
                    "namespace": zero(STRING, required=True),
                    "name": zero(STRING, required=True),
                    "uid": omit(named("types.UID")),
                    "resourceVersion": omit(STRING),
                    "kubeletConfigKey": zero(STRING, "Under which key the configuration stands.", required=True),
                },
                "A ConfigMap with a configuration of the kubelet.",
            )
        )
    },
    "No longer in use: where the kubelet's configuration comes from.",
)

NODE_SPEC: Final = Struct(
    "io.k8s.api.core.v1.NodeSpec",
    {
        "podCIDR": omit(STRING, "The range from which pods get their addresses."),
        "podCIDRs": omit(set_of(STRING), "The same for one or both families; the first equals podCIDR.", patch_strategy="merge"),
        "providerID": omit(STRING, "What the cloud calls this machine."),
        "unschedulable": omit(BOOL, "Cordoned: new pods do not come here."),
        "taints": omit(ListOf(TAINT), "What pods must tolerate to come or stay."),
        "configSource": keep(NODE_CONFIG_SOURCE, "No longer in use."),
        "externalID": omit(STRING, "No longer in use."),
    },
    "What the cluster decided about a node.",
)

NODE_CONDITION: Final = Struct(
    "io.k8s.api.core.v1.NodeCondition",
    {
        "type": zero(named("v1.NodeConditionType"), "Ready, MemoryPressure and so on.", required=True),
        "status": zero(named("v1.ConditionStatus"), "True, False or Unknown.", required=True),
        "lastHeartbeatTime": null(TIME, "When the kubelet said so last."),
        "lastTransitionTime": null(TIME, "When the status changed last."),
        "reason": omit(STRING, "A single word for the cause."),
        "message": omit(STRING, "The cause, for people."),
    },
    "What is known of a node in one respect.",
)

NODE_ADDRESS: Final = Struct(
    "io.k8s.api.core.v1.NodeAddress",
    {
        "type": zero(named("v1.NodeAddressType"), "Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.", required=True),
        "address": zero(STRING, required=True),
    },
)

NODE_DAEMON_ENDPOINTS: Final = Struct(
    "io.k8s.api.core.v1.NodeDaemonEndpoints",
    {
        "kubeletEndpoint": zero(
            Struct("io.k8s.api.core.v1.DaemonEndpoint", {"Port": zero(INT32, required=True)}), "Where the kubelet listens."
        )
    },
)

NODE_SYSTEM_INFO: Final = Struct(
    "io.k8s.api.core.v1.NodeSystemInfo",
    {
        "machineID": zero(STRING, "From /etc/machine-id or the like.", required=True),
        "systemUUID": zero(STRING, "That of the hardware.", required=True),
        "bootID": zero(STRING, "Another one after each start.", required=True),
        "kernelVersion": zero(STRING, required=True),
        "osImage": zero(STRING, "The name of the operating system with its version.", required=True),
        "containerRuntimeVersion": zero(STRING, "The name of the runtime with its version.", required=True),
        "kubeletVersion": zero(STRING, required=True),
        "kubeProxyVersion": zero(STRING, "No longer in use.", required=True),
        "operatingSystem": zero(STRING, "linux or windows.", required=True),
        "architecture": zero(STRING, "Such as amd64 or arm64.", required=True),
        "swap": keep(Struct("io.k8s.api.core.v1.NodeSwapStatus", {"capacity": keep(INT64, "In bytes.")}), "Its space for swapping."),
    },
    "Versions and identities of a node.",
)

CONTAINER_IMAGE: Final = Struct(
    "io.k8s.api.core.v1.ContainerImage",
    {
        "names": null(STRINGS, "All the names under which the node knows it."),
        "sizeBytes": omit(INT64),
    },
    "An image that a node has got already.",
)

ATTACHED_VOLUME: Final = Struct(
    "io.k8s.api.core.v1.AttachedVolume",
    {
        "name": zero(_UNIQUE_VOLUME_NAME, required=True),
        "devicePath": zero(STRING, "The device that it became.", required=True),
    },
)

NODE_CONFIG_STATUS: Final = Struct(
    "io.k8s.api.core.v1.NodeConfigStatus",
    {
        "assigned": keep(NODE_CONFIG_SOURCE, "The one to use after the next start."),
        "active": keep(NODE_CONFIG_SOURCE, "The one in use."),
        "lastKnownGood": keep(NODE_CONFIG_SOURCE, "The one to fall back to."),
        "error": omit(STRING, "What is wrong with the assigned one."),
    },
    "No longer in use: which configuration the kubelet took.",
)

NODE_RUNTIME_HANDLER: Final = Struct(
    "io.k8s.api.core.v1.NodeRuntimeHandler",
    {
        "name": zero(STRING, "Empty for the default one."),
        "features": keep(
            Struct(
                "io.k8s.api.core.v1.NodeRuntimeHandlerFeatures",
                {
                    "recursiveReadOnlyMounts": keep(BOOL, "It can mount a whole tree for reading only."),
                    "userNamespaces": keep(BOOL, "It can give a pod users of its own."),
                },
            )
        ),
    },
    "A way to run containers that a RuntimeClass may ask for.",
)

NODE_STATUS: Final = Struct(
    "io.k8s.api.core.v1.NodeStatus",
    {
        "capacity": omit(RESOURCE_LIST, "All that the node has."),
        "allocatable": omit(RESOURCE_LIST, "What of it pods may request."),
        "phase": omit(named("v1.NodePhase", "Pending", "Running", "Terminated"), "No longer in use."),
        "conditions": omit(map_list(NODE_CONDITION, "type"), patch_key="type", patch_strategy="merge"),
        "addresses": omit(map_list(NODE_ADDRESS, "type"), patch_key="type", patch_strategy="merge"),
        "daemonEndpoints": zero(NODE_DAEMON_ENDPOINTS),
        "nodeInfo": zero(NODE_SYSTEM_INFO),
        "images": omit(ListOf(CONTAINER_IMAGE), "Images that need not be pulled."),
        "volumesInUse": omit(ListOf(_UNIQUE_VOLUME_NAME), "Volumes that must not be detached, because they are mounted."),
        "volumesAttached": omit(ListOf(ATTACHED_VOLUME)),
        "config": keep(NODE_CONFIG_STATUS, "No longer in use."),
        "runtimeHandlers": omit(ListOf(NODE_RUNTIME_HANDLER)),
        "features": keep(
            Struct(
                "io.k8s.api.core.v1.NodeFeatures",
                {"supplementalGroupsPolicy": keep(BOOL, "The policy of that name in a pod has an effect here.")},
            ),
            "What the container runtime can do whatever the handler.",
        ),
        "declaredFeatures": omit(STRINGS, "Features of Kubernetes that pods may ask for here."),
    },
    "What the kubelet and the cloud say of a node.",
)

NODE: Final = Struct(
    "io.k8s.api.core.v1.Node",
    TYPE_META | {"metadata": zero(OBJECT_META), "spec": zero(NODE_SPEC), "status": zero(NODE_STATUS)},
    "A machine on which pods run.",
)
