"""The resources that the CustomResourceDefinitions in a store define."""

from extender.rules.api_resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from extender.rules.custom_resource_definitions import resources_of
from reprieve.cluster.store.object_store import ObjectStore


def custom_resources(store: ObjectStore) -> tuple[Resource, ...]:
    """Returns the resources that the definitions in the store define now."""
    definitions = store.read(CUSTOM_RESOURCE_DEFINITIONS)
    return tuple(resource for stored in definitions for resource in resources_of(stored.body)) if definitions else ()
