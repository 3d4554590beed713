"""Pods, templates of pods, and what is done with pods: binding and eviction."""

from typing import Final

from extender.embedded.protobuf.fields import Numbers, in_package, numbered
from extender.embedded.protobuf.numbers.metadata import WITH_SPEC, WITH_STATUS

PODS: Final[dict[str, Numbers]] = in_package(
    "io.k8s.api.core.v1",
    Pod=WITH_STATUS,
    PodTemplateSpec=WITH_SPEC,
    Binding=numbered(metadata=1, target=2),
    PodSpec=numbered(
        # What runs.
        containers=2, initContainers=20, ephemeralContainers=34, volumes=1, resources=40, overhead=32, resourceClaims=39,
        # Where.
        schedulerName=19, nodeName=10, nodeSelector=7, affinity=18, tolerations=22, topologySpreadConstraints=33,
        schedulingGates=38, schedulingGroup=43, priorityClassName=24, priority=25, preemptionPolicy=31,
        # For how long.
        restartPolicy=3, terminationGracePeriodSeconds=4, activeDeadlineSeconds=5, readinessGates=28,
        # As whom.
        serviceAccountName=8, serviceAccount=9, automountServiceAccountToken=21, imagePullSecrets=15, securityContext=14,
        # In which surroundings.
        runtimeClassName=29, os=36, hostNetwork=11, hostPID=12, hostIPC=13, hostUsers=37, shareProcessNamespace=27,
        hostname=16, subdomain=17, setHostnameAsFQDN=35, hostnameOverride=41, hostAliases=23,
        dnsPolicy=6, dnsConfig=26, enableServiceLinks=30,
    ),
    # 2 was a message around the two names.
    PodResourceClaim=numbered(name=1, resourceClaimName=3, resourceClaimTemplateName=4),
    PodReadinessGate=numbered(conditionType=1),
    PodOS=numbered(name=1),
    PodDNSConfig=numbered(nameservers=1, searches=2, options=3),
    PodDNSConfigOption=numbered(name=1, value=2),
    HostAlias=numbered(ip=1, hostnames=2),
    PodSecurityContext=numbered(
        runAsUser=2, runAsGroup=6, runAsNonRoot=3, supplementalGroups=4, supplementalGroupsPolicy=12, fsGroup=5, fsGroupChangePolicy=9,
        seLinuxOptions=1, seLinuxChangePolicy=13, windowsOptions=8, seccompProfile=10, appArmorProfile=11, sysctls=7,
    ),
    Sysctl=numbered(name=1, value=2),
    PodStatus=numbered(
        phase=1, conditions=2, reason=4, message=3, nominatedNodeName=11, startTime=7, qosClass=9, observedGeneration=17, resize=14,
        hostIP=5, hostIPs=16, podIP=6, podIPs=12,
        containerStatuses=8, initContainerStatuses=10, ephemeralContainerStatuses=13,
        resourceClaimStatuses=15, extendedResourceClaimStatus=18, allocatedResources=19, resources=20,
    ),
    PodCondition=numbered(type=1, status=2, reason=5, message=6, observedGeneration=7, lastProbeTime=3, lastTransitionTime=4),
    PodIP=numbered(ip=1),
    HostIP=numbered(ip=1),
    PodResourceClaimStatus=numbered(name=1, resourceClaimName=2),
    PodExtendedResourceClaimStatus=numbered(requestMappings=1, resourceClaimName=2),
    ContainerExtendedResourceRequest=numbered(containerName=1, resourceName=2, requestName=3),
) | in_package(
    "io.k8s.api.policy.v1",
    Eviction=numbered(metadata=1, deleteOptions=2),
)  # fmt: skip
