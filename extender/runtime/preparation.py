"""Preparation: what plugins work out about a long pod in a thread, before its first cycle holds the event loop."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, final
from weakref import WeakValueDictionary

from extender import framework as fwk
from extender.klog.logger import Logger
from extender.objects.kept_parses import LONG_BYTES_KEPT, HeldParses
from extender.objects.pod import Pod

_LOG: Final = Logger(__name__)


@final
class Preparations:
    """Which long pods the plugins of a profile are prepared for. State: the last ones, within a bound of bytes, and those in use."""

    def __init__(self) -> None:
        self._in_use: WeakValueDictionary[bytes, HeldParses] = WeakValueDictionary()
        self._last: OrderedDict[bytes, HeldParses] = OrderedDict()

    def check(self, pod: Pod, signature: bytes, plugins: Sequence[fwk.PreFilterPlugin]) -> HeldParses:
        """Returns once the plugins are prepared for this pod or for an equal one.

        Returns:
            What is to be held while they must be prepared. Whoever does the `LongWork` and keeps it finds them prepared afterwards.

        Raises:
            LongWork: they are not yet.
        """
        known = self._in_use.get(signature)
        if known is not None:
            return known
        prepared = HeldParses()

        def prepare(is_wanted: Callable[[], bool]) -> None:
            with prepared.held():
                for plugin in plugins:
                    if not is_wanted():
                        return
                    try:
                        plugin.prepare(pod)
                    except Exception as exc:
                        _LOG.info(4, "Plugin is not prepared for pod", plugin=plugin.name, pod=pod, err=exc)  # the cycle will fail alike
            self._keep(signature, prepared)

        raise fwk.LongWork(prepare)

    def _keep(self, signature: bytes, prepared: HeldParses) -> None:
        self._in_use[signature] = self._last[signature] = prepared
        held = sum(each.size for each in self._last.values())
        while held > LONG_BYTES_KEPT and len(self._last) > 1:
            held -= self._last.popitem(last=False)[1].size
