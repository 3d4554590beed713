"""Pods, what they are made from, and how they are bound.

Upstream: staging/src/k8s.io/api/core/v1, types.go (v1.36.2).
"""

from typing import Final

from extender.embedded.schema.container_statuses import CONTAINER_STATUS
from extender.embedded.schema.containers import (
    APP_ARMOR_PROFILE,
    CONTAINER,
    EPHEMERAL_CONTAINER,
    RESOURCE_REQUIREMENTS,
    SE_LINUX_OPTIONS,
    SECCOMP_PROFILE,
    WINDOWS_SECURITY_CONTEXT_OPTIONS,
)
from extender.embedded.schema.declaring import RESOURCE_LIST, TYPE_META, keep, map_list, named, null, omit, set_of, zero
from extender.embedded.schema.meta import OBJECT_META
from extender.embedded.schema.references import LOCAL_OBJECT_REFERENCE, OBJECT_REFERENCE
from extender.embedded.schema.scheduling_fields import AFFINITY, POD_SCHEDULING_GATE, TOLERATION, TOPOLOGY_SPREAD_CONSTRAINT
from extender.embedded.schema.types import BOOL, INT32, INT64, QUANTITY, STRING, STRINGS, TIME, ListOf, MapOf, Struct
from extender.embedded.schema.volumes import VOLUME

_CONDITION_TYPE: Final = named("v1.PodConditionType")

# Rights of all containers

SYSCTL: Final = Struct(
    "io.k8s.api.core.v1.Sysctl",
    {
        "name": zero(STRING, required=True),
        "value": zero(STRING, required=True),
    },
    "A setting of the kernel.",
)

POD_SECURITY_CONTEXT: Final = Struct(
    "io.k8s.api.core.v1.PodSecurityContext",
    {
        "seLinuxOptions": keep(SE_LINUX_OPTIONS),
        "windowsOptions": keep(WINDOWS_SECURITY_CONTEXT_OPTIONS),
        "runAsUser": keep(INT64, "Absent: as the images say."),
        "runAsGroup": keep(INT64),
        "runAsNonRoot": keep(BOOL, "Whether containers that would run as root are not started."),
        "supplementalGroups": omit(ListOf(INT64), "Groups besides."),
        "supplementalGroupsPolicy": keep(
            named("v1.SupplementalGroupsPolicy", "Merge", "Strict"), "Whether groups that the image names count as well."
        ),
        "fsGroup": keep(INT64, "The group that owns the volumes."),
        "sysctls": omit(ListOf(SYSCTL)),
        "fsGroupChangePolicy": keep(
            named("v1.PodFSGroupChangePolicy", "OnRootMismatch", "Always"), "When the owner of files in volumes is changed."
        ),
        "seccompProfile": keep(SECCOMP_PROFILE),
        "appArmorProfile": keep(APP_ARMOR_PROFILE),
        "seLinuxChangePolicy": keep(named("v1.PodSELinuxChangePolicy"), "Recursive or MountOption."),
    },
    "What the containers may do, unless they say otherwise.",
)

# Names and network

HOST_ALIAS: Final = Struct(
    "io.k8s.api.core.v1.HostAlias",
    {
        "ip": zero(STRING, required=True),
        "hostnames": omit(STRINGS),
    },
    "A line of /etc/hosts.",
)

POD_DNS_CONFIG_OPTION: Final = Struct(
    "io.k8s.api.core.v1.PodDNSConfigOption",
    {
        "name": omit(STRING),
        "value": keep(STRING),
    },
)

POD_DNS_CONFIG: Final = Struct(
    "io.k8s.api.core.v1.PodDNSConfig",
    {
        "nameservers": omit(STRINGS),
        "searches": omit(STRINGS, "Domains in which short names are looked up."),
        "options": omit(ListOf(POD_DNS_CONFIG_OPTION)),
    },
    "How names are looked up, on top of dnsPolicy.",
)

POD_OS: Final = Struct(
    "io.k8s.api.core.v1.PodOS",
    {"name": zero(named("v1.OSName"), "linux or windows.", required=True)},
    "The operating system that the pod needs.",
)

# What else a pod waits for or asks for

POD_READINESS_GATE: Final = Struct(
    "io.k8s.api.core.v1.PodReadinessGate",
    {"conditionType": zero(_CONDITION_TYPE, required=True)},
    "A condition without which the pod is not ready.",
)

POD_RESOURCE_CLAIM: Final = Struct(
    "io.k8s.api.core.v1.PodResourceClaim",
    {
        "name": zero(STRING, "How the containers call it.", required=True),
        "resourceClaimName": keep(STRING, "A claim in the same namespace."),
        "resourceClaimTemplateName": keep(STRING, "A template from which a claim is made for this pod."),
    },
    "Devices, by a claim or a template of one.",
)

POD_SCHEDULING_GROUP: Final = Struct(
    "io.k8s.api.core.v1.PodSchedulingGroup",
    {"podGroupName": keep(STRING)},
    "The pods with which the pod is scheduled.",
)

