"""The OpenAPI document. It describes the bodies here, since routes take and return bytes."""

import json
import re
from collections.abc import Mapping
from importlib import resources
from inspect import cleandoc
from typing import Any, Final

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response

from api.callers.http_refusals import FailureStatus
from extender.answers.catalogue import QUESTIONS
from extender.values.objects.node import Node
from extender.values.protocol.wire_types import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
)

# Example requests, which a service with the example cluster answers as they are.
POD: Final[dict[str, Any]] = {
    "metadata": {
        "name": "checkout-1",
        "namespace": "shop",
        "uid": "0f8a3c52-6f0b-4d0c-9c0e-52a1a3c1b001",
        "labels": {"app": "checkout"},
    },
    "spec": {
        "schedulerName": "default-scheduler",
        "priority": 1000,
        "preemptionPolicy": "PreemptLowerPriority",
        "containers": [
            {
                "name": "main",
                "image": "registry.example/web:1.4",
                "resources": {"requests": {"cpu": "2", "memory": "4Gi"}},
            },
        ],
    },
}

NODE: Final[dict[str, Any]] = {
    "metadata": {
        "name": "node-a2",
        "labels": {"kubernetes.io/hostname": "node-a2", "topology.kubernetes.io/zone": "zone-a"},
    },
    "spec": {},
    "status": {"allocatable": {"cpu": "7800m", "memory": "30Gi", "pods": "110"}},
}

BY_NAME: Final[dict[str, Any]] = {"Pod": POD, "Nodes": None, "NodeNames": ["node-a1", "node-a2", "node-b3", "node-c4"]}

IN_FULL: Final[dict[str, Any]] = {"Pod": POD, "Nodes": {"metadata": {}, "items": [NODE]}, "NodeNames": None}

SCORES: Final[list[dict[str, Any]]] = [{"Host": "node-a1", "Score": 9}, {"Host": "node-a2", "Score": 10}]

VICTIMS_BY_UID: Final[dict[str, Any]] = {
    "Pod": POD,
    "NodeNameToVictims": None,
    "NodeNameToMetaVictims": {
        "node-a2": {
            "Pods": [{"UID": "c22bf241-52ce-5e38-8be2-9ddf8139c3a9"}, {"UID": "c730c63a-54b8-568e-9fa9-ca5aa9d01f14"}],
            "NumPDBViolations": 0,
        },
    },
}

BINDING: Final[dict[str, Any]] = {
    "PodName": "checkout-1",
    "PodNamespace": "shop",
    "PodUID": "0f8a3c52-6f0b-4d0c-9c0e-52a1a3c1b001",
    "Node": "node-a2",
}

SCENARIO: Final[dict[str, Any]] = {
    "id": "one pod, two nodes",
    "objects": {
        "nodes": [
            NODE,
            {"metadata": {"name": "node-a9"}, "status": {"allocatable": {"cpu": "1", "memory": "2Gi", "pods": "110"}}},
        ],
    },
    "pod": POD,
}


REFERENCE: Final = "#/components/schemas/{name}"

# One schema for each of the generic types, under the name it has in Kubernetes.
_NAMES: Final = {
    "FailureStatus": "Status",
    "ExtenderArgs_Node_": "ExtenderArgs",
    "ExtenderFilterResult_Node_": "ExtenderFilterResult",
    "NodeList_Node_": "NodeList",
}

_TYPES: Final = (
    ExtenderArgs[Node],
    ExtenderFilterResult[Node],
    HostPriority,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    FailureStatus,
)

_SCENARIO: Final = {
    "type": "object",
    "required": ["pod"],
    "properties": {
        "id": {"type": "string"},
        "config": {
            "type": "object",
            "description": "A KubeSchedulerConfiguration; by default that of the service.",
        },
        "objects": {
            "type": "object",
            "description": "Lists of Kubernetes objects: nodes, pods, pdbs, pvcs, storageClasses, ...",
            "additionalProperties": {"type": "array", "items": {"type": "object"}},
        },
        "pod": {"$ref": "#/components/schemas/Pod"},
        "nominated": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pod", "nodeName"],
                "properties": {"pod": {"$ref": "#/components/schemas/Pod"}, "nodeName": {"type": "string"}},
            },
        },
    },
}


def reference(name: str) -> dict[str, Any]:
    return {"$ref": REFERENCE.format(name=name)}


MEANINGS: Final = {
    400: "The body is not JSON, breaks the schema, or is outside the limits on depth, numbers and strings.",
    404: "Not served.",
    408: "The body took too long to arrive.",
    413: "The body is too large.",
    415: "The body is not application/json, or has a content encoding.",
    422: "The body can be read, but a value in it is wrong.",
    500: "Internal error; the message has the id of its line in the log.",
    503: "Not ready, or overloaded.",
}
STATUS: Final = {"application/json": {"schema": reference("Status")}}
"""The content of a refusal."""


def _answers(
    schema: dict[str, Any] | None, what: str, *extra_codes: int, example: object = None
) -> dict[int | str, dict[str, Any]]:
    """Returns 200 with the schema, and a Status for everything that the limits or the reader refuse."""
    content: dict[str, Any] = {"schema": schema}
    if example is not None:
        content["example"] = example
    refused = (400, 408, 413, 415, *extra_codes, 500, 503)
    return {
        200: {"description": what, "content": {"application/json": content}},
        **{code: {"description": MEANINGS[code], "content": STATUS} for code in refused},
    }


