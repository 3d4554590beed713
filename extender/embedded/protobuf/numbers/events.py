"""Events in their two faces."""

from typing import Final

from extender.embedded.protobuf.fields import Numbers, in_package, numbered

_SERIES: Final = numbered(count=1, lastObservedTime=2)

EVENTS: Final[dict[str, Numbers]] = in_package(
    "io.k8s.api.core.v1",
    Event=numbered(
        metadata=1, type=9, reason=3, action=12, message=4, involvedObject=2, related=13,
        source=5, reportingComponent=14, reportingInstance=15, eventTime=10, firstTimestamp=6, lastTimestamp=7, count=8, series=11,
    ),
    EventSource=numbered(component=1, host=2),
    EventSeries=_SERIES,
) | in_package(
    "io.k8s.api.events.v1",
    Event=numbered(
        metadata=1, type=11, reason=7, action=6, note=10, regarding=8, related=9,
        reportingController=4, reportingInstance=5, eventTime=2, series=3,
        deprecatedSource=12, deprecatedFirstTimestamp=13, deprecatedLastTimestamp=14, deprecatedCount=15,
    ),
    EventSeries=_SERIES,
)  # fmt: skip
