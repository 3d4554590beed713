"""Every bound on what comes in, in one table. `make docs` prints it as docs/reference/limits.md, with the rows of
`reprieve.lab.limits` and `reprieve.cluster.limits`, which are built on the scheduler.

Inputs are bounded at four doors: objects of the cluster, bodies of the verbs, questions, and configuration. Inside the
doors code is plain: it bounds neither time nor memory again. The last two doors are what comes back from servers that
we call, and what an answer shows or keeps.

A `Limit` is an int, so that code compares with it: `if len(body) > limits.QUESTION_BYTES`.
"""

from enum import StrEnum
from typing import Final, final


class Door(StrEnum):
    """Where an input comes in."""

    OBJECTS = "Objects of the cluster"
    VERBS = "Bodies of the extender verbs"
    QUESTIONS = "Questions"
    CONFIGURATION = "Configuration and files"
    SERVERS = "Answers of servers that are called"
    ANSWERS = "What answers show, and what is kept"
    CALLERS = "Callers and their connections"


@final
class Limit(int):
    """A bound, as a row of the table."""

    door: Door
    what: str
    """What is counted, with its unit."""
    told: str
    """What happens to an input beyond it, and what the caller is told."""

    def __new__(cls, door: Door, value: int, what: str, told: str) -> "Limit":
        limit = super().__new__(cls, value)
        limit.door, limit.what, limit.told = door, what, told
        return limit

    def __reduce__(self) -> tuple[type[int], tuple[int]]:
        """Becomes a plain number in the answer of a worker."""
        return int, (int(self),)


# Objects of the cluster: informers and the API of the cluster of its own.

# fmt: off
DEMANDS: Final = Limit(Door.OBJECTS, 64 * 2**10,
    "bytes of a pending pod: labels, spec and claims",
    "the pod stays pending, with an event that says so")

SECONDS_TO_SEARCH: Final = Limit(Door.OBJECTS, 1,
    "seconds of the search for fewer victims that a pod group asks for",
    "the search ends with the best that was found")
DURATION_CHARACTERS: Final = Limit(Door.OBJECTS, 100,
    "characters of the annotation reprieve.dev/minimal-victims",
    "the annotation is ignored, with an event that says so")
QUANTITY_CHARACTERS: Final = Limit(Door.OBJECTS, 64,
    "characters of a quantity", "it is refused; the event of its pod says so")
QUANTITY_EXPONENT: Final = Limit(Door.OBJECTS, 30,
    "as the exponent of a quantity, positive or negative", "it is refused; the event of its pod says so")
RESOURCE_NAME: Final = Limit(Door.OBJECTS, 320,
    "characters of the name of a resource", "errors do not repeat it")
EXPRESSION_WORK: Final = Limit(Door.OBJECTS, 10_000_000,
    "as the cost of a CEL expression about devices", "`actual cost limit exceeded`")
EXPRESSION_MILLISECONDS: Final = Limit(Door.OBJECTS, 250,
    "milliseconds of CPU time of such an expression", "`actual cost limit exceeded`")
EXPRESSION_MEMORY: Final = Limit(Door.OBJECTS, 256 * 2**20,
    "bytes of memory of the process of such expressions", "`actual cost limit exceeded`")
EXPRESSION_WAIT_SECONDS: Final = Limit(Door.OBJECTS, 10,
    "seconds until that process answers", "it is started again")
EXPRESSION_POD_CHARACTERS: Final = Limit(Door.OBJECTS, 8192,
    "characters of labels and annotations of a pod in the expression of a `cost`",
    "the expression fails for the pod")
REGEX_MEMORY: Final = Limit(Door.OBJECTS, 4 * 2**20,
    "bytes of a compiled regular expression", "it is no valid expression")
DEVICE_SEARCHES: Final = Limit(Door.OBJECTS, 64,
    "pods for which devices are searched at one time", "further ones wait")
API_BODY_BYTES: Final = Limit(Door.OBJECTS, 3 * 2**20,
    "bytes of the body of a request to the embedded API, as upstream", "413")

# Bodies of the verbs, and what is kept of them for the next call.