# What is wanted

POD_SPEC: Final = Struct(
    "io.k8s.api.core.v1.PodSpec",
    {
        "volumes": omit(map_list(VOLUME, "name"), patch_key="name", patch_strategy="merge,retainKeys"),
        "initContainers": omit(
            map_list(CONTAINER, "name"), "Run one after another, before the others.", patch_key="name", patch_strategy="merge"
        ),
        "containers": null(
            map_list(CONTAINER, "name"),
            "At least one. Cannot be added or removed.",
            patch_key="name",
            patch_strategy="merge",
            required=True,
        ),
        "ephemeralContainers": omit(
            map_list(EPHEMERAL_CONTAINER, "name"), "Added to a running pod to look into it.", patch_key="name", patch_strategy="merge"
        ),
        "restartPolicy": omit(named("v1.RestartPolicy", "Always", "OnFailure", "Never"), "Defaults to Always."),
        "terminationGracePeriodSeconds": keep(INT64, "How long the pod may take to end well. Defaults to 30."),
        "activeDeadlineSeconds": keep(INT64, "How long the pod may run."),
        "dnsPolicy": omit(named("v1.DNSPolicy", "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"), "Defaults to ClusterFirst."),
        "nodeSelector": omit(MapOf(STRING, atomic=True), "Labels that the node must have."),
        "serviceAccountName": omit(STRING),
        "serviceAccount": omit(STRING, "The old name of serviceAccountName."),
        "automountServiceAccountToken": keep(BOOL, "Whether containers get a token of the service account."),
        "nodeName": omit(STRING, "Where the pod runs. Empty: it is yet to be scheduled."),
        "hostNetwork": omit(BOOL, "Whether the pod is in the network of the node."),
        "hostPID": omit(BOOL, "Whether the pod sees the processes of the node."),
        "hostIPC": omit(BOOL),
        "shareProcessNamespace": keep(BOOL, "Whether the containers see each other's processes."),
        "securityContext": keep(POD_SECURITY_CONTEXT),
        "imagePullSecrets": omit(
            map_list(LOCAL_OBJECT_REFERENCE, "name"), "Secrets for fetching images.", patch_key="name", patch_strategy="merge"
        ),
        "hostname": omit(STRING, "Absent: the name of the pod."),
        "subdomain": omit(STRING),
        "affinity": keep(AFFINITY),
        "schedulerName": omit(STRING, "Who schedules the pod. Defaults to default-scheduler."),
        "tolerations": omit(ListOf(TOLERATION)),
        "hostAliases": omit(map_list(HOST_ALIAS, "ip"), "Lines of /etc/hosts.", patch_key="ip", patch_strategy="merge"),
        "priorityClassName": omit(STRING),
        "priority": keep(INT32, "How important the pod is. Filled in from the priority class."),
        "dnsConfig": keep(POD_DNS_CONFIG),
        "readinessGates": omit(ListOf(POD_READINESS_GATE)),
        "runtimeClassName": keep(STRING),
        "enableServiceLinks": keep(BOOL, "Whether services are told by variables. Defaults to true."),
        "preemptionPolicy": keep(
            named("v1.PreemptionPolicy", "Never", "PreemptLowerPriority"), "Whether less important pods may have to go for this one."
        ),
        "overhead": omit(RESOURCE_LIST, "What running the pod takes on top. Filled in from the runtime class."),
        "topologySpreadConstraints": omit(
            map_list(TOPOLOGY_SPREAD_CONSTRAINT, "topologyKey", "whenUnsatisfiable"),
            "How evenly pods are spread. All must hold.",
            patch_key="topologyKey",
            patch_strategy="merge",
        ),
        "setHostnameAsFQDN": keep(BOOL),
        "os": keep(POD_OS),
        "hostUsers": keep(BOOL, "Whether users in the pod are users of the node. Defaults to true."),
        "schedulingGates": omit(
            map_list(POD_SCHEDULING_GATE, "name"),
            "While there is one, the pod is not scheduled.",
            patch_key="name",
            patch_strategy="merge",
        ),
        "resourceClaims": omit(
            map_list(POD_RESOURCE_CLAIM, "name"), "Devices to be had first.", patch_key="name", patch_strategy="merge,retainKeys"
        ),
        "resources": keep(RESOURCE_REQUIREMENTS, "What all containers together need."),
        "hostnameOverride": keep(STRING, "The whole host name, whatever the other fields say."),
        "schedulingGroup": keep(POD_SCHEDULING_GROUP),
    },
    "What a pod is to be.",
)

# What is

POD_CONDITION: Final = Struct(
    "io.k8s.api.core.v1.PodCondition",
    {
        "type": zero(_CONDITION_TYPE, required=True),
        "observedGeneration": omit(INT64, "The generation of the pod that this was said of."),
        "status": zero(named("v1.ConditionStatus"), "True, False or Unknown.", required=True),
        "lastProbeTime": null(TIME),
        "lastTransitionTime": null(TIME, "When the status last changed."),
        "reason": omit(STRING, "A word in CamelCase that says why."),
        "message": omit(STRING, "An explanation for people."),
    },
    "One aspect of the state of a pod.",
)

