"""The limits of a CSINode for attaching volumes, which are the same for most nodes of a cluster.

Upstream: framework/plugins/nodevolumelimits/csi.go, getVolumeLimits; framework/plugins/volumebinding/binder.go,
isPluginMigratedToCSIOnNode (v1.36.2).
"""

from dataclasses import dataclass
from typing import Final, final

from extender.objects.storage import CSINode

MIGRATED_PLUGINS_ANNOTATION: Final = "storage.alpha.kubernetes.io/migrated-plugins"
"""The in-tree plugins, with commas between them, whose volumes the node serves through CSI drivers."""


@final
@dataclass(frozen=True, slots=True)
class AttachProfile:
    """The number of volumes of each driver that a node can attach, and the in-tree volumes that count as theirs."""

    limits: tuple[tuple[str, int], ...] = ()
    """(driver, volumes) of the drivers that have a limit."""
    migrated_plugins: frozenset[str] = frozenset()


def attach_profile(node: CSINode) -> AttachProfile:
    """Returns the profile of a node. Of a driver that is listed twice, the last limit holds."""
    limits = {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
    listed = node.metadata.annotations.get(MIGRATED_PLUGINS_ANNOTATION)
    return AttachProfile(tuple(limits.items()), frozenset(listed.split(",")) if listed else frozenset())
