"""Namespaces, Services and ReplicationControllers: the old kinds of core/v1 around pods."""

from typing import Final

from extender.embedded.schema.declaring import TYPE_META, keep, map_list, named, null, omit, zero
from extender.embedded.schema.meta import CONDITION, OBJECT_META
from extender.embedded.schema.pods import POD_TEMPLATE_SPEC
from extender.embedded.schema.types import BOOL, INT32, INT64, INT_OR_STRING, STRING, STRINGS, TIME, ListOf, MapOf, Struct

_PROTOCOL: Final = named("v1.Protocol", "SCTP", "TCP", "UDP")

NAMESPACE_CONDITION: Final = Struct(
    "io.k8s.api.core.v1.NamespaceCondition",
    {
        "type": zero(named("v1.NamespaceConditionType"), required=True),
        "status": zero(named("v1.ConditionStatus"), "True, False or Unknown.", required=True),
        "lastTransitionTime": null(TIME, "When the status changed last."),
        "reason": omit(STRING, "A single word for the cause."),
        "message": omit(STRING, "The cause, for people."),
    },
    "What is known of a namespace in one respect.",
)

NAMESPACE: Final = Struct(
    "io.k8s.api.core.v1.Namespace",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(
            Struct(
                "io.k8s.api.core.v1.NamespaceSpec",
                {"finalizers": omit(ListOf(named("v1.FinalizerName")), "Who still has to clear it before it can go.")},
            )
        ),
        "status": zero(
            Struct(
                "io.k8s.api.core.v1.NamespaceStatus",
                {
                    "phase": omit(named("v1.NamespacePhase", "Active", "Terminating")),
                    "conditions": omit(map_list(NAMESPACE_CONDITION, "type"), patch_key="type", patch_strategy="merge"),
                },
            )
        ),
    },
    "A room for names.",
)

SERVICE_PORT: Final = Struct(
    "io.k8s.api.core.v1.ServicePort",
    {
        "name": omit(STRING, "Needed if there are several ports."),
        "protocol": omit(_PROTOCOL, default="TCP"),
        "appProtocol": keep(STRING, "What is spoken on top, as a hint."),
        "port": zero(INT32, "The port of the service.", required=True),
        "targetPort": zero(INT_OR_STRING, "The port of the pods, by number or name. The same one if not said."),
        "nodePort": omit(INT32, "The port of every node, for the types NodePort and LoadBalancer."),
    },
)

SERVICE_SPEC: Final = Struct(
    "io.k8s.api.core.v1.ServiceSpec",
    {
        "ports": omit(map_list(SERVICE_PORT, "port", "protocol"), patch_key="port", patch_strategy="merge"),
        "selector": omit(MapOf(STRING, atomic=True), "The labels of the pods that answer."),
        "clusterIP": omit(STRING, "The address in the cluster; None: the pods are named in DNS instead."),
        "clusterIPs": omit(STRINGS, "The same for one or both families; the first equals clusterIP."),
        "type": omit(named("v1.ServiceType", "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"), "How far it can be reached."),
        "externalIPs": omit(STRINGS, "Other addresses at which nodes accept its traffic."),
        "sessionAffinity": omit(named("v1.ServiceAffinity", "ClientIP", "None"), "Whether a client stays with a pod."),
        "loadBalancerIP": omit(STRING, "The address that the load balancer should get. Not every provider listens."),
        "loadBalancerSourceRanges": omit(STRINGS, "Clients whom the load balancer lets in."),
        "externalName": omit(STRING, "The name in DNS that stands behind a service of the type ExternalName."),
        "externalTrafficPolicy": omit(
            named("v1.ServiceExternalTrafficPolicy", "Cluster", "Local"), "Traffic from outside: to all pods, or to those of the node."
        ),
        "healthCheckNodePort": omit(INT32, "Where a load balancer asks which nodes have pods, for the external policy Local."),
        "publishNotReadyAddresses": omit(BOOL, "Pods need not be ready to be found."),
        "sessionAffinityConfig": keep(
            Struct(
                "io.k8s.api.core.v1.SessionAffinityConfig",
                {
                    "clientIP": keep(
                        Struct("io.k8s.api.core.v1.ClientIPConfig", {"timeoutSeconds": keep(INT32, "For how long it stays.")}),
                    )
                },
            )
        ),
        "ipFamilies": omit(ListOf(named("v1.IPFamily", "", "IPv4", "IPv6")), "One for each of clusterIPs."),
        "ipFamilyPolicy": keep(named("v1.IPFamilyPolicy", "PreferDualStack", "RequireDualStack", "SingleStack")),
        "allocateLoadBalancerNodePorts": keep(BOOL, "Whether a load balancer gets ports of the nodes too."),
        "loadBalancerClass": keep(STRING, "Who provides the load balancer. Absent: the cloud."),
        "internalTrafficPolicy": keep(
            named("v1.ServiceInternalTrafficPolicy", "Cluster", "Local"), "Traffic from inside: to all pods, or to those of the node."
        ),
        "trafficDistribution": keep(STRING, "Which pods are preferred, such as PreferSameZone."),
    },
    "How pods are reached under one name.",
)

