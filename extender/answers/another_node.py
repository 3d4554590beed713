"""Whether one more node of a kind that the cluster has would take a pod."""

from typing import Final

import numpy as np

from extender.answers.filling_up import is_local
from extender.answers.lacks import Room
from extender.answers.nearest import nearest_places
from extender.answers.refusals import Refusals
from extender.objects.node import HOSTNAME_LABEL
from extender.objects.node_selectors import NAME_FIELD
from extender.objects.pod import Affinity, Pod
from extender.runtime.errors import PluginError
from extender.runtime.framework import Framework
from extender.snapshot import PodChanges, Rows, Snapshot
from extender.snapshot.axes import Index

MAX_KINDS: Final = 16
"""Kinds of nodes that are tried, those of the nearest nodes."""


def node_to_add(framework: Framework, refusals: Refusals, room: Room, pod: Pod) -> str | None:
    """The name of a node of which an empty copy would take the pod: with its labels and taints, and of its pods only those of DaemonSets.

    None if there is no such node, or a plugin cannot judge it; and for pods that mind what is on other nodes, or want a node by its
    name: for these, a node that does not exist yet cannot be judged by one that does.
    """
    snapshot = refusals.evaluation.snapshot
    state = framework.begin_cycle(snapshot)
    places = _one_of_each_kind(snapshot, nearest_places(refusals, room))[:MAX_KINDS]
    try:
        outcome = framework.run_pre_filter_plugins(state, pod)
        if not outcome.status.is_success or outcome.node_names is not None or not is_local(framework, state) or _wants_a_name(pod):
            return None
        # Promises are about nodes that exist: nominated pods are left out.
        ok = framework.run_filter_plugins(state, pod, _emptied(snapshot, places)).ok
    except PluginError:
        return None
    return snapshot.nodes.objects[int(places[ok][0])].name if ok.any() else None


def _one_of_each_kind(snapshot: Snapshot, places: Index) -> Index:
    """The first node of each kind by size and taints; the first of those by labels that differ otherwise stands for them."""
    nodes = snapshot.nodes
    kinds = np.column_stack([nodes.allocatable[places], nodes.allowed_pods[places], nodes.taint_set[places], nodes.unschedulable[places]])
    _, first = np.unique(kinds, axis=0, return_index=True)
    return places[np.sort(first)]


def _emptied(snapshot: Snapshot, places: Index) -> Rows:
    rows, slots = [], []
    for row, place in enumerate(places.tolist()):
        for slot in snapshot.pods.on_node[place]:
            if not _is_of_daemon_set(snapshot.pod_at(slot)):
                rows.append(row)
                slots.append(slot)
    changes = PodChanges(np.array(rows, np.intp), np.array(slots, np.intp), np.full(len(rows), -1))
    return Rows.of(snapshot, places).changed(changes)


def _is_of_daemon_set(pod: Pod) -> bool:
    return any(owner.controller and owner.kind == "DaemonSet" for owner in pod.metadata.owner_references)


def _wants_a_name(pod: Pod) -> bool:
    of_nodes = (pod.spec.affinity or Affinity()).node_affinity
    terms = of_nodes.required.node_selector_terms if of_nodes is not None and of_nodes.required is not None else []
    keys = {each.key for term in terms for each in (*term.match_expressions, *term.match_fields)} | (pod.spec.node_selector or {}).keys()
    return bool(keys & {HOSTNAME_LABEL, NAME_FIELD})
