"""Reads and checks the query parameters of a request.

Upstream: apimachinery/pkg/apis/meta, internalversion, v1/validation; runtime/conversion.go.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, cast, final

from extender.rules import statuses
from extender.rules.api_resources import Object
from extender.values.golang.field_errors import FieldError, forbidden, invalid, not_supported, required, too_long
from extender.values.golang.int64 import parse_int64
from extender.values.golang.quoting import quoted

Query = Mapping[str, Sequence[str]]
FieldValidation = Literal["", "Ignore", "Warn", "Strict"]

FIELD_MANAGER_MAX_LENGTH: Final = 128
"""The largest length of a field manager's name, in bytes."""
EXACT: Final = "Exact"
NOT_OLDER_THAN: Final = "NotOlderThan"


@final
@dataclass(frozen=True, slots=True)
class ListOptions:
    """metav1.ListOptions, for lists, watches and the deletion of collections."""

    label_selector: str = ""
    field_selector: str = ""
    watch: bool = False
    allow_watch_bookmarks: bool = False
    resource_version: str = ""
    resource_version_match: str = ""
    timeout_seconds: int | None = None
    limit: int = 0
    continue_token: str = ""
    send_initial_events: bool | None = None


@final
@dataclass(slots=True)
class WriteOptions:
    """metav1.CreateOptions, UpdateOptions and PatchOptions, with two results of the write besides the object:
    the texts of Warning headers, and whether an update or patch has created it.
    """

    manager: str = "kube-controller-manager"
    dry_run: bool = False
    field_validation: FieldValidation = "Ignore"
    force: bool = False
    warnings: list[str] = field(default_factory=list)
    created: bool = False


def text(query: Query, name: str) -> str:
    """Returns the first value of a parameter; empty if there is none."""
    values = query.get(name)
    return values[0] if values else ""


def flag(query: Query, name: str) -> bool | None:
    """Returns True for anything but `0` and `false` (Convert_Slice_string_To_Pointer_bool); None if it is absent."""
    values = query.get(name)
    return (values[0] != "0" and values[0].lower() != "false") if values else None


def number(query: Query, name: str) -> int | None:
    """Returns an int64; None if it is absent. Raises ApiStatus 400 if it is no int64."""
    values = query.get(name)
    if not values:
        return None
    value = parse_int64(values[0])
    if value is None:
        problem = "value out of range" if re.fullmatch(r"[+-]?[0-9]+", values[0]) else "invalid syntax"
        raise statuses.bad_request(f"strconv.ParseInt: parsing {quoted(values[0])}: {problem}")
    return value


def list_options(query: Query, *, watch: bool = False) -> ListOptions:
    """Returns the options of a list, a watch (also if only the path says so) or the deletion of a collection.

    Raises ApiStatus 400 if a number cannot be read, 422 if the options contradict each other.
    """
    options = ListOptions(
        label_selector=text(query, "labelSelector"),
        field_selector=text(query, "fieldSelector"),
        watch=watch or bool(flag(query, "watch")),
        allow_watch_bookmarks=bool(flag(query, "allowWatchBookmarks")),
        resource_version=text(query, "resourceVersion"),
        resource_version_match=text(query, "resourceVersionMatch"),
        timeout_seconds=number(query, "timeoutSeconds"),
        limit=number(query, "limit") or 0,
        continue_token=text(query, "continue"),
        send_initial_events=flag(query, "sendInitialEvents"),
    )
    errors = _watch_errors(options) if options.watch else _list_errors(options)
    if errors:
        raise options_invalid("ListOptions", errors)
    return options


def _list_errors(options: ListOptions) -> list[FieldError]:
    errors = []
    match, path = options.resource_version_match, "resourceVersionMatch"
    if match:
        if not options.resource_version:
            errors.append(forbidden(path, f"{path} is forbidden unless resourceVersion is provided"))
        if options.continue_token:
            errors.append(forbidden(path, f"{path} is forbidden when continue is provided"))
        if match not in (EXACT, NOT_OLDER_THAN):
            errors.append(not_supported(path, match, (EXACT, NOT_OLDER_THAN, "")))
        if match == EXACT and options.resource_version == "0":
            errors.append(forbidden(path, f'{path} "exact" is forbidden for resourceVersion "0"'))
    if options.send_initial_events is not None:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _watch_errors(options: ListOptions) -> list[FieldError]:
    errors = []
    match, path = options.resource_version_match, "resourceVersionMatch"
    if options.send_initial_events is not None and match != NOT_OLDER_THAN:
        errors.append(forbidden(path, f"sendInitialEvents requires setting {path} to {NOT_OLDER_THAN}"))
    if match:
        if options.send_initial_events is None:
            errors.append(forbidden(path, f"{path} is forbidden for watch unless sendInitialEvents is provided"))
        if match != NOT_OLDER_THAN:
            errors.append(not_supported(path, match, (NOT_OLDER_THAN,)))
        if options.continue_token:
            errors.append(forbidden(path, f"{path} is forbidden when continue is provided"))
    return errors


