"""Events, the same for both faces of them.

Upstream: pkg/printers/internalversion/printers.go, printEvent (v1.36.2).
"""

from typing import Any, Final

from extender.embedded.resources import Object
from extender.embedded.tables.ages import Ages
from extender.embedded.tables.layout import Column, Layout, name_of, wide

_OLD_NAMES: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
"""What events.k8s.io calls the fields of core events."""


def _cells(event: Object, ages: Ages) -> list[Any]:
    event = {_OLD_NAMES.get(name, name): value for name, value in event.items()}
    about, source, series = event.get("involvedObject") or {}, event.get("source") or {}, event.get("series")
    first = ages.since(event.get("firstTimestamp") or event.get("eventTime"))
    last = ages.since(event["lastTimestamp"]) if event.get("lastTimestamp") else first
    # An event that happened once has no count in the new API.
    count = event.get("count") or 1
    if series is not None:
        last, count = ages.since(series.get("lastObservedTime")), series.get("count") or 0
    component = source.get("component") or event.get("reportingComponent") or ""
    host = source.get("host") or event.get("reportingInstance") or ""
    kind = about.get("kind", "").lower()
    return [
        last,
        event.get("type") or "",
        event.get("reason") or "",
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath") or "",
        f"{component}, {host}" if host else component,
        (event.get("message") or "").strip(),
        first,
        count,
        name_of(event),
    ]


EVENTS: Final = Layout(
    (
        Column("Last Seen", "When it happened last."),
        Column("Type", "Normal or Warning."),
        Column("Reason", "In one word, what happened."),
        Column("Object", "What it happened to."),
        wide("Subobject", "Which part of the object it happened to."),
        wide("Source", "Who says so."),
        Column("Message", "What happened."),
        wide("First Seen", "When it happened first."),
        wide("Count", "How often it happened."),
        wide("Name", "The name of the event.", format="name"),
    ),
    _cells,
)
