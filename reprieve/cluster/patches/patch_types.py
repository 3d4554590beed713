"""The four types of patches, and their application to an object.

Upstream: apiserver/pkg/endpoints/handlers/patch.go; RFC 6902 by the jsonpatch library, RFC 7386.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, final

import jsonpatch
import orjson

from extender.rules import statuses
from extender.rules.api_resources import Object, Resource
from extender.rules.schema import api_types
from extender.values.golang import field_errors
from extender.values.golang.json import JsonError, cannot_unmarshal, type_word
from extender.values.golang.schema import Struct
from reprieve.cluster import limits
from reprieve.cluster.patches import server_side_apply
from reprieve.cluster.patches.strategic_merge import PatchError, PatchFormatError, merge
from reprieve.cluster.requests.request_options import WriteOptions

JSON: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
TYPES: Final = (JSON, MERGE, STRATEGIC, APPLY)

_MAP: Final = "map[string]interface {}"


@final
@dataclass(frozen=True, slots=True)
class Patch:
    """A patch as JSON values, which are not changed; its type is the media type."""

    type: str
    body: Any

    def of(self, struct: Struct, original: Object) -> Object:
        """Returns the original after a patch other than server-side apply. It is not changed; parts are shared.

        Raises ApiStatus if the patch is malformed or cannot be applied.
        """
        if self.type == JSON:
            return _json_patched(original, self.body)
        if not isinstance(self.body, dict):
            raise statuses.bad_request(f"error decoding patch: {cannot_unmarshal(type_word(self.body), _MAP)}")
        if self.type == MERGE:
            return merged(original, self.body)
        try:
            return merge(struct, original, copy.deepcopy(self.body))
        except PatchFormatError as error:
            raise statuses.bad_request(str(error)) from error
        except PatchError as error:
            raise statuses.ApiStatus(500, "", str(error)) from error

    def read(self, resource: Resource, patched: Any, write: WriteOptions) -> Object:
        """Returns the patched object as its type reads it. Raises ApiStatus 422 if it does not fit."""
        try:
            new, problems = api_types.read(resource, patched)
        except JsonError as error:
            raise self._unreadable(patched, str(error)) from error
        if problems and write.field_validation == "Strict":
            raise self._unreadable(patched, f"strict decoding error: {', '.join(problems)}")
        if write.field_validation == "Warn":
            write.warnings += problems
        return new

    def applied(
        self, resource: Resource, live: Object | None, write: WriteOptions, subresource: str, now: datetime
    ) -> Object:
        """Returns the object after server-side apply, with its managedFields.

        Raises ApiStatus 409 if other managers own applied fields, and another ApiStatus if the patch cannot be applied.
        """
        if not isinstance(self.body, dict):
            why = cannot_unmarshal(type_word(self.body), _MAP)
            raise statuses.bad_request(f"error decoding patch: error unmarshaling JSON: while decoding JSON: {why}")
        result = server_side_apply.apply(
            resource, live, self.body, manager=write.manager, force=write.force, subresource=subresource, now=now
        )
        return self.read(resource, result, write)

    def _unreadable(self, patched: Any, why: str) -> statuses.ApiStatus:
        # Upstream names no kind here.
        return statuses.invalid("", "", "", [field_errors.invalid("patch", orjson.dumps(patched).decode(), why)])


def merged(original: Any, patch: Mapping[str, Any]) -> Object:
    """Returns the original after a JSON merge patch. The original is not changed; parts are shared."""
    result = dict(original) if isinstance(original, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            result[name] = merged(result.get(name), value)
        else:
            result[name] = copy.deepcopy(value)
    return result


def _json_patched(original: Object, operations: Any) -> Object:
    expected, wrong = "[]handlers.jsonPatchOp", [operations]
    if isinstance(operations, list):
        expected, wrong = (
            "handlers.jsonPatchOp",
            [operation for operation in operations if not isinstance(operation, dict)],
        )
    if wrong:
        raise statuses.bad_request(f"error decoding patch: {cannot_unmarshal(type_word(wrong[0]), expected)}")
    if len(operations) > limits.PATCH_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {limits.PATCH_OPERATIONS}, got {len(operations)}"
        raise statuses.ApiStatus(413, "RequestEntityTooLarge", f"Request entity too large: {message}")
    patched: Any = orjson.loads(orjson.dumps(original))
    copied = 0
    try:
        for operation in copy.deepcopy(operations):
            if operation.get("op") == "copy":
                copied += len(orjson.dumps(jsonpatch.JsonPointer(operation["from"]).resolve(patched)))
                if copied > limits.PATCH_COPIED_BYTES:
                    raise ValueError("copied too much")
            patched = jsonpatch.JsonPatch([operation]).apply(patched, in_place=True)
        if not isinstance(patched, dict):
            raise TypeError("what is left is no object")
    except (
        jsonpatch.JsonPatchException,
        jsonpatch.JsonPointerException,
        TypeError,
        KeyError,
        ValueError,
        IndexError,
    ) as error:
        # The library raises Python's own errors where a path leads through something that is no container.
        raise statuses.ApiStatus(
            422, "Invalid", "the server rejected our request due to an error in our request", {}
        ) from error
    return patched
