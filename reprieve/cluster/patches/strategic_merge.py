"""Strategic merge patches: merges maps, and lists whose items the schema identifies by a key.

Members that begin with `$` are directives: `$patch`, `$retainKeys`, `$setElementOrder/LIST`,
`$deleteFromPrimitiveList/LIST`.

Upstream: apimachinery/pkg/util/strategicpatch/patch.go, StrategicMergeMapPatch.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from extender.rules.api_resources import Object
from extender.values.golang.quoting import printed, printed_type
from extender.values.golang.schema import Field, GoType, ListOf, MapOf, Preserve, Struct

MARKER: Final = "$patch"
RETAIN_KEYS: Final = "$retainKeys"
ORDER: Final = "$setElementOrder/"
DELETE_FROM: Final = "$deleteFromPrimitiveList/"

_ANYTHING: Final = Preserve()
_NO_FIELD: Final = Field(_ANYTHING)


class PatchError(ValueError):
    """The patch cannot be applied. The message is upstream's."""


class PatchFormatError(PatchError):
    """A directive is malformed."""


def merge(kind: GoType, original: Object, patch: Object) -> Object:
    """Returns the original with the patch applied; the patch must not be used afterwards.

    The original is not changed; parts are shared with it. Raises PatchError if the patch cannot be applied.
    """
    if MARKER in patch:
        return _marked(patch)
    original = dict(original)
    _retain_keys(original, patch)
    for name in [key for key in patch if key.startswith(ORDER)]:
        _merge_ordered(kind, original, patch, name)
    for name, value in patch.items():
        if name.startswith(DELETE_FROM):
            _delete_from(original, name.removeprefix(DELETE_FROM), value)
        elif value is None:
            original.pop(name, None)
        elif name not in original or _shape(original[name]) is not _shape(value):
            _set(original, name, _without_nulls(value))
        elif isinstance(value, dict):
            field = _field(kind, name)
            is_replaced = "replace" in field.patch_strategy
            original[name] = value if is_replaced else merge(field.type, original[name], value)
        elif isinstance(value, list):
            field = _field(kind, name)
            original[name] = _merge_lists(field, original[name], value) if "merge" in field.patch_strategy else value
        else:
            original[name] = value
    return original


def _shape(value: Any) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


def _field(kind: GoType, name: str) -> Field:
    if isinstance(kind, Struct):
        field = kind.field(name)
        if field is None:
            raise PatchError(f'unable to find api field "{name}" in {kind.short_name}')
        return field
    return Field(kind.value) if isinstance(kind, MapOf) else _NO_FIELD


def _marked(patch: Object) -> Object:
    marker = patch.pop(MARKER)
    if marker == "replace":
        return patch
    if marker == "delete":
        return {}
    raise PatchError(f"unknown patch type: {marker} in map: {printed({MARKER: marker, **patch})}")


