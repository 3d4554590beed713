"""Descriptions of the questions under /v1, their answers and refusals."""

from typing import Any, Final

from extender.answers import types
from extender.answers.overviews import ClusterMap, FoundNames, NodeOnMap, Past, PodList
from extender.answers.pending import Pending
from extender.answers.plan.answer import PlanAnswer, PlanRequest
from extender.lab.agreement import Agreement

TYPES: Final = (
    types.AboutService,
    types.Explanation,
    types.WhatIfRequest,
    types.WhatIf,
    PlanRequest,
    PlanAnswer,
    types.Capacity,
    types.Decisions,
    types.Attempt,
    types.Preemptions,
    types.Queue,
    Past,
    Pending,
    FoundNames,
    PodList,
    ClusterMap,
    NodeOnMap,
    Agreement,
)

_STATUS: Final = {"application/json": {"schema": {"$ref": "#/components/schemas/Status"}}}

_MEANINGS: Final = {
    400: "The path, the query or the body is not as it has to be.",
    401: "The caller is not known: send a token of the cluster as Authorization: Bearer.",
    403: "The caller may not list pods in this namespace.",
    404: "There is no such pod, or decision, or shadow.",
    408: "The body took too long to arrive.",
    413: "The body is too large, or the answer takes too much memory.",
    415: "The body is not application/json, or has a content encoding.",
    422: "The question is understood, and something in it is wrong.",
    500: "Internal error; the message has the id under which it is found in the log.",
    503: "Not ready, or too much to do.",
}
_WITH_A_BODY: Final = (408, 413, 415, 422)


def _answers(name: str, what: str, *further: int) -> dict[int | str, dict[str, Any]]:
    schema = {"$ref": f"#/components/schemas/{name}"}
    answers: dict[int | str, dict[str, Any]] = {
        200: {"description": what, "content": {"application/json": {"schema": schema}}}
    }
    for code in sorted((400, 401, *further, 500, 503)):
        answers[code] = {"description": _MEANINGS[code], "content": _STATUS}
    # What the limits refuse before the question is read: a method, a head, a body where there should be none.
    answers["default"] = {"description": "Refused.", "content": _STATUS}
    return answers


def _briefly(name: str, what: str) -> dict[int | str, dict[str, Any]]:
    schema = {"$ref": f"#/components/schemas/{name}"}
    content = {"application/json": {"schema": schema}}
    return {200: {"description": what, "content": content}, "default": {"description": "Refused.", "content": _STATUS}}


def _body(schema: str, examples: dict[str, object]) -> dict[str, Any]:
    content = {
        "schema": {"$ref": f"#/components/schemas/{schema}"},
        "examples": {name: {"value": value} for name, value in examples.items()},
    }
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


_CLASS: Final = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "sample"},
    "value": 100_000,
}
_CONTAINER: Final = {
    "name": "main",
    "image": "registry.example/app:1",
    "resources": {"requests": {"cpu": "4", "memory": "1Gi"}},
}
_POD: Final = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "urgent", "namespace": "default"},
    "spec": {"containers": [_CONTAINER]},
}
_URGENT: Final = {**_POD, "spec": {"priorityClassName": "sample", "containers": [_CONTAINER]}}

ABOUT: Final[dict[str, Any]] = {"responses": _answers("AboutService", "The version and the cluster.")}
EXPLAIN: Final[dict[str, Any]] = {"responses": _answers("Explanation", "Why, and what would help.", 403, 404)}
EXPLAIN_OF: Final[dict[str, Any]] = {
    "responses": _answers("Explanation", "Why, and what would help.", *_WITH_A_BODY),
    "openapi_extra": _body("Pod", {"a pod": _POD}),
}
WHAT_IF: Final[dict[str, Any]] = {
    "responses": _answers("WhatIf", "What would become of every pod concerned.", *_WITH_A_BODY),
    "openapi_extra": _body(
        "WhatIfRequest",
        {"a pod that needs room": {"create": [_CLASS, _URGENT]}, "a node is drained": {"drainNodes": ["node-a1"]}},
    ),
}
PLAN: Final[dict[str, Any]] = {
    "responses": _answers("PlanAnswer", "The moves, in the order in which they have to be made.", *_WITH_A_BODY),
    "openapi_extra": _body("PlanRequest", {"a pod that needs room": {"create": [_POD], "maxMoves": 3}}),
}
CAPACITY: Final[dict[str, Any]] = {"responses": _answers("Capacity", "How many, and on which nodes.", 403, 404)}
CAPACITY_OF: Final[dict[str, Any]] = {
    "responses": _answers("Capacity", "How many, and on which nodes.", *_WITH_A_BODY),
    "openapi_extra": _body("Pod", {"a pod": _POD}),
}
DECISIONS: Final[dict[str, Any]] = {"responses": _answers("Decisions", "Newest first.")}
DECISION: Final[dict[str, Any]] = {"responses": _answers("Attempt", "With as much as is still kept of it.", 404)}
HISTORY: Final[dict[str, Any]] = {
    "responses": _answers("Past", "Newest first, and how many there were in each part of the time.", 422)
}
PREEMPTIONS: Final[dict[str, Any]] = {"responses": _answers("Preemptions", "Newest first.")}
CLUSTER: Final[dict[str, Any]] = {"responses": _briefly("ClusterMap", "The nodes, by zone and name.")}
NODE: Final[dict[str, Any]] = {"responses": _briefly("NodeOnMap", "The node with its pods.")}
AGREEMENT: Final[dict[str, Any]] = {
    "responses": _answers("Agreement", "How often, and where not; newest differences first.", 404)
}
QUEUE: Final[dict[str, Any]] = {"responses": _answers("Queue", "All pods that wait.")}
PENDING: Final[dict[str, Any]] = {"responses": _answers("Pending", "By reason and workload, most pods first.")}
FIND: Final[dict[str, Any]] = {"responses": _answers("FoundNames", "The best matches first.")}
PODS: Final[dict[str, Any]] = {
    "responses": _answers("PodList", "The pods, pending ones first; or the namespaces.", 403, 422)
}
