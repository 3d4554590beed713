"""ClusterFeed: changes of the cluster's objects on their way from informers to those who keep something about them."""

from collections.abc import Callable
from typing import Final, final

from extender.klog.logger import Logger
from extender.objects.meta import HasMetadata

Subscriber = Callable[[HasMetadata | None, HasMetadata | None], None]
"""Takes (old, new): an object came (`old` is None), changed, or went (`new` is None)."""

_LOG: Final = Logger(__name__)


@final
class ClusterFeed:
    """Passes each change to every subscriber, in the order in which they subscribed."""

    def __init__(self, *subscribers: Subscriber) -> None:
        self._subscribers = list(subscribers)

    def subscribe(self, subscriber: Subscriber) -> None:
        """Pass all further changes to the subscriber, too."""
        self._subscribers.append(subscriber)

    def changed(self, old: HasMetadata | None, new: HasMetadata | None) -> None:
        """Passes a change on. A subscriber that fails is logged, and keeps neither the others nor later changes from being known."""
        for subscriber in self._subscribers:
            try:
                subscriber(old, new)
            except Exception as exc:
                _LOG.exception(exc, "A change was not taken in", oldObj=old, newObj=new)