NODES_KEPT: Final = Limit(Door.ANSWERS, 20_000,
    "nodes in full that are kept, to recognize them in the next call",
    "those that were not sent for longest are decoded again")
NODES_KEPT_BYTES: Final = Limit(Door.ANSWERS, 256 * 2**20,
    "bytes of nodes in full that are kept", "those that were not sent for longest are decoded again")
NODES: Final = Limit(Door.VERBS, 20_000,
    "nodes in full in a body", "413")
NODE_BYTES: Final = Limit(Door.VERBS, 4 * 2**20,
    "bytes of a full node", "413")
IMAGES_WEIGHED: Final = Limit(Door.VERBS, 500,
    "images of a full node; a kubelet reports 50 by default", "further ones are not weighed")
IMAGE_NAMES: Final = Limit(Door.VERBS, 500_000,
    "different names of images, of the new nodes of a body together", "413")
LABEL_KEYS: Final = Limit(Door.VERBS, 500_000,
    "different keys of labels, of the new nodes of a body together", "413")
TAINTS: Final = Limit(Door.VERBS, 100_000,
    "different taints, of the new nodes of a body together", "413")
RESOURCE_NAMES: Final = Limit(Door.VERBS, 100_000,
    "different names of resources, of the new nodes of a body together", "413")
NODE_NAMES: Final = Limit(Door.VERBS, 100_000,
    "names of nodes in a body, or nodes with victims", "413")
VICTIMS: Final = Limit(Door.VERBS, 300_000,
    "victims in a body, those of all nodes together", "413")
UID_CHARACTERS: Final = Limit(Door.VERBS, 128,
    "characters of the UID of a victim", "413; of the pod of a call, 400")
NODE_NAMES_KEPT: Final = Limit(Door.ANSWERS, 2**17, "names of nodes that were checked", "they are checked again")
NAME_LISTS_KEPT: Final = Limit(Door.ANSWERS, 4,
    "lists of names that are recognized by their bytes", "the next one is decoded")
NAME_LIST_BYTES: Final = Limit(Door.ANSWERS, 2**19,
    "bytes of a list of names that is recognized by them", "it is decoded in each call")
VERB_BYTES: Final = Limit(Door.VERBS, 8 * 2**20,
    "bytes of a body without full nodes: 15,000 names have 1 MB", "413")
BINDING_BYTES: Final = Limit(Door.VERBS, 64 * 2**10, "bytes of a binding", "413")

# Questions.

QUESTION_BYTES: Final = Limit(Door.QUESTIONS, 16 * 2**20, "bytes of the body of a question", "413")
QUESTION_SECONDS: Final = Limit(Door.QUESTIONS, 100,
    "seconds for a what-if, plan, capacity or evaluation (`REPRIEVE_QUESTION_SECONDS`)", "503")
JSON_DEPTH: Final = Limit(Door.VERBS, 64,
    "levels of nesting, in bodies of questions too", "400")
JSON_VALUES: Final = Limit(Door.VERBS, 4 * 2**20,
    "members and items of such a body, roughly", "413")
QUESTION_MEMORY: Final = Limit(Door.QUESTIONS, 1024 * 2**20,
    "bytes of memory for each of these (`REPRIEVE_QUESTION_MEMORY`)", "413")
QUESTION_ANSWER_BYTES: Final = Limit(Door.QUESTIONS, 64 * 2**20,
    "bytes of the answer that the process of one of these writes", "413")
QUESTIONS_AT_ONE_TIME: Final = Limit(Door.QUESTIONS, 8,
    "of these of one caller at one time, waiting ones included, and callers with such a question", "503")
WHAT_IF_FORM: Final = Limit(Door.QUESTIONS, 4 * 2**20, "bytes of the page's what-if form", "413")
MANIFEST_CHARACTERS: Final = Limit(Door.QUESTIONS, 2**20,
    "characters of its manifests, and of its configuration", "422")
OBJECTS_CREATED: Final = Limit(Door.QUESTIONS, 20_000,
    "objects that a question creates", "422")
PODS_CREATED: Final = Limit(Door.QUESTIONS, 5_000, "pods that a question creates", "422")
NODES_TRIED: Final = Limit(Door.QUESTIONS, 1_000,
    "nodes that a what-if adds, and that it drains or removes", "422")
