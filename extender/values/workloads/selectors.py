"""What a workload or a budget selects, read off its JSON."""

from functools import lru_cache

import orjson

from extender.values.objects import decoding
from extender.values.objects.label_selectors import NOTHING, Selector, SelectorError, selector_from_labels, selector_of
from extender.values.objects.meta import LabelSelector, Object


def selector_in(obj: Object) -> Selector:
    """Returns the selector in the spec of an object; one that is missing or cannot be used selects nothing."""
    selector = (obj.get("spec") or {}).get("selector")
    if obj["kind"] == "ReplicationController":
        return (
            selector_from_labels(selector) if selector else NOTHING
        )  # a plain map of labels; an empty one selects nothing
    return label_selector(selector)


def label_selector(selector: Object | None) -> Selector:
    """Returns a metav1.LabelSelector as a Selector; one that is missing or cannot be used selects nothing."""
    return NOTHING if selector is None else parsed_selector(orjson.dumps(selector))


@lru_cache(maxsize=1024)
def parsed_selector(selector: bytes) -> Selector:
    """Does as `label_selector` for one that is encoded as JSON."""
    try:
        return selector_of(decoding.decode(LabelSelector, selector))
    except (SelectorError, decoding.DecodeError):
        return NOTHING
