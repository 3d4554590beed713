"""Preparation: what plugins work out about a long pod in a thread, before its first cycle holds the event loop."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, final
from weakref import WeakValueDictionary

import msgspec

from extender.engine import framework as fwk
from extender.values.klog.logger import Logger
from extender.values.objects.kept_parses import LONG_BYTES_KEPT, HeldParses
from extender.values.objects.pod import Pod

_ENCODE: Final = msgspec.json.Encoder().encode
_LOG: Final = Logger(__name__)


@final
class Prepared:
    """What plugins have worked out about a long pod. It is kept as long as this object is there."""

    __slots__ = ("__weakref__", "_length", "memos", "parses")

    def __init__(self) -> None:
        self.parses: Final = HeldParses()
        self.memos: Final[dict[Hashable, Any]] = {}
        """See `CycleState.memos`."""
        self._length = 0

    @property
    def size(self) -> int:
        """The bytes of the pod, as often as it was taken apart."""
        return self._length + self.parses.size

    def prepare(self, pod: Pod, signature: bytes, plugins: Iterable[fwk.Plugin], is_wanted: Callable[[], bool]) -> bool:
        """Returns whether all plugins have prepared."""
        self._length = len(_ENCODE(pod.spec))
        state = fwk.CycleState()
        state.pod_signature, state.memos = signature, self.memos
        with self.parses.held():
            for plugin in plugins:
                if not is_wanted():
                    return False
                try:
                    plugin.prepare(state, pod)
                except Exception as exc:
                    _LOG.info(
                        4, "Plugin is not prepared for pod", plugin=plugin.name, pod=pod, err=exc
                    )  # the cycle will fail alike
        return True


@final
class Preparations:
    """Which long pods the plugins of a profile are prepared for. State: the last ones, within a bound of bytes, and
    those in use.
    """

    def __init__(self) -> None:
        self._in_use: WeakValueDictionary[bytes, Prepared] = WeakValueDictionary()
        self._last: OrderedDict[bytes, Prepared] = OrderedDict()

    def check(self, pod: Pod, signature: bytes, plugins: Iterable[fwk.Plugin]) -> Prepared:
        """Returns once the plugins are prepared for this pod or for an equal one.

        Returns:
            What is to be held while they must be prepared. Whoever does the `LongWork` and keeps it finds them prepared
            afterwards.

        Raises:
            LongWork: they are not yet.
        """
        known = self._in_use.get(signature)
        if known is not None:
            return known
        prepared = Prepared()

        def prepare(is_wanted: Callable[[], bool]) -> None:
            if prepared.prepare(pod, signature, plugins, is_wanted):
                self._keep(signature, prepared)

        raise fwk.LongWork(prepare)

    def _keep(self, signature: bytes, prepared: Prepared) -> None:
        self._in_use[signature] = self._last[signature] = prepared
        held = sum(each.size for each in self._last.values())
        while held > LONG_BYTES_KEPT and len(self._last) > 1:
            held -= self._last.popitem(last=False)[1].size