PROFILES_TRIED: Final = Limit(Door.QUESTIONS, 100,
    "profiles of the configuration that a what-if tries", "422")
PENDING_TRIED: Final = Limit(Door.QUESTIONS, 2_000,
    "pending pods tried on added nodes that the question does not ask about", "the answer does not count them")
COPIES_COUNTED: Final = Limit(Door.QUESTIONS, 100_000,
    "copies of a pod that are counted without `--limit`", "the answer says so")
COPIES_PLACED: Final = Limit(Door.QUESTIONS, 20_000,
    "copies of a pod that have to be placed one by one", "the answer says so")

# Configuration and files: clusters.

STATE_FILE_BYTES: Final = Limit(Door.CONFIGURATION, 2**30,
    "bytes of a file with a cluster, unpacked: some hundred thousand pods", "an error that names the file")
STATE_FILE_RATIO: Final = Limit(Door.CONFIGURATION, 100,
    "times its own size that a compressed file of more than 64 MiB unpacked holds", "an error that names the file")
STATE_FILE_VALUES: Final = Limit(Door.CONFIGURATION, 50_000_000,
    "values in such a file in JSON, roughly", "an error that names the file")
STATE_FILE_YAML_VALUES: Final = Limit(Door.CONFIGURATION, 5_000_000,
    "values in a YAML document of such a file, aliases expanded", "an error that names the file")

# Configuration and files: workloads that are simulated, recordings.

KUBECONFIG_BYTES: Final = Limit(Door.CONFIGURATION, 4 * 2**20,
    "bytes of a kubeconfig", "an error that names the file")
CONFIGURATION_DEPTH: Final = Limit(Door.CONFIGURATION, 100,
    "levels of nesting in a configuration or a file", "`exceeded max depth`")
CONFIGURATION_YAML_NODES: Final = Limit(Door.CONFIGURATION, 100_000,
    "YAML nodes of a configuration, aliases expanded", "an error")
EXTENDER_SECONDS: Final = Limit(Door.CONFIGURATION, 30,
    "seconds of an extender's httpTimeout", "a warning: all scheduling waits for its answer")
PLUGIN_SECONDS: Final = Limit(Door.CONFIGURATION, 1,
    "seconds of a call of a plugin of your own, and 1 ms a node if it looks at one node at a time",
    "the call has failed; after five in a row the plugin is not called for a while")
PLUGIN_AWAITED_SECONDS: Final = Limit(Door.CONFIGURATION, 600,
    "seconds of an awaited call of such a plugin", "the call is cancelled")

# Answers of servers that are called, and what is kept of them.

READ_BYTES: Final = Limit(Door.SERVERS, 2**30,
    "bytes of an answer of the API server to a GET: 150,000 pods in one list have 540 MiB",
    "the request fails, as one that gets no answer")
WRITE_BYTES: Final = Limit(Door.SERVERS, 8 * 2**20,
    "bytes of an answer of the API server to a write: an object has 3 MiB, and its managed fields",
    "the request fails, as one that gets no answer")
ERROR_BYTES: Final = Limit(Door.SERVERS, 2**20,
    "bytes of a refusal by the API server", "the error has only the status")
RETRY_AFTER_SECONDS: Final = Limit(Door.SERVERS, 60,
    "seconds for which the API server may ask to wait before a request is made again",
    "the request fails with the refusal; an informer asks again after so many seconds")
CONNECT_SECONDS: Final = Limit(Door.SERVERS, 10,
    "seconds until a connection to the API server stands", "the request is made again, if it may be")
CONNECTIONS: Final = Limit(Door.SERVERS, 200,
    "connections to the API server; each watch holds one, which makes about twenty", "further requests wait for one")
UNREAD_BYTES: Final = Limit(Door.SERVERS, 2**20,
    "bytes of a body that wait for their reader", "reading from the server is paused")
WATCH_EVENT_BYTES: Final = Limit(Door.SERVERS, 64 * 2**20,
    "bytes of an event of a watch, far more than an object may have", "the watch starts again")
BINDS_IN_FLIGHT: Final = Limit(Door.SERVERS, 1000,
    "bindings that are sent and not answered", "no further pod is taken from the queue")