HOST_IP: Final = Struct("io.k8s.api.core.v1.HostIP", {"ip": zero(STRING, required=True)}, "An address of the node.")

POD_IP: Final = Struct("io.k8s.api.core.v1.PodIP", {"ip": zero(STRING, required=True)}, "An address of the pod.")

POD_RESOURCE_CLAIM_STATUS: Final = Struct(
    "io.k8s.api.core.v1.PodResourceClaimStatus",
    {
        "name": zero(STRING, "One of spec.resourceClaims.", required=True),
        "resourceClaimName": keep(STRING, "Absent: no claim is needed."),
    },
    "The claim made from a template.",
)

CONTAINER_EXTENDED_RESOURCE_REQUEST: Final = Struct(
    "io.k8s.api.core.v1.ContainerExtendedResourceRequest",
    {
        "containerName": zero(STRING, required=True),
        "resourceName": zero(STRING, required=True),
        "requestName": zero(STRING, "The request of the claim that stands for it.", required=True),
    },
    "An extended resource that is met by devices.",
)

POD_EXTENDED_RESOURCE_CLAIM_STATUS: Final = Struct(
    "io.k8s.api.core.v1.PodExtendedResourceClaimStatus",
    {
        "requestMappings": null(ListOf(CONTAINER_EXTENDED_RESOURCE_REQUEST), required=True),
        "resourceClaimName": zero(STRING, required=True),
    },
    "The claim made for extended resources.",
)

NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS: Final = Struct(
    "io.k8s.api.core.v1.NodeAllocatableResourceClaimStatus",
    {
        "resourceClaimName": zero(STRING, required=True),
        "containers": omit(set_of(STRING), "Which containers use the claim."),
        "resources": null(MapOf(QUANTITY, go_type="map[v1.ResourceName]resource.Quantity"), required=True),
    },
    "What a claim takes of the node's own resources.",
)

POD_STATUS: Final = Struct(
    "io.k8s.api.core.v1.PodStatus",
    {
        "observedGeneration": omit(INT64, "The generation of the pod that the node knows."),
        "phase": omit(named("v1.PodPhase", "Pending", "Running", "Succeeded", "Failed", "Unknown"), "How far the pod has come."),
        "conditions": omit(map_list(POD_CONDITION, "type"), patch_key="type", patch_strategy="merge"),
        "message": omit(STRING, "Why it is so, for people to read."),
        "reason": omit(STRING, "The same in one word."),
        "nominatedNodeName": omit(STRING, "Where the pod may go once others have made room."),
        "hostIP": omit(STRING),
        "hostIPs": omit(ListOf(HOST_IP), patch_key="ip", patch_strategy="merge"),
        "podIP": omit(STRING),
        "podIPs": omit(map_list(POD_IP, "ip"), patch_key="ip", patch_strategy="merge"),
        "startTime": keep(TIME, "When the node took the pod on."),
        "initContainerStatuses": omit(ListOf(CONTAINER_STATUS)),
        "containerStatuses": omit(ListOf(CONTAINER_STATUS)),
        "qosClass": omit(named("v1.PodQOSClass", "Guaranteed", "Burstable", "BestEffort"), "How well what it asks for is kept for it."),
        "ephemeralContainerStatuses": omit(ListOf(CONTAINER_STATUS)),
        "resize": omit(named("v1.PodResizeStatus"), "Replaced by conditions."),
        "resourceClaimStatuses": omit(
            map_list(POD_RESOURCE_CLAIM_STATUS, "name"),
            "Claims made from templates.",
            patch_key="name",
            patch_strategy="merge,retainKeys",
        ),
        "extendedResourceClaimStatus": keep(POD_EXTENDED_RESOURCE_CLAIM_STATUS),
        "allocatedResources": omit(RESOURCE_LIST, "What the node set aside for the pod as a whole."),
        "resources": keep(RESOURCE_REQUIREMENTS, "What the pod as a whole runs with."),
        "nodeAllocatableResourceClaimStatuses": omit(ListOf(NODE_ALLOCATABLE_RESOURCE_CLAIM_STATUS)),
    },
    "How a pod is doing.",
)

# Whole objects

POD: Final = Struct(
    "io.k8s.api.core.v1.Pod",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(POD_SPEC, "What the pod is to be."),
        "status": zero(POD_STATUS, "How it is doing. Kept by the node and the scheduler."),
    },
    "Containers that run together on one node.",
)

POD_TEMPLATE_SPEC: Final = Struct(
    "io.k8s.api.core.v1.PodTemplateSpec",
    {
        "metadata": zero(OBJECT_META),
        "spec": zero(POD_SPEC),
    },
    "What pods are made from.",
)

BINDING: Final = Struct(
    "io.k8s.api.core.v1.Binding",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "target": zero(OBJECT_REFERENCE, "The node.", required=True),
    },
    "Puts a pod on a node.",
)
