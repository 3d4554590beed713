"""Services."""

from typing import Final

from extender.embedded.protobuf.fields import Numbers, in_package, numbered
from extender.embedded.protobuf.numbers.metadata import WITH_STATUS

SERVICES: Final[dict[str, Numbers]] = in_package(
    "io.k8s.api.core.v1",
    Service=WITH_STATUS,
    # 6, 15 and 16 are no longer in use.
    ServiceSpec=numbered(
        type=4, selector=2, ports=1, clusterIP=3, clusterIPs=18, ipFamilies=19, ipFamilyPolicy=17, externalIPs=5, externalName=10,
        sessionAffinity=7, sessionAffinityConfig=14, publishNotReadyAddresses=13, healthCheckNodePort=12,
        internalTrafficPolicy=22, externalTrafficPolicy=11, trafficDistribution=23,
        loadBalancerIP=8, loadBalancerSourceRanges=9, loadBalancerClass=21, allocateLoadBalancerNodePorts=20,
    ),
    ServicePort=numbered(name=1, protocol=2, appProtocol=6, port=3, targetPort=4, nodePort=5),
    SessionAffinityConfig=numbered(clientIP=1),
    ClientIPConfig=numbered(timeoutSeconds=1),
    ServiceStatus=numbered(loadBalancer=1, conditions=2),
    LoadBalancerStatus=numbered(ingress=1),
    LoadBalancerIngress=numbered(ip=1, hostname=2, ipMode=3, ports=4),
    PortStatus=numbered(port=1, protocol=2, error=3),
)  # fmt: skip