REDIRECTS: Final = Limit(Door.SERVERS, 10,
    "redirects of a call of an extender (as Go's net/http)", "the call fails, with Go's message")
REVIEWS_KEPT: Final = Limit(Door.SERVERS, 4096,
    "reviews of callers by the API server; each is cached for 10 seconds",
    "the oldest is asked for again")
NAMESPACES_REVIEWED: Final = Limit(Door.SERVERS, 256,
    "namespaces of one answer in which the rights of a caller who may not list all pods are reviewed",
    "all names are hidden but those in a namespace that the request names; the header `Warning` says so")
EXEC_SECONDS: Final = Limit(Door.SERVERS, 60,
    "seconds that a program for credentials may take; upstream waits forever", "it is killed, and the log says so")
EXEC_OUTPUT_BYTES: Final = Limit(Door.SERVERS, 2**20, "bytes that a program for credentials may print", "it has failed")
EXTENDER_ANSWER_BYTES: Final = Limit(Door.SERVERS, 256 * 2**20,
    "bytes of an answer of an extender, unpacked: the full nodes of the largest clusters fit several times",
    "the call fails, with the figure")
EVENT_LISTS_KEPT: Final = Limit(Door.SERVERS, 64,
    "pods whose Events are kept for some seconds", "those that were asked for first are asked for again")
EVENTS_LISTED: Final = Limit(Door.SERVERS, 500,
    "Events of a pod that the API server is asked for", "the answer says that some are left out")
EVENTS_BYTES: Final = Limit(Door.SERVERS, 4 * 2**20,
    "bytes of the Events of a pod", "they cannot be read, which the answer says")
HEAD_BYTES: Final = Limit(Door.SERVERS, 2**20,
    "bytes without a byte of a body among them: heads, trailers, extensions of chunks",
    "the connection is closed, and the request has failed")
EVENTS_QUEUED: Final = Limit(Door.SERVERS, 10_000,
    "Events that wait to be written; upstream has 1000, but does not bind hundreds of pods a second",
    "further ones are dropped, and counted")
EVENTS_KNOWN: Final = Limit(Door.SERVERS, 20_000,
    "Events of the last minutes that are known, so that the next equal one makes a series; a KiB each",
    "the one without an equal one for longest is forgotten: the next one starts a new Event")
LEASE_SECONDS: Final = Limit(Door.SERVERS, 3600, "seconds of a lease that are believed", "our own leaseDuration counts")
SHARED_PARTS: Final = Limit(Door.SERVERS, 8 * 2**20,
    "bytes of parts of objects, of one field, that are kept once for all objects that have an equal one",
    "a new table is started")
POD_ANNOTATIONS: Final = Limit(Door.SERVERS, 16 * 2**10,
    "characters of annotations of a pod with a node",
    "the longest ones are not kept; no plugin of kube-scheduler reads one")
EXTENDER_TEXT: Final = Limit(Door.SERVERS, 1024,
    "characters of an error or a reason that an extender gives; an Event has no room for more", "it is cut")
DELETIONS_REMEMBERED: Final = Limit(Door.SERVERS, 10_000,
    "deleted objects of a kind that are remembered, so that a late event does not bring them back",
    "those that were deleted first are forgotten")
SHARED_PART_BYTES: Final = Limit(Door.SERVERS, 16 * 2**10,
    "bytes of a part of an object that is kept once for all objects that have an equal one", "each object has its own")

# What answers show, and what is kept: simulations, recordings, the shadow.

VICTIMS_TRIED: Final = Limit(Door.ANSWERS, 20_000,
    "victims, added up over sets of few that are tried in a preempt call before the general search's are taken",
    "sets of more important pods are not tried")
BUDGETS_NAMED: Final = Limit(Door.ANSWERS, 8,
    "disruption budgets named that the eviction of a pod violates", "those are named that allow the fewest evictions")
EVENTS_SHOWN: Final = Limit(Door.ANSWERS, 50,
    "Events of a pod that are shown", "the answer says that some are left out")
NODE_REASON: Final = Limit(Door.ANSWERS, 2_000,
    "characters of what filter says of a node; an Event has room for half of them",
    "this many reasons are given, and the number of the others")