LOAD_BALANCER_INGRESS: Final = Struct(
    "io.k8s.api.core.v1.LoadBalancerIngress",
    {
        "ip": omit(STRING),
        "hostname": omit(STRING),
        "ipMode": keep(named("v1.LoadBalancerIPMode"), "VIP or Proxy: whether packets arrive with the address of the service."),
        "ports": omit(
            ListOf(
                Struct(
                    "io.k8s.api.core.v1.PortStatus",
                    {
                        "port": zero(INT32, required=True),
                        "protocol": zero(_PROTOCOL, required=True),
                        "error": keep(STRING, "What is wrong with it."),
                    },
                )
            )
        ),
    },
    "A way in.",
)

SERVICE: Final = Struct(
    "io.k8s.api.core.v1.Service",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(SERVICE_SPEC),
        "status": zero(
            Struct(
                "io.k8s.api.core.v1.ServiceStatus",
                {
                    "loadBalancer": zero(
                        Struct("io.k8s.api.core.v1.LoadBalancerStatus", {"ingress": omit(ListOf(LOAD_BALANCER_INGRESS))}),
                    ),
                    "conditions": omit(map_list(CONDITION, "type"), patch_key="type", patch_strategy="merge"),
                },
            )
        ),
    },
    "One name and address for many pods.",
)

REPLICATION_CONTROLLER_CONDITION: Final = Struct(
    "io.k8s.api.core.v1.ReplicationControllerCondition",
    {
        "type": zero(named("v1.ReplicationControllerConditionType"), required=True),
        "status": zero(named("v1.ConditionStatus"), "True, False or Unknown.", required=True),
        "lastTransitionTime": null(TIME, "When the status changed last."),
        "reason": omit(STRING, "A single word for the cause."),
        "message": omit(STRING, "The cause, for people."),
    },
    "What is known of a ReplicationController in one respect.",
)

REPLICATION_CONTROLLER: Final = Struct(
    "io.k8s.api.core.v1.ReplicationController",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "spec": zero(
            Struct(
                "io.k8s.api.core.v1.ReplicationControllerSpec",
                {
                    "replicas": keep(INT32, "The number of pods wanted.", default=1),
                    "minReadySeconds": omit(
                        INT32, "For how many seconds a new pod must have been ready before it counts as available.", default=0
                    ),
                    "selector": omit(MapOf(STRING, atomic=True), "Which pods count. The labels of the template if not said."),
                    "template": keep(POD_TEMPLATE_SPEC, "What new pods are made from."),
                },
            )
        ),
        "status": zero(
            Struct(
                "io.k8s.api.core.v1.ReplicationControllerStatus",
                {
                    "replicas": zero(INT32, "Pods there are.", required=True),
                    "fullyLabeledReplicas": omit(INT32, "Pods that carry every label of the template."),
                    "readyReplicas": omit(INT32, "Pods that are ready."),
                    "availableReplicas": omit(INT32, "Pods that have been ready for long enough."),
                    "observedGeneration": omit(INT64, "The generation that the controller saw last."),
                    "conditions": omit(map_list(REPLICATION_CONTROLLER_CONDITION, "type"), patch_key="type", patch_strategy="merge"),
                },
            )
        ),
    },
    "Keeps a number of equal pods running. ReplicaSets came after it.",
)