def write_options(query: Query, user_agent: str, kind: str, *, is_apply: bool = False) -> WriteOptions:
    """Returns the options of a create, update or patch. Raises ApiStatus 422 if they are wrong."""
    manager, validation, force = text(query, "fieldManager"), text(query, "fieldValidation"), flag(query, "force")
    errors = []
    if is_apply and not manager:
        errors.append(required("fieldManager", "is required for apply patch"))
    if kind == "PatchOptions" and not is_apply and force is not None:
        errors.append(forbidden("force", "may not be specified for non-apply patch"))
    if len(manager.encode(errors="replace")) > FIELD_MANAGER_MAX_LENGTH:
        errors.append(too_long("fieldManager", FIELD_MANAGER_MAX_LENGTH))
    for place, character in enumerate(manager):
        if not character.isprintable():
            detail = f"invalid character U+{ord(character):04X} (at position {place})"
            errors.append(invalid("fieldManager", manager, detail))
    dry_run = query.get("dryRun", ())
    errors += dry_run_errors(dry_run)
    if validation not in ("", "Ignore", "Warn", "Strict"):
        errors.append(not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn")))
    if errors:
        raise options_invalid(kind, errors)
    # The default is Warn since 1.25.
    checked = cast(FieldValidation, validation or "Warn")
    return WriteOptions(manager or manager_of(user_agent), bool(dry_run), checked, bool(force))


def dry_run_errors(dry_run: Sequence[str]) -> list[FieldError]:
    """Returns the errors of a dryRun. Upstream: ValidateDryRun."""
    return (
        [] if all(directive == "All" for directive in dry_run) else [not_supported("dryRun", list(dry_run), ("All",))]
    )


def delete_options(query: Query) -> Object:
    """Returns the checked metav1.DeleteOptions of query parameters. Raises ApiStatus 400 for a bad number, or 422."""
    options: Object = {}
    grace, orphan = number(query, "gracePeriodSeconds"), flag(query, "orphanDependents")
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if orphan is not None:
        options["orphanDependents"] = orphan
    if query.get("propagationPolicy"):
        options["propagationPolicy"] = text(query, "propagationPolicy")
    if query.get("dryRun"):
        options["dryRun"] = list(query["dryRun"])
    return checked_delete_options(options)


def checked_delete_options(options: Object) -> Object:
    """Returns the options. Raises ApiStatus 422 if they are wrong. Upstream: ValidateDeleteOptions."""
    errors = []
    policy, path = options.get("propagationPolicy"), "propagationPolicy"
    if policy is not None:
        if options.get("orphanDependents") is not None:
            errors.append(invalid(path, policy, "orphanDependents and deletionPropagation cannot be both set"))
        if policy not in ("Foreground", "Background", "Orphan"):
            errors.append(not_supported(path, policy, ("Foreground", "Background", "Orphan", "nil")))
    errors += dry_run_errors(options.get("dryRun") or ())
    if errors:
        raise options_invalid("DeleteOptions", errors)
    return options


def manager_of(user_agent: str) -> str:
    """Returns the field manager of a request that names none: the printable beginning of its User-Agent.

    Upstream: handlers/create.go, prefixFromUserAgent.
    """
    name = ""
    for character in user_agent.partition("/")[0]:
        if character.isprintable():
            if len((name + character).encode(errors="replace")) > FIELD_MANAGER_MAX_LENGTH:
                break
            name += character
    return name


def options_invalid(kind: str, errors: Sequence[FieldError]) -> statuses.ApiStatus:
    return statuses.invalid("meta.k8s.io", kind, "", errors)
