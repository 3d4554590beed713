"""The order of activeQ, as the QueueSort plugin gives it."""

from collections.abc import Callable
from typing import Any, Final

from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.values.klog.logger import Logger
from extender.values.objects.pod import Pod

SortKey = Callable[[Pod, float], tuple[Any, ...]]
"""The sort key of a pod, given the seconds at which it was queued."""

_LOG: Final = Logger(__name__)


def in_order(sort_key: SortKey) -> Callable[[QueuedPodInfo], tuple[Any, ...]]:
    """Returns a sort key that never raises. A pod that the plugin cannot order comes last, so that other pods are tried
    all the same.
    """

    def safe_key(info: QueuedPodInfo) -> tuple[Any, ...]:
        try:
            key = sort_key(info.pod, info.timestamp)
            if isinstance(key, tuple):
                return 0, key
            raise TypeError(f"{key!r} is no tuple")
        except Exception as exc:
            _LOG.exception(exc, "Plugin failed", extensionPoint="QueueSort", pod=info.pod)
            return 1, (info.timestamp,)

    return safe_key
