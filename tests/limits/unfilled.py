"""The rows that no test fills yet. Nothing is added here: a new row has an entry beside its like."""

from tests.limits.rows import Unfilled

UNFILLED = {
    name: Unfilled()
    for name in (
        "PREEMPTIONS_TOLD",
        "PREEMPTIONS_SEARCHED",
        "PODS_LISTED",
        "SCHEMA_ERROR_CHARACTERS",
        "PAGE_DIFFERENCES",
        "PAGE_ATTEMPTS",
        "PAGE_PREEMPTIONS",
        "PAGE_DRAWN_PREEMPTIONS",
        "PAGE_CHANGED_NODES",
    )
}
