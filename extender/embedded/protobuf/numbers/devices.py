"""Devices: who offers them, who claims them, and who has got them."""

from typing import Final

from extender.embedded.protobuf.fields import Numbers, in_package, numbered
from extender.embedded.protobuf.numbers.metadata import WITH_SPEC, WITH_STATUS

_CONFIGURATION: Final = numbered(opaque=1)

DEVICES: Final[dict[str, Numbers]] = in_package(
    "io.k8s.api.resource.v1",
    # Offers.
    ResourceSlice=WITH_SPEC,
    ResourceSliceSpec=numbered(
        driver=1, pool=2, nodeName=3, nodeSelector=4, allNodes=5, perDeviceNodeSelection=7, devices=6, sharedCounters=8
    ),
    ResourcePool=numbered(name=1, generation=2, resourceSliceCount=3),
    CounterSet=numbered(name=1, counters=2),
    Counter=numbered(value=1),
    Device=numbered(
        name=1, attributes=2, capacity=3, consumesCounters=4, taints=8, allowMultipleAllocations=12,
        nodeName=5, nodeSelector=6, allNodes=7, bindsToNode=9, bindingConditions=10, bindingFailureConditions=11,
    ),
    DeviceAttribute=numbered(int=2, bool=3, string=4, version=5, ints=6, bools=7, strings=8, versions=9),
    DeviceCapacity=numbered(value=1, requestPolicy=2),
    CapacityRequestPolicy=numbered(default=1, validValues=3, validRange=4),
    CapacityRequestPolicyRange=numbered(min=1, max=2, step=3),
    DeviceCounterConsumption=numbered(counterSet=1, counters=2),
    DeviceTaint=numbered(key=1, value=2, effect=3, timeAdded=4),
    # Classes.
    DeviceClass=WITH_SPEC,
    DeviceClassSpec=numbered(selectors=1, config=2, extendedResourceName=4),
    DeviceClassConfiguration=numbered({1: _CONFIGURATION}),
    DeviceSelector=numbered(cel=1),
    CELDeviceSelector=numbered(expression=1),
    OpaqueDeviceConfiguration=numbered(driver=1, parameters=2),
    # Claims.
    ResourceClaim=WITH_STATUS,
    ResourceClaimTemplate=WITH_SPEC,
    ResourceClaimTemplateSpec=WITH_SPEC,
    ResourceClaimSpec=numbered(devices=1),
    DeviceClaim=numbered(requests=1, constraints=2, config=3),
    DeviceClaimConfiguration=numbered({2: _CONFIGURATION}, requests=1),
    DeviceConstraint=numbered(requests=1, matchAttribute=2, distinctAttribute=3),
    DeviceRequest=numbered(name=1, exactly=2, firstAvailable=3),
    ExactDeviceRequest=numbered(deviceClassName=1, selectors=2, allocationMode=3, count=4, adminAccess=5, tolerations=6, capacity=7),
    DeviceSubRequest=numbered(name=1, deviceClassName=2, selectors=3, allocationMode=4, count=5, tolerations=6, capacity=7),
    DeviceToleration=numbered(key=1, operator=2, value=3, effect=4, tolerationSeconds=5),
    CapacityRequirements=numbered(requests=1),
    # Allocations.
    ResourceClaimStatus=numbered(allocation=1, reservedFor=2, devices=4),
    ResourceClaimConsumerReference=numbered(apiGroup=1, resource=3, name=4, uid=5),
    AllocationResult=numbered(devices=1, nodeSelector=3, allocationTimestamp=5),
    DeviceAllocationResult=numbered(results=1, config=2),
    DeviceAllocationConfiguration=numbered({3: _CONFIGURATION}, source=1, requests=2),
    DeviceRequestAllocationResult=numbered(
        request=1, driver=2, pool=3, device=4, shareID=9, consumedCapacity=10, adminAccess=5, tolerations=6,
        bindingConditions=7, bindingFailureConditions=8,
    ),
    AllocatedDeviceStatus=numbered(driver=1, pool=2, device=3, shareID=7, conditions=4, data=5, networkData=6),
    NetworkDeviceData=numbered(interfaceName=1, ips=2, hardwareAddress=3),
)  # fmt: skip
