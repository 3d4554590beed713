"""What might let a pod in: the pod as it would be if somebody gave in. Whether a suggestion helps is not known here; it has to be tried."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from extender.answers.explain.nearest_nodes import nearest_places
from extender.answers.explain.suggestions.demands_on_nodes import (
    all_tolerations,
    fewer_labels,
    no_cordon,
    no_cordons,
    no_labels,
    tolerations,
)
from extender.answers.explain.suggestions.demands_on_pods import (
    fewer_host_ports,
    fewer_terms,
    looser_spread,
    no_host_ports,
    no_spread,
    no_terms,
)
from extender.answers.explain.suggestions.requests import smaller_requests, what_is_free
from extender.answers.explain.suggestions.situation import Kind, Situation, Suggestion
from extender.answers.explain.suggestions.storage import fewer_resource_claims, fewer_volumes, no_resource_claims, no_volumes

__all__ = ["Kind", "Situation", "Suggestion", "giving_in_to_all", "giving_in_to_one"]

GivingInStepByStep = Callable[[Situation], Iterator[Suggestion]]
GivingInOnANode = Callable[[Situation, int], Suggestion | None]

_GIVING_IN: Final[Mapping[str, tuple[GivingInStepByStep, GivingInOnANode]]] = {
    "NodeResourcesFit": (smaller_requests, what_is_free),
    "TaintToleration": (tolerations, all_tolerations),
    "NodeUnschedulable": (no_cordons, no_cordon),
    "NodeAffinity": (fewer_labels, no_labels),
    "PodTopologySpread": (looser_spread, no_spread),
    "InterPodAffinity": (fewer_terms, no_terms),
    "NodePorts": (fewer_host_ports, no_host_ports),
    "VolumeBinding": (fewer_volumes, no_volumes),
    "VolumeZone": (fewer_volumes, no_volumes),
    "VolumeRestrictions": (fewer_volumes, no_volumes),
    "NodeVolumeLimits": (fewer_volumes, no_volumes),
    "DynamicResources": (fewer_resource_claims, no_resource_claims),
}
"""Plugin -> what gives in to it by and by, and what gives in to it wholly on the node at a place."""


def giving_in_to_one(situation: Situation, plugins: Sequence[str]) -> Iterator[Suggestion]:
    """Changes that each give in to one of the plugins, the smallest first of each sort."""
    for step_by_step in dict.fromkeys(_GIVING_IN[plugin][0] for plugin in plugins if plugin in _GIVING_IN):
        yield from step_by_step(situation)


def giving_in_to_all(situation: Situation) -> Iterator[Suggestion]:
    """Changes that give in to all plugins that refuse one of the nodes, the nearest first, each set of plugins once."""
    refusals = situation.refusals
    if refusals is None:
        return
    places = nearest_places(refusals, situation.headroom)
    places = places[refusals.counts[places] > 1]
    _, first = np.unique(refusals.plugin_sets[places], return_index=True)
    for place in places[np.sort(first)].tolist():
        together = _given_in(situation, place, list(refusals.of_node(place)))
        if together is not None:
            yield together


def _given_in(situation: Situation, place: int, plugins: Sequence[str]) -> Suggestion | None:
    texts: list[str] = []
    if any(plugin not in _GIVING_IN for plugin in plugins):
        return None
    for on_a_node in dict.fromkeys(_GIVING_IN[plugin][1] for plugin in plugins):
        given = on_a_node(situation, place)
        if given is None:
            return None
        situation = replace(situation, pod=given.pod)
        texts.append(given.text)
    return Suggestion("other", ", ".join(texts[:-1]) + f", and {texts[-1]}", situation.pod)