def body_of(schema: dict[str, Any], examples_by_name: Mapping[str, object]) -> dict[str, Any]:
    examples = {name: {"value": value} for name, value in examples_by_name.items()}
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema, "examples": examples}}}
    }


_BY_NAME_OR_IN_FULL: Final = body_of(reference("ExtenderArgs"), {"by name": BY_NAME, "in full": IN_FULL})

FILTER: Final[dict[str, Any]] = {
    "responses": _answers(
        reference("ExtenderFilterResult"),
        "The nodes that passed, in the form in which they were sent, and the reasons of the others.",
    ),
    "openapi_extra": _BY_NAME_OR_IN_FULL,
}
PRIORITIZE: Final[dict[str, Any]] = {
    "responses": _answers(
        {"type": "array", "items": reference("HostPriority")}, "One score for each node.", example=SCORES
    ),
    "openapi_extra": _BY_NAME_OR_IN_FULL,
}
PREEMPT: Final[dict[str, Any]] = {
    "responses": _answers(reference("ExtenderPreemptionResult"), "The pods to evict on each node where that helps."),
    "openapi_extra": body_of(reference("ExtenderPreemptionArgs"), {"by UID": VICTIMS_BY_UID}),
}
BIND: Final[dict[str, Any]] = {
    "responses": _answers(reference("ExtenderBindingResult"), "The pod is bound, or Error says why not.", 404),
    "openapi_extra": body_of(reference("ExtenderBindingArgs"), {"a pod": BINDING}),
}
EVALUATE: Final[dict[str, Any]] = {
    "responses": _answers({"type": "object"}, "Verdicts, scores, the message and what preemption would do.", 422),
    "openapi_extra": body_of(_SCENARIO, {"one pod, two nodes": SCENARIO}),
}


_OTHERWISE: Final[dict[int | str, Any]] = {
    503: {"description": "Not started yet.", "content": STATUS},
    "default": {"description": "Not allowed.", "content": STATUS},
}


def plain(description: str, media_type: str = "text/plain") -> dict[str, Any]:
    """Returns the responses of a path that is read as text, or as an object of a form of its own."""
    schema = {"type": "string" if media_type == "text/plain" else "object"}
    well = {"description": description, "content": {media_type: {"schema": schema}}}
    return {"response_class": Response, "responses": {200: well, **_OTHERWISE}}


def health(summary: str) -> dict[str, Any]:
    """Returns the description of a health path."""
    text = {"text/plain": {"schema": {"type": "string"}}}
    return {
        "summary": summary,
        "response_class": Response,
        "responses": {
            200: {"description": "All checks pass.", "content": text},
            500: {"description": "A check failed; all are listed.", "content": text},
            503: {"description": "Not ready yet; the checks are listed.", "content": text},
            "default": {"description": "Not found, or not allowed.", "content": STATUS},
        },
    }


ANSWERS: Final = "answers.json"
"""The file beside this one with examples of answers and their parameters, which `tools.generate_answers` writes."""
_TAGS: Final = {
    "extender": "The verbs that kube-scheduler calls. docs/schemas has their JSON Schema.",
    "questions": "Why pods wait, what was decided, and what would happen if. Nothing is written.",
    "health": "Health checks for probes, as in the components of Kubernetes.",
    "operation": "Metrics, and the state of the running process.",
}
_WAYS_IN: Final = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token of the cluster: kubectl create token NAME."},
    "certificate": {"type": "mutualTLS", "description": "A client certificate of an authority of --client-ca-file."},
}


def describe(app: FastAPI) -> dict[str, Any]:
    """Returns the OpenAPI document of the application, with the schemas of the extender protocol in it."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        license_info={"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        tags=[{"name": name, "description": text} for name, text in _TAGS.items()],
    )
    document["security"] = [*({name: []} for name in _WAYS_IN), {}]  # the last one for a service that asks nobody
    _add_answers(document["paths"])
    _, schemas = msgspec.json.schema_components(
        (*_TYPES, *(schema_type for kind in QUESTIONS for schema_type in kind.schemas())), ref_template=REFERENCE
    )
    text = json.dumps(document | {"components": {"schemas": schemas, "securitySchemes": _WAYS_IN}}, sort_keys=True)
    for generated, name in _NAMES.items():
        text = text.replace(f'"{generated}"', f'"{name}"').replace(
            REFERENCE.format(name=generated), REFERENCE.format(name=name)
        )
    complete: dict[str, Any] = json.loads(text)
    for schema in complete["components"]["schemas"].values():
        schema.pop("title", None)
        if "description" in schema:  # a docstring, whose indentation is in it before Python 3.13 only
            schema["description"], _, attributes = cleandoc(schema["description"]).partition("\n\nAttributes:\n")
            for name, words in re.findall(r"^    (\w+): (.*(?:\n     .*)*)", attributes, re.MULTILINE):
                in_camel_case = re.sub("_(.)", lambda match: match[1].upper(), name)
                schema["properties"][in_camel_case]["description"] = " ".join(words.split())
    return complete


def _add_answers(paths: dict[str, Any]) -> None:
    """Puts examples of answers, and of the parameters that lead to them, where they belong."""
    for request, example in json.loads((resources.files("api.documents") / ANSWERS).read_bytes()).items():
        method, _, path = request.partition(" ")
        operation = paths[path][method.lower()]
        for content in operation["responses"]["200"]["content"].values():
            content["example"] = example["answer"]
        for parameter in operation.get("parameters", ()):
            if parameter["name"] in example["parameters"]:
                parameter["example"] = example["parameters"][parameter["name"]]
