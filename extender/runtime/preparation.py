"""Preparation: what plugins work out about a long pod in a thread, before its first cycle holds the event loop."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, final

from extender import framework as fwk
from extender.klog.logger import Logger
from extender.objects.pod import Pod

PREPARED_KEPT: Final = 4096
"""More than a pod group has members that are long, since a group begins again after each preparation."""

_LOG: Final = Logger(__name__)


@final
class Preparations:
    """Which long pods the plugins of a profile are prepared for. State: the signatures of the last ones."""

    def __init__(self) -> None:
        self._prepared: OrderedDict[bytes, None] = OrderedDict()

    def check(self, pod: Pod, signature: bytes, plugins: Sequence[fwk.PreFilterPlugin]) -> None:
        """Returns once the plugins are prepared for this pod or for an equal one.

        Raises:
            LongWork: they are not yet.
        """
        if signature in self._prepared:
            self._prepared.move_to_end(signature)
            return

        def prepare(is_wanted: Callable[[], bool]) -> None:
            for plugin in plugins:
                if not is_wanted():
                    return
                try:
                    plugin.prepare(pod)
                except Exception as exc:
                    _LOG.info(4, "Plugin is not prepared for pod", plugin=plugin.name, pod=pod, err=exc)  # the cycle will fail alike
            self._prepared[signature] = None
            if len(self._prepared) > PREPARED_KEPT:
                self._prepared.popitem(last=False)

        raise fwk.LongWork(prepare)
