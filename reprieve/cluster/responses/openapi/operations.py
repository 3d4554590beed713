"""The paths of the API, and the operations on them.

From them clients learn the kind of a path, and that the server validates fields itself (`fieldValidation`).

Upstream: apiserver/pkg/endpoints/installer.go; k8s.io/kube-openapi/pkg/builder.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, final

from extender.rules.api_resources import Resource
from extender.rules.schema.api_types import lookup
from reprieve.cluster.responses.openapi import schemas

Item = dict[str, Any]

_PATCHES: Final = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_QUERY: Final = {
    "dryRun": ("string", "All: go through every stage, but store nothing."),
    "fieldManager": ("string", "Who makes the change, in printable characters."),
    "fieldValidation": ("string", "Ignore, Warn or Strict: what to do about unknown and repeated fields."),
    "force": ("boolean", "Take over fields of other managers. Only for apply."),
    "pretty": ("string", "If 'true', the answer is indented."),
    "allowWatchBookmarks": ("boolean", "Send bookmarks in a watch."),
    "continue": ("string", "Where the last page ended."),
    "fieldSelector": ("string", "Only objects whose fields match."),
    "labelSelector": ("string", "Only objects whose labels match."),
    "limit": ("integer", "At most so many objects in a page."),
    "resourceVersion": ("string", "From when the answer may or must be."),
    "resourceVersionMatch": ("string", "How resourceVersion is meant: Exact or NotOlderThan."),
    "sendInitialEvents": ("boolean", "Begin a watch with what there is."),
    "timeoutSeconds": ("integer", "When the call ends at the latest."),
    "watch": ("boolean", "Go on with changes instead of ending with a list."),
    "gracePeriodSeconds": ("integer", "How long the object has to end."),
    "orphanDependents": ("boolean", "Deprecated: use propagationPolicy."),
    "propagationPolicy": ("string", "What becomes of dependents: Orphan, Background or Foreground."),
}
_WRITING: Final = ("dryRun", "fieldManager", "fieldValidation")
_LISTING: Final = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_DELETING: Final = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_IN_PATH: Final = {"name": "Name of the {kind}.", "namespace": "Namespace of the {kind}."}
# By verb on a collection or on one object: its method, its action and its query parameters.
_COLLECTION: Final = {
    "list": ("get", "list", _LISTING),
    "create": ("post", "post", _WRITING),
    "deletecollection": ("delete", "deletecollection", (*_DELETING, *_LISTING)),
}
_OBJECT: Final = {
    "get": ("get", "get", ()),
    "update": ("put", "put", _WRITING),
    "patch": ("patch", "patch", (*_WRITING, "force")),
    "delete": ("delete", "delete", _DELETING),
    "create": ("post", "post", _WRITING),
}

_NAMES: Final = {
    "get": "read{prefix}{subject}",
    "list": "list{prefix}{subject}",
    "post": "create{prefix}{subject}",
    "put": "replace{prefix}{subject}",
    "patch": "patch{prefix}{subject}",
    "delete": "delete{prefix}{subject}",
    "deletecollection": "delete{prefix}Collection{subject}",
}


def paths(resources: Iterable[Resource], version: int) -> dict[str, Item]:
    items: dict[str, Item] = {}
    for resource in resources:
        base = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.version}"
        scope_path = f"{base}/namespaces/{{namespace}}" if resource.namespaced else base
        collection = f"{scope_path}/{resource.plural}"
        writer = _Writer(version, resource, (resource.group, resource.version, resource.kind))
        scope = "Namespaced" if resource.namespaced else ""
        subject, place = f"{scope}{resource.kind}", ("namespace",) if resource.namespaced else ()
        items[collection] = writer.item(resource.verbs, _COLLECTION, place, subject)
        if resource.namespaced and "list" in resource.verbs:
            everywhere = f"{resource.kind}ForAllNamespaces"
            items[f"{base}/{resource.plural}"] = writer.item(("list",), _COLLECTION, (), everywhere)
        if resource.is_stored:
            verbs = [verb for verb in resource.verbs if verb != "create"]
            items[f"{collection}/{{name}}"] = writer.item(verbs, _OBJECT, ("name", *place), subject)
        for subresource in resource.subresources:
            kind = (
                (subresource.group, subresource.version) if subresource.version else (resource.group, resource.version)
            )
            sub_writer = _Writer(version, resource, (*kind, subresource.kind))
            items[f"{collection}/{{name}}/{subresource.name}"] = sub_writer.item(
                subresource.verbs, _OBJECT, ("name", *place), f"{subject}{subresource.name.capitalize()}"
            )
    return {path: item for path, item in sorted(items.items()) if item}


@final
class _Writer:
    """Writes the operations on a resource or subresource of this kind, for a version of OpenAPI."""

    def __init__(self, version: int, resource: Resource, kind: tuple[str, str, str]) -> None:
        # `CoreV1`, `AppsV1`: the part of an operation's name after the verb.
        self._prefix = f"{resource.group.partition('.')[0].capitalize() or 'Core'}{resource.version.capitalize()}"
        self._is_three = version == schemas.VERSION_3
        self._version = version
        self._kind = kind
        self._schema = lookup(*kind).name

    def item(
        self,
        verbs: Sequence[str],
        operations: Mapping[str, tuple[str, str, Sequence[str]]],
        place: Sequence[str],
        subject: str,
    ) -> Item:
        item: Item = {}
        for verb in verbs:
            if verb in operations:
                method, action, query = operations[verb]
                item[method] = self._operation(action, query, subject)
        if item:
            item["parameters"] = [self._in_path(name) for name in place] + [self._in_query("pretty")]
        return item

    def _operation(self, action: str, query: Sequence[str], subject: str) -> Item:
        group, version, kind = self._kind
        answer = schemas.STATUS if action.startswith("delete") else self._schema
        if action == "list":
            answer += "List"
        codes = {"200": "OK", "201": "Created"} if action in ("post", "put", "patch") else {"200": "OK"}
        operation: Item = {
            "description": f"{action} {kind}",
            "operationId": _NAMES[action].format(prefix=self._prefix, subject=subject),
            "parameters": [self._in_query(name) for name in query],
            "responses": {code: self._answer(words, answer) for code, words in codes.items()},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
        }
        if action == "patch":
            self._takes(operation, schemas.PATCH, _PATCHES)
        elif action in ("post", "put"):
            self._takes(operation, self._schema, ("*/*",))
        if not self._is_three:
            operation["produces"] = ["application/json"]
        return operation

    def _takes(self, operation: Item, name: str, media_types: Sequence[str]) -> None:
        schema = schemas.reference(name, self._version)
        if self._is_three:
            operation["requestBody"] = {
                "required": True,
                "content": {media_type: {"schema": schema} for media_type in media_types},
            }
        else:
            operation["consumes"] = list(media_types)
            operation["parameters"].insert(0, {"name": "body", "in": "body", "required": True, "schema": schema})

    def _answer(self, words: str, name: str) -> Item:
        schema = schemas.reference(name, self._version)
        return {"description": words} | (
            {"content": {"application/json": {"schema": schema}}} if self._is_three else {"schema": schema}
        )

    def _in_query(self, name: str) -> Item:
        kind, words = _QUERY[name]
        return {"name": name, "in": "query", "description": words} | self._typed(kind)

    def _in_path(self, name: str) -> Item:
        words = _IN_PATH[name].format(kind=self._kind[2])
        return {"name": name, "in": "path", "description": words, "required": True} | self._typed("string")

    def _typed(self, kind: str) -> Item:
        typed = {"type": kind, "uniqueItems": True}
        return {"schema": typed} if self._is_three else typed
