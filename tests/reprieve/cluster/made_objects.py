"""Objects as the API makes them of what is sent, but for admission."""

from typing import Any

from extender.rules.admission import defaults, strategies
from extender.rules.api_resources import Object, Resource
from extender.rules.schema import api_types


def defaulted(resource: Resource, sent: Any) -> Object:
    obj, problems = api_types.read(resource, sent)
    assert problems == []
    defaults.set_defaults(resource, obj)
    return obj


def made(resource: Resource, sent: Any) -> Object:
    """As after its creation."""
    obj = defaulted(resource, sent)
    strategies.prepare_for_create(resource, obj)
    return obj
