"""Asking for less."""

from collections.abc import Iterator, Mapping

import numpy as np

from extender.answers.explain.headroom import as_quantity, requested_amounts
from extender.answers.explain.nearest_nodes import nearest_places
from extender.answers.explain.relaxed_pods import asking_at_most
from extender.answers.explain.suggestions.situation import Situation, Suggestion
from extender.answers.phrases import in_words
from extender.objects.resource_names import PODS


def smaller_requests(situation: Situation) -> Iterator[Suggestion]:
    """For each resource as much of it as is free somewhere, where nothing else is in the way.

    Where several are short at once on each such node, what is free of them on the nearest.
    """
    refusals, headroom = situation.refusals, situation.headroom
    resources = refusals.short_resources if refusals is not None else []
    if refusals is None or not resources:
        return
    only_room = refusals.only_by("NodeResourcesFit")
    short = np.stack([headroom.requested(resource) > headroom.free(resource) for resource in resources])
    number = short.sum(axis=0)
    found = [
        suggestion
        for resource, is_short in zip(resources, short, strict=True)
        if (alone := only_room & is_short & (number == 1)).any()
        and (suggestion := _asking_at_most(situation, {resource: int(headroom.free(resource)[alone].max())})) is not None
    ]
    if not found:
        places = nearest_places(refusals, headroom)
        for place in places[only_room[places] & (number[places] > 1)][:1].tolist():
            suggestion = what_is_free(situation, place)
            found = [] if suggestion is None else [suggestion]
    yield from found


def what_is_free(situation: Situation, place: int) -> Suggestion | None:
    """Of everything that the node at this place is short of, as much as it has."""
    headroom = situation.headroom
    resources = situation.refusals.short_resources if situation.refusals is not None else []
    free = {name: int(headroom.free(name)[place]) for name in resources}
    return _asking_at_most(situation, {name: amount for name, amount in free.items() if amount < headroom.requested(name)})


def _asking_at_most(situation: Situation, limits: Mapping[str, int]) -> Suggestion | None:
    """None where the pod would have to ask for nothing at all, and where there are too many pods: a small one is a pod, too."""
    if not limits or PODS in limits or any(limit <= 0 for limit in limits.values()):
        return None
    changed = asking_at_most(situation.pod, limits)
    if changed is None:
        return None
    asked = requested_amounts(changed)
    if not all(asked[resource] for resource in limits):
        return None
    amounts = {name: (in_words(name, as_quantity(name, asked[name])), situation.headroom.requested(name)) for name in limits}
    texts = [f"{much} of {name} instead of {in_words(name, as_quantity(name, before))}" for name, (much, before) in amounts.items()]
    return Suggestion("request", f"ask for {' and '.join(texts)}", changed)
