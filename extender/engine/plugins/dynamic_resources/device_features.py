"""The features of device allocation that are on.

Upstream: framework/plugins/dynamicresources/dynamicresources.go, AllocatorFeatures.
"""

from typing import Final, final

import msgspec

from extender.values.config.feature_gates import FeatureGates
from extender.values.config.plugin_args import binding_conditions_are_on


@final
class DeviceFeatures(msgspec.Struct, frozen=True):
    """The features of devices that allocation takes into account."""

    taints: bool = True
    taint_rules: bool = False
    partitions: bool = True
    """Devices that share counters, and slices that select nodes for each device. Otherwise they are left out."""
    binding_conditions: bool = True
    """Devices that take time to prepare. Otherwise they are left out, and nobody waits for those that are allocated."""
    fractional_ranges: bool = False

    @staticmethod
    def of(gates: FeatureGates) -> "DeviceFeatures":
        return DeviceFeatures(
            taints=gates.enabled("DRADeviceTaints"),
            taint_rules=gates.enabled("DRADeviceTaintRules"),
            partitions=gates.enabled("DRAPartitionableDevices"),
            binding_conditions=binding_conditions_are_on(gates),
            fractional_ranges=gates.enabled("DRAFractionalCapacityRange"),
        )


ALL_FEATURES: Final = DeviceFeatures()
"""The features that 1.36 has by default."""
