"""Events as core/v1 and as events.k8s.io/v1 spell them."""

from typing import Final

from extender.embedded.schema.declaring import TYPE_META, keep, null, omit, zero
from extender.embedded.schema.meta import OBJECT_META
from extender.embedded.schema.references import OBJECT_REFERENCE
from extender.embedded.schema.types import INT32, MICRO_TIME, STRING, TIME, Struct

_SOURCE: Final = Struct(
    "io.k8s.api.core.v1.EventSource",
    {"component": omit(STRING, "The program."), "host": omit(STRING, "The node on which it runs.")},
    "Who told of an event.",
)

EVENT: Final = Struct(
    "io.k8s.api.core.v1.Event",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META, required=True),
        "involvedObject": zero(OBJECT_REFERENCE, "What the event is about.", required=True),
        "reason": omit(STRING, "A single word for what happened."),
        "message": omit(STRING, "What happened, for people."),
        "source": zero(_SOURCE),
        "firstTimestamp": null(TIME, "When it happened first."),
        "lastTimestamp": null(TIME, "When it happened last."),
        "count": omit(INT32, "How often it happened."),
        "type": omit(STRING, "Normal or Warning."),
        "eventTime": null(MICRO_TIME, "When it happened first, more exactly."),
        "series": keep(
            Struct(
                "io.k8s.api.core.v1.EventSeries",
                {"count": omit(INT32, "How often so far."), "lastObservedTime": null(MICRO_TIME, "The last time of them.")},
                "An event that goes on and on.",
            )
        ),
        "action": omit(STRING, "What was done or failed."),
        "related": keep(OBJECT_REFERENCE, "Another object that has to do with it."),
        "reportingComponent": zero(STRING, "Which controller tells, such as `kubernetes.io/kubelet`."),
        "reportingInstance": zero(STRING, "Which of its instances."),
    },
    "Something that happened to an object. Kept for a while only.",
)

EVENTS_EVENT: Final = Struct(
    "io.k8s.api.events.v1.Event",
    TYPE_META
    | {
        "metadata": zero(OBJECT_META),
        "eventTime": null(MICRO_TIME, "When it happened first.", required=True),
        "series": keep(
            Struct(
                "io.k8s.api.events.v1.EventSeries",
                {
                    "count": zero(INT32, "How often so far.", required=True),
                    "lastObservedTime": null(MICRO_TIME, "The last time of them.", required=True),
                },
                "An event that goes on and on.",
            )
        ),
        "reportingController": omit(STRING, "Which controller tells, such as `kubernetes.io/kubelet`."),
        "reportingInstance": omit(STRING, "Which of its instances."),
        "action": omit(STRING, "What was done or failed."),
        "reason": omit(STRING, "A single word for why."),
        "regarding": zero(OBJECT_REFERENCE, "What the event is about."),
        "related": keep(OBJECT_REFERENCE, "Another object that has to do with it."),
        "note": omit(STRING, "What happened, for people."),
        "type": omit(STRING, "Normal or Warning."),
        "deprecatedSource": zero(_SOURCE, "`source` of core/v1."),
        "deprecatedFirstTimestamp": null(TIME, "`firstTimestamp` of core/v1."),
        "deprecatedLastTimestamp": null(TIME, "`lastTimestamp` of core/v1."),
        "deprecatedCount": omit(INT32, "`count` of core/v1."),
    },
    "Something that happened to an object. Kept for a while only.",
)
