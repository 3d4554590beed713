"""The kinds of resources that names stand for: extended, native, counted as a scalar, allowed for a whole pod.

Upstream: kubernetes/pkg/apis/core/v1/helper/helpers.go; pkg/scheduler/util/utils.go, IsScalarResourceName.
"""

from functools import lru_cache
from typing import Final

from extender.values import limits
from extender.values.objects.name_syntax import label_key_errors

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

INSUFFICIENT: Final = "Insufficient "
TOO_MANY_PODS: Final = "Too many pods"
"""The words of kube-scheduler for a node without room for a pod: the first before the name of a resource."""

HUGEPAGES_PREFIX: Final = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX: Final = "attachable-volumes-"
QUOTA_PREFIX: Final = "requests."
NATIVE_DOMAIN: Final = "kubernetes.io/"


def is_scalar_resource_name(name: str) -> bool:
    """Returns whether it is counted by itself: extended, huge pages, volumes, `*kubernetes.io/*`."""
    return _is_scalar(name) if len(name) <= limits.RESOURCE_NAME else _is_scalar.__wrapped__(name)


def is_extended_resource_name(name: str) -> bool:
    """Returns whether it is `domain/name` outside of Kubernetes' own, and can be put into a quota."""
    if is_native_resource(name) or name.startswith(QUOTA_PREFIX):
        return False
    return not label_key_errors(QUOTA_PREFIX + name)


def is_native_resource(name: str) -> bool:
    """Returns whether it has no domain, or Kubernetes' own: `kubernetes.io` or one that ends so."""
    return "/" not in name or NATIVE_DOMAIN in name


def is_pod_level_resource(name: str) -> bool:
    """Returns whether a whole pod can request it: cpu, memory, huge pages (IsSupportedPodLevelResource)."""
    return name in (CPU, MEMORY) or name.startswith(HUGEPAGES_PREFIX)


@lru_cache(maxsize=16384)
def _is_scalar(name: str) -> bool:
    return (
        name.startswith((HUGEPAGES_PREFIX, ATTACHABLE_VOLUMES_PREFIX))
        or NATIVE_DOMAIN in name
        or is_extended_resource_name(name)
    )
