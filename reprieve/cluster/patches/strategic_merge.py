"""Strategic merge patches: maps are merged, and so are lists whose items the schema tells apart by a key.

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


def merge(of: GoType, original: Object, patch: Object) -> Object:
    """Returns the original with the patch applied, which must not be used afterwards.

    The original is not changed; parts are shared with it. Raises PatchError if the patch cannot be applied.
    """
    if MARKER in patch:
        return _marked(patch)
    original = dict(original)
    _retain_keys(original, patch)
    for name in [each for each in patch if each.startswith(ORDER)]:
        _merge_ordered(of, original, patch, name)
    for name, value in patch.items():
        if name.startswith(DELETE_FROM):
            _delete_from(original, name.removeprefix(DELETE_FROM), value)
        elif value is None:
            original.pop(name, None)
        elif name not in original or _shape(original[name]) is not _shape(value):
            _set(original, name, _without_nulls(value))
        elif isinstance(value, dict):
            field = _field(of, name)
            is_replaced = "replace" in field.patch_strategy
            original[name] = value if is_replaced else merge(field.type, original[name], value)
        elif isinstance(value, list):
            field = _field(of, name)
            original[name] = _merge_lists(field, original[name], value) if "merge" in field.patch_strategy else value
        else:
            original[name] = value
    return original


def _shape(value: Any) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


def _field(of: GoType, name: str) -> Field:
    if isinstance(of, Struct):
        field = of.field(name)
        if field is None:
            raise PatchError(f'unable to find api field "{name}" in {of.short_name}')
        return field
    return Field(of.value) if isinstance(of, MapOf) else _NO_FIELD


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
    given = patch.pop(RETAIN_KEYS)
    kept = {name for name in given if isinstance(name, str)} if isinstance(given, list) else set()
    if not isinstance(given, list) or any(
        value is not None and name not in kept and not name.startswith((DELETE_FROM, ORDER))
        for name, value in patch.items()
    ):
        raise PatchFormatError("invalid patch format of retainKeys")
    for name in [each for each in original if each not in kept]:
        del original[name]


def _merge_ordered(of: GoType, original: Object, patch: Object, directive: str) -> None:
    name = directive.removeprefix(ORDER)
    order, added, present = patch.pop(directive), patch.pop(name, None), original.get(name)
    for each in (order, added or [], present or []):
        if not isinstance(each, list):
            raise PatchError(f"expected a []interface {{}}, but received a {printed_type(each)}")
    field = _field(of, name)
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
        gone = set(map(repr, values))
        original[name] = [value for value in original[name] if repr(value) not in gone]


def _merge_lists(field: Field, original: list[Any], patch: list[Any]) -> list[Any]:
    items = [*original, *patch]
    if not any(isinstance(each, dict) for each in items):
        return _in_order(None, list({repr(each): each for each in items}.values()), patch, original)
    if not all(isinstance(each, dict) for each in items):
        raise PatchError("list element types are not identical")
    merge_key = field.patch_key
    if not merge_key:
        raise PatchError(f"cannot merge lists without merge key for {_name_of(field.type)}")
    original, patch = _apply_markers(merge_key, original, patch)
    merged = list(original)
    of = field.type.item if isinstance(field.type, ListOf) else _ANYTHING
    key = _key_of(merge_key)
    # Backwards, so that of several with one key the first counts.
    places = {key(value): place for place, value in reversed(list(enumerate(merged)))}
    for value in patch:
        place = places.setdefault(key(value), len(merged))
        if place == len(merged):
            merged.append(value)
        else:
            merged[place] = merge(of, merged[place], dict(value))
    return _in_order(merge_key, merged, patch, original)


def _apply_markers(merge_key: str, original: list[Any], patch: list[Any]) -> tuple[list[Any], list[Any]]:
    plain = [each for each in patch if MARKER not in each]
    key, gone = _key_of(merge_key), set()
    for each in patch:
        marker = each.get(MARKER)
        if marker == "delete":
            gone.add(key(each))
        elif marker == "merge":
            raise PatchError("merging lists cannot yet be specified in the patch")
        elif marker is not None and marker != "replace":
            raise PatchError(f"unknown patch type: {marker} in map: {printed(each)}")
    if any(each.get(MARKER) == "replace" for each in patch):
        return plain, []
    return [each for each in original if repr(each.get(merge_key)) not in gone], plain


def _in_order(merge_key: str | None, merged: Sequence[Any], order: Sequence[Any], former: Sequence[Any]) -> list[Any]:
    """The items that the patch names in its order, woven together with the others as they stood."""
    key = _key_of(merge_key)
    wanted = {key(value): place for place, value in reversed(list(enumerate(order)))}
    stood = {key(value): place for place, value in reversed(list(enumerate(former)))}
    named = sorted((each for each in merged if key(each) in wanted), key=lambda each: wanted[key(each)])
    rest = sorted(
        (each for each in merged if key(each) not in wanted), key=lambda each: stood.get(key(each), len(stood))
    )
    woven: list[Any] = []
    while named and rest:
        left, right = stood.get(key(rest[0])), stood.get(key(named[0]))
        woven.append((rest if left is not None and right is not None and left < right else named).pop(0))
    return woven + named + rest


def _key_of(merge_key: str | None) -> Callable[[Any], str]:
    """A function that returns the identity of an item as a text: 1 and true are different."""
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
        below = {name: _without_directives(each) for name, each in value.items()}
        return {name: each for name, each in below.items() if each is not _NOTHING}
    if isinstance(value, list):
        return [each for each in map(_without_directives, value) if each is not _NOTHING]
    return value


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _name_of(of: GoType) -> str:
    item = of.item if isinstance(of, ListOf) else of
    return item.short_name if isinstance(item, Struct) else ""
