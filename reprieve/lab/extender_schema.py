"""The JSON Schema of the extender protocol, v1: requests and answers, with nodes in full and by name. null counts as an
absent field everywhere, because Go reads it so, and writes empty lists and maps so.

Upstream: kube-scheduler/extender/v1, types.go, which has no schema.
"""

from collections.abc import Iterator
from typing import Any, Final

PATH: Final = "/schemas/extender/v1"
TYPES: Final = (
    "ExtenderArgs",
    "ExtenderFilterResult",
    "HostPriority",
    "ExtenderPreemptionArgs",
    "ExtenderPreemptionResult",
    "ExtenderBindingArgs",
    "ExtenderBindingResult",
)
"""The requests and answers of the four verbs; prioritize answers with a list of HostPriority."""

_COMPONENTS: Final = "#/components/schemas/"
_DEFINITIONS: Final = "#/$defs/"


def extender_schema(document: dict[str, Any]) -> dict[str, Any]:
    """Returns the schema, whose definitions are `TYPES` and what they consist of, from the OpenAPI document."""
    components, to_visit, definitions = document["components"]["schemas"], list(TYPES), dict[str, Any]()
    while to_visit:
        name = to_visit.pop()
        if name not in definitions:
            definitions[name] = _moved(components[name])
            to_visit += _references(components[name])
    lists = {"HostPriorityList": {"type": "array", "items": {"$ref": f"{_DEFINITIONS}HostPriority"}}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": PATH,
        "title": "Kubernetes scheduler extender, v1",
        "description": f"The requests and answers of a scheduler extender: {', '.join(TYPES)}.",
        "$defs": {name: definitions[name] for name in sorted(definitions)} | lists,
    }


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(_COMPONENTS)
        for member in schema.values():
            yield from _references(member)
    elif isinstance(schema, list):
        for item in schema:
            yield from _references(item)


def _moved(schema: Any) -> Any:
    if isinstance(schema, dict):
        moved: dict[str, Any] = {
            key: value.replace(_COMPONENTS, _DEFINITIONS) if key == "$ref" and isinstance(value, str) else _moved(value)
            for key, value in schema.items()
        }
        if moved.get("type") == "object" and "properties" in moved:
            required = moved.get("required", ())
            moved["properties"] = {
                name: member if name in required else _or_null(member) for name, member in moved["properties"].items()
            }
        return moved
    return [_moved(item) for item in schema] if isinstance(schema, list) else schema


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    if "anyOf" in schema:
        choices = schema["anyOf"]
        return schema if {"type": "null"} in choices else {**schema, "anyOf": [*choices, {"type": "null"}]}
    return {"anyOf": [schema, {"type": "null"}]} if "$ref" in schema else schema