def _retain_keys(original: Object, patch: Object) -> None:
    if RETAIN_KEYS not in patch:
        return
    names = patch.pop(RETAIN_KEYS)
    retained = {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
    if not isinstance(names, list) or any(
        value is not None and name not in retained and not name.startswith((DELETE_FROM, ORDER))
        for name, value in patch.items()
    ):
        raise PatchFormatError("invalid patch format of retainKeys")
    for name in [name for name in original if name not in retained]:
        del original[name]


def _merge_ordered(kind: GoType, original: Object, patch: Object, directive: str) -> None:
    name = directive.removeprefix(ORDER)
    order, added, present = patch.pop(directive), patch.pop(name, None), original.get(name)
    for values in (order, added or [], present or []):
        if not isinstance(values, list):
            raise PatchError(f"expected a []interface {{}}, but received a {printed_type(values)}")
    field = _field(kind, name)
    _check_order(field, added or [], order)
    if present is None and added is None:
        return
    if added is None:
        merged = present or []
    elif present is None:
        merged = [value for value in map(_without_directives, added) if value is not _NOTHING]
    else:
        merged = _merge_lists(field, list(present), added) if "merge" in field.patch_strategy else added
    original[name] = _in_order(field.patch_key, merged, order, present or [])


def _check_order(field: Field, added: Sequence[Any], order: Sequence[Any]) -> None:
    key = _key_of(field.patch_key)
    places = {key(value): place for place, value in reversed(list(enumerate(order)))}
    last = -1
    for value in added:
        if isinstance(value, dict) and MARKER in value:
            continue
        place = places.get(key(value), -1)
        if place <= last:
            text = (
                f"The order in patch list:\n{printed(added)}\n doesn't match $setElementOrder list:\n{printed(order)}\n"
            )
            raise PatchError(text)
        last = place


def _delete_from(original: Object, name: str, values: Any) -> None:
    if not isinstance(values, list):
        raise PatchFormatError("invalid patch format of primitive list")
    if isinstance(original.get(name), list):
        texts = set(map(repr, values))
        original[name] = [value for value in original[name] if repr(value) not in texts]


def _merge_lists(field: Field, original: list[Any], patch: list[Any]) -> list[Any]:
    items = [*original, *patch]
    if not any(isinstance(item, dict) for item in items):
        return _in_order(None, list({repr(item): item for item in items}.values()), patch, original)
    if not all(isinstance(item, dict) for item in items):
        raise PatchError("list element types are not identical")
    merge_key = field.patch_key
    if not merge_key:
        raise PatchError(f"cannot merge lists without merge key for {_name_of(field.type)}")
    original, patch = _apply_markers(merge_key, original, patch)
    merged = list(original)
    item_type = field.type.item if isinstance(field.type, ListOf) else _ANYTHING
    key = _key_of(merge_key)
    # Backwards, so that the first of several items with one key counts.
    places = {key(value): place for place, value in reversed(list(enumerate(merged)))}
    for value in patch:
        place = places.setdefault(key(value), len(merged))
        if place == len(merged):
            merged.append(value)
        else:
            merged[place] = merge(item_type, merged[place], dict(value))
    return _in_order(merge_key, merged, patch, original)


def _apply_markers(merge_key: str, original: list[Any], patch: list[Any]) -> tuple[list[Any], list[Any]]:
    plain = [item for item in patch if MARKER not in item]
    key, removed_keys = _key_of(merge_key), set()
    for item in patch:
        marker = item.get(MARKER)
        if marker == "delete":
            removed_keys.add(key(item))
        elif marker == "merge":
            raise PatchError("merging lists cannot yet be specified in the patch")
        elif marker is not None and marker != "replace":
            raise PatchError(f"unknown patch type: {marker} in map: {printed(item)}")
    if any(item.get(MARKER) == "replace" for item in patch):
        return plain, []
    return [item for item in original if repr(item.get(merge_key)) not in removed_keys], plain


def _in_order(merge_key: str | None, merged: Sequence[Any], order: Sequence[Any], former: Sequence[Any]) -> list[Any]:
    """Returns the items of the patch in its order, interleaved with the other items in their former order."""
    key = _key_of(merge_key)
    ranks = {key(value): place for place, value in reversed(list(enumerate(order)))}
    former_ranks = {key(value): place for place, value in reversed(list(enumerate(former)))}
    ordered = sorted((item for item in merged if key(item) in ranks), key=lambda item: ranks[key(item)])
    rest = sorted(
        (item for item in merged if key(item) not in ranks),
        key=lambda item: former_ranks.get(key(item), len(former_ranks)),
    )
    woven: list[Any] = []
    while ordered and rest:
        rank, other_rank = former_ranks.get(key(rest[0])), former_ranks.get(key(ordered[0]))
        woven.append((rest if rank is not None and other_rank is not None and rank < other_rank else ordered).pop(0))
    return woven + ordered + rest


def _key_of(merge_key: str | None) -> Callable[[Any], str]:
    """Returns a function that maps an item to its identity as a text, so that 1 and true are different."""
    return lambda value: repr(_required(merge_key, value) if merge_key else value)


def _required(merge_key: str, value: Any) -> Any:
    if not isinstance(value, dict) or merge_key not in value:
        raise PatchError(f"map: {printed(value)} does not contain declared merge key: {merge_key}")
    return value[merge_key]


_NOTHING: Final = object()


def _set(original: Object, name: str, value: Any) -> None:
    bare = _without_directives(value)
    if bare is _NOTHING:
        original.pop(name, None)
    else:
        original[name] = bare


def _without_directives(value: Any) -> Any:
    if isinstance(value, dict):
        if MARKER in value:
            return _NOTHING
        below = {name: _without_directives(member) for name, member in value.items()}
        return {name: member for name, member in below.items() if member is not _NOTHING}
    if isinstance(value, list):
        return [item for item in map(_without_directives, value) if item is not _NOTHING]
    return value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(member) for name, member in value.items() if member is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _name_of(kind: GoType) -> str:
    item = kind.item if isinstance(kind, ListOf) else kind
    return item.short_name if isinstance(item, Struct) else ""
