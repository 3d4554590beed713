"""What answers show, and what is kept of what was decided: the rows of the table of limits that bound no input.

`make docs` prints them with the others, those of `extender.values.limits`.
"""

from typing import Final

from extender.values.limits import Door, Limit


def _row(value: int, what: str, told: str = "the others are left out") -> Limit:
    return Limit(Door.ANSWERS, value, what, told)


# Refusals, metrics, traces.

REFUSAL_CHARACTERS: Final = _row(4096, "characters of a refusal that may repeat what was sent", "it is cut")
REFUSED_NAME_CHARACTERS: Final = _row(64, "characters of an unknown parameter that a refusal repeats", "it is cut")
TRACE_SPANS: Final = _row(256, "extension points and plugins of a trace")
METRIC_REASONS: Final = _row(
    100, "reasons of filter that metrics count apart; plugins may put names into them", "later ones count as `other`"
)
METRIC_REASON_CHARACTERS: Final = _row(200, "characters of such a reason", "it is cut")

# Commands.

PREEMPTIONS_TOLD: Final = _row(20, "preemptions of one pod that `who-preempted` tells")
PREEMPTIONS_SEARCHED: Final = _row(1000, "newest preemptions in which it looks for those of several pods")
PODS_LISTED: Final = _row(500, "pods of a workload that `why` lists", "the others are counted")
SCHEMA_ERROR_CHARACTERS: Final = _row(
    200, "characters of what is wrong by the schema that `doctor` repeats", "it is cut"
)
DOCTOR_SECONDS: Final = _row(
    30, "seconds for which `doctor` waits for an answer, whatever the configuration says", "the call has failed"
)

# The page.

PAGE_DIFFERENCES: Final = _row(200, "differences from a shadow")
PAGE_ATTEMPTS: Final = _row(80, "attempts in the picture below the map")
PAGE_PREEMPTIONS: Final = _row(100, "preemptions in that picture")
PAGE_PODS: Final = _row(500, "pods of a namespace, workload or group", "the others are counted")
PAGE_FOUND: Final = _row(100, "names that a search finds", "the page says that there are more")
PAGE_SUGGESTED: Final = _row(12, "names in the palette")
PAGE_PENDING: Final = _row(150, "pending pods in the list at the side", "all are in the groups of the first page")
PAGE_MANIFEST_CHARACTERS: Final = _row(2**16, "characters of a pod as YAML", "it is cut")
PICTURE_ROWS: Final = _row(60, "rows of nodes with equal verdicts", "the nodes of the others are counted")
PICTURE_NAMES: Final = _row(200, "nodes of such a row that are named", "the others are counted")
NODE_GROUPS: Final = _row(60, "values of a label by which nodes are grouped", "such a label groups nothing")
PAGE_NODES: Final = _row(100, "nodes on a page of the table", "there is a next page")
PAGE_RECENT_PREEMPTIONS: Final = _row(5, "preemptions on the first page")
PAGE_DRAWN_PREEMPTIONS: Final = _row(5, "preemptions in the history that are drawn", "the others are listed")
PAGE_CHANGED_NODES: Final = _row(12, "nodes that are drawn before and after a what-if")

# Answers.

MAP_NODES_WITH_PODS: Final = _row(
    120, "nodes of a map that shows their pods", "only the answers about single nodes have them"
)
MAP_PODS: Final = _row(4000, "pods of a map that shows them", "only the answers about single nodes have them")
DEVICE_COUNT_SECONDS: Final = _row(1, "seconds for one count of devices", "what is left is counted the next time")
FIX_OBJECT_BYTES: Final = _row(
    16 * 2**10, "bytes of objects to try, as JSON: they are to fit into an address", "there are none"
)
FIX_PATCH_BYTES: Final = _row(2**16, "bytes of a patch, as JSON: it is to fit into a command", "there is none")
FIXES: Final = _row(6, "fixes in an explanation")
FIXES_TRIED: Final = _row(20, "suggestions tried that each satisfy one plugin", "the others are not tried")
FIXES_TRIED_TOGETHER: Final = _row(
    4, "suggestions tried that satisfy several plugins, where none for one plugin helps", "the others are not tried"
)
PRIORITIES_TRIED: Final = _row(5, "priorities tried", "the others are not tried")
NEAREST_NODES: Final = _row(5, "nodes that come closest to taking a pod")
NODE_KINDS_TRIED: Final = _row(
    16, "kinds of nodes of which a new one is tried: those of the nearest nodes", "the others are not tried"
)
SCORES: Final = _row(10, "nodes with their scores")
CANDIDATES: Final = _row(20, "candidates of a preemption", "the others are counted")
QUEUE_PLACES: Final = _row(5000, "pods of the queue", "the others are counted")
HISTORY_ALIKE: Final = _row(60, "different attempts on a page of the history", "there is a next page")
HISTORY_ATTEMPTS: Final = _row(3000, "attempts on such a page, equal ones counted apart", "there is a next page")
HISTORY_PREEMPTIONS: Final = _row(100, "preemptions on such a page")
HISTORY_SEARCHED: Final = _row(20_000, "attempts that are looked through for an answer about the past")
NAMES_FOUND: Final = _row(
    50, "names of one kind in one namespace that a search keeps", "the answer says that there are more"
)
GROUP_MEMBERS: Final = _row(
    1000, "members of a group of which the explanation of one says what would become of all", "it is not said"
)
PINNED_POD_SENTENCES: Final = _row(20, "pods with a given node that get a sentence each", "the others are counted")
ROLLOUT_DIFFERENCES: Final = _row(4, "differences that a note about a rollout lists")

# Records.

REASONS_KEPT: Final = _row(32, "reasons kept apart, those of the most nodes", "the others are kept together")
CANDIDATES_KEPT: Final = _row(8, "candidates kept of a preemption", "the others are counted")
OTHER_VICTIMS_KEPT: Final = _row(16, "victims kept of a candidate that was not chosen")
VICTIMS_KEPT: Final = _row(1000, "victims kept of the chosen candidate; no kubelet runs more pods")
RECORDS_FILE_BYTES: Final = _row(
    64 * 2**20, "bytes of the file of records", "it is replaced by one of at most half that length"
)
RECORDS_WAITING: Final = _row(50_000, "records that wait while the disk takes none", "the oldest are dropped")
TAKERS_KEPT: Final = _row(8, "pods kept that took the room of a preemption")
CALL_NAME_CHARACTERS: Final = _row(253, "characters kept of each name in a call; no valid one is longer", "it is cut")
CALL_MESSAGE_CHARACTERS: Final = _row(1024, "characters kept of a message about a call", "it is cut")
