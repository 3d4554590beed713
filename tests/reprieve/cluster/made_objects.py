"""Objects as the API makes them of what is sent, but for admission."""

from typing import Any

from extender.rules.admission import defaults, strategies
from extender.rules.api_resources import Object, Resource
from extender.rules.schema import api_types


def defaulted(resource: Resource, manifest: Any) -> Object:
    obj, problems = api_types.read(resource, manifest)
    assert problems == []
    defaults.set_defaults(resource, obj)
    return obj


def made(resource: Resource, manifest: Any) -> Object:
    """As after its creation."""
    obj = defaulted(resource, manifest)
    strategies.prepare_for_create(resource, obj)
    return obj