EVENT_NOTE_BYTES: Final = Limit(Door.ANSWERS, 1024,
    "bytes of the note of an Event (upstream: NoteLengthLimit)", "it is cut, and ends with ` ...`")
LOGGED_VALUE: Final = Limit(Door.ANSWERS, 4096, "characters of a value in a line of the log", "it is cut")
LOGGED_MESSAGE: Final = Limit(Door.ANSWERS, 4096,
    "characters of a message of another library, and of an exception, in the log", "it is cut")
LOGGED_FIELD: Final = Limit(Door.ANSWERS, 256,
    "characters of any other text from outside in a line of the log", "it is cut")
SUGGESTED_ONE_BY_ONE: Final = Limit(Door.ANSWERS, 3,
    "taints, labels, ports, terms or volumes that advice suggests to drop one by one", "further ones are not suggested")
PREEMPTORS_KEPT: Final = Limit(Door.ANSWERS, 10_000,
    "preemptors of which the loop guard knows", "the one that preempted longest ago is forgotten")
LOSSES_KEPT: Final = Limit(Door.ANSWERS, 1024,
    "losses of victims that are kept, in addition to two for each pod of the cluster", "all are computed again")
IGNORED_ANNOTATIONS: Final = Limit(Door.ANSWERS, 1_000,
    "pod groups with an annotation that is ignored, each of which is logged once",
    "the one that was logged longest ago is logged again")

# What answers show, and what is kept: the API of the cluster of its own.

ERRORS_OF_OBJECT: Final = Limit(Door.ANSWERS, 1000,
    "errors of an object that a refusal lists; upstream lists all", "the others are left out")
CLAIM_NAMES_IN_ERROR: Final = Limit(Door.ANSWERS, 8,
    "names of resource claims that an error lists; upstream lists all", "none is listed")

# Callers and their connections.

HANDSHAKES: Final = Limit(Door.CALLERS, 256,
    "TLS handshakes at one time", "the oldest is dropped")
HANDSHAKE_SECONDS: Final = Limit(Door.CALLERS, 10, "seconds of a TLS handshake", "the connection is closed")
REQUESTS_WAITING: Final = Limit(Door.CALLERS, 32,
    "requests of one connection that wait", "429, and the connection is closed")
API_REQUESTS: Final = Limit(Door.CALLERS, 400,
    "requests to the embedded API at one time, watches not counted; as upstream", "429")
API_WATCHES: Final = Limit(Door.CALLERS, 1_000, "watches of the embedded API at one time", "429")
STREAMS: Final = Limit(Door.CALLERS, 24, "pages that follow the cluster at one time", "503")
TOKEN_CHARACTERS: Final = Limit(Door.CALLERS, 16 * 1024, "characters of a token", "401")
REVIEWS_AT_ONE_TIME: Final = Limit(Door.CALLERS, 64,
    "callers that are reviewed at one time", "503")
UNKNOWN_TOKENS: Final = Limit(Door.CALLERS, 20,
    "unknown tokens from one address within two seconds", "429")
# fmt: on

# What answers show, and what is kept of what was decided.


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

PREEMPTIONS_TOLD: Final = _row(20, "preemptions of one pod that `who-preempted` prints")
PREEMPTIONS_SEARCHED: Final = _row(1000, "newest preemptions in which it looks for those of several pods")
PODS_LISTED: Final = _row(500, "pods of a workload that `why` lists", "the others are counted")

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
SIBLING_NODES: Final = _row(
    100,
    "nodes searched for one where a higher priority would evict pods of other workloads",
    "if there is none, a higher priority is not suggested",
)
NEAREST_NODES: Final = _row(5, "nodes that come closest to taking a pod")
NODE_KINDS_TRIED: Final = _row(
    16, "kinds of nodes of which a new one is tried: those of the nearest nodes", "the others are not tried"
)
FACT_NODES: Final = _row(20, "nearest nodes of which a plugin says what is lacking", "the others are not examined")
FACTS: Final = _row(8, "facts of one plugin in an explanation")
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
    1000, "members of a group for which an explanation says what would happen to all", "it is not said"
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
