"""Nodes, as those who taint, cordon and describe them send them."""

from typing import Final

from extender.embedded.protobuf.fields import Numbers, in_package, numbered
from extender.embedded.protobuf.numbers.metadata import WITH_STATUS

NODES: Final[dict[str, Numbers]] = in_package(
    "io.k8s.api.core.v1",
    Node=WITH_STATUS,
    NodeSpec=numbered(unschedulable=4, taints=5, providerID=3, podCIDR=1, podCIDRs=7, externalID=2),
    Taint=numbered(key=1, value=2, effect=3, timeAdded=4),
    NodeStatus=numbered(
        capacity=1, allocatable=2, phase=3, conditions=4, addresses=5, daemonEndpoints=6, nodeInfo=7, images=8,
        volumesInUse=9, volumesAttached=10, runtimeHandlers=12, features=13, declaredFeatures=14,
    ),
    NodeCondition=numbered(type=1, status=2, reason=5, message=6, lastHeartbeatTime=3, lastTransitionTime=4),
    NodeAddress=numbered(type=1, address=2),
    NodeDaemonEndpoints=numbered(kubeletEndpoint=1),
    DaemonEndpoint=numbered(Port=1),
    NodeSystemInfo=numbered(
        machineID=1, systemUUID=2, bootID=3, kernelVersion=4, osImage=5, containerRuntimeVersion=6, kubeletVersion=7, kubeProxyVersion=8,
        operatingSystem=9, architecture=10, swap=11,
    ),
    NodeSwapStatus=numbered(capacity=1),
    ContainerImage=numbered(names=1, sizeBytes=2),
    AttachedVolume=numbered(name=1, devicePath=2),
    NodeRuntimeHandler=numbered(name=1, features=2),
    NodeRuntimeHandlerFeatures=numbered(recursiveReadOnlyMounts=1, userNamespaces=2),
    NodeFeatures=numbered(supplementalGroupsPolicy=1),
)  # fmt: skip
