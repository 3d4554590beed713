"""ClusterFeed: passes changes of the cluster's objects from the informers to their subscribers."""

from collections.abc import Callable
from typing import Final, final

from extender.klog.logger import Logger
from extender.objects.meta import HasMetadata

Subscriber = Callable[[HasMetadata | None, HasMetadata | None], None]
"""Takes (old, new): an object was added (`old` is None), updated, or deleted (`new` is None)."""

_LOG: Final = Logger(__name__)


@final
class ClusterFeed:
    """Passes each change to every subscriber, in the order in which they subscribed."""

    def __init__(self, *subscribers: Subscriber) -> None:
        self._subscribers = list(subscribers)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Adds a subscriber for all further changes."""
        self._subscribers.append(subscriber)

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Passes a change on. If a subscriber fails, the error is logged, and the others and later changes are served as usual."""
        for subscriber in self._subscribers:
            try:
                subscriber(old, new)
            except Exception as exc:
                _LOG.exception(exc, "A change was not taken in", oldObj=old, newObj=new)
