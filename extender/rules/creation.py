"""Admits a new object, of a request or in a trial.

Upstream: apiserver/pkg/endpoints/handlers/create.go, createHandler; registry/rest/create.go, BeforeCreate.
"""

from collections.abc import Callable, Sequence

from extender.rules import statuses, validation
from extender.rules.admission import admission_plugins, strategies
from extender.rules.api_resources import NEW_EVENTS, Object, Resource
from extender.rules.lookup import Lookup
from extender.rules.validation.pod_group_rules import drop_group_fields
from extender.values.config.feature_gates import FeatureGates
from extender.values.golang.field_errors import FieldError


def admit(
    lookup: Lookup,
    resource: Resource,
    namespace: str,
    obj: Object,
    features: FeatureGates,
    identify: Callable[[Object], None],
) -> None:
    """Completes a new object in place.

    Arguments:
        lookup: the existing objects, whose classes and namespaces the new one may name.
        obj: has its defaults, and its namespace in its metadata.
        identify: sets the UID, the time and a generated name in the metadata, after admission.

    Raises:
        ApiStatus: the object is refused.
    """
    drop_group_fields(resource, obj, None, features)
    admission_plugins.admit_create(lookup, resource, namespace, obj)
    identify(obj["metadata"])
    strategies.drop_disabled(resource, obj, None, features)
    strategies.prepare_for_create(resource, obj)
    errors = [*validation.validate_create(resource, obj), *validation.behind_gates(obj, None, features)]
    refuse_invalid(resource, obj["metadata"].get("name", ""), errors)


def refuse_invalid(resource: Resource, name: str, errors: Sequence[FieldError]) -> None:
    """Raises ApiStatus 422 if there are errors."""
    if errors:
        # Refusals of events name the core group in both versions.
        group = "" if resource is NEW_EVENTS else resource.group
        raise statuses.invalid(group, resource.kind, name, errors)
