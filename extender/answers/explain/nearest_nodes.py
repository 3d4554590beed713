"""The nodes that come closest to taking a pod, and whether the pod would fit on a new node that is like one of them."""

import numpy as np

from extender.answers.explain.advice import Advice, Refusals
from extender.answers.types import NearNode
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.snapshot import PodChanges, Rows, Snapshot
from extender.engine.snapshot.axes import Index
from extender.values import limits
from extender.values.objects.node import HOSTNAME_LABEL
from extender.values.objects.node_selectors import NAME_FIELD
from extender.values.objects.pod import Affinity, Pod


def nearest_nodes(refusals: Refusals, advice: Advice, limit: int = limits.NEAREST_NODES) -> tuple[NearNode, ...]:
    """Returns the nearest nodes, in the order of `nearest_places`, with the reasons of each plugin that refuses
    them.
    """
    found: list[NearNode] = []
    for place in nearest_places(refusals, advice)[:limit].tolist():
        by_plugin = refusals.of_node(place)
        reasons = dict.fromkeys(reason for of_plugin in by_plugin.values() for reason in of_plugin)
        name = refusals.evaluation.snapshot.nodes.objects[place].name
        found.append(NearNode(node=name, plugins=tuple(by_plugin), reasons=tuple(reasons), lacks=advice.lacks(place)))
    return tuple(found)


def nearest_places(refusals: Refusals, advice: Advice) -> Index:
    """Returns the places on axis N of all nodes that are refused, nearest first.

    Nodes where evictions might help come before others, then nodes that fewer plugins refuse, then nodes that lack
    less.
    """
    # A node that no Filter refuses by itself counts as refused by one: PreFilter left it out, or pods are nominated to
    # it.
    order = np.lexsort((advice.share_missing, np.maximum(refusals.counts, 1), refusals.hopeless))
    return order[refusals.refused[order]]


def node_to_add(framework: Framework, refusals: Refusals, advice: Advice, pod: Pod) -> str | None:
    """Returns the name of a node such that the pod would fit on a new node with its labels and taints, and with its
    DaemonSets' pods alone.

    Returns None if there is no such node, if a plugin fails, and for pods that depend on other nodes or request a node
    by its name: the verdict about an existing node says nothing about a new one then.
    """
    snapshot = refusals.evaluation.snapshot
    cycle = Cycle(framework, snapshot, pod)  # pods are nominated to nodes that exist, so that they do not count here
    places = _one_of_each_kind(snapshot, nearest_places(refusals, advice))[: limits.NODE_KINDS_TRIED]
    try:
        outcome = cycle.run_pre_filter_plugins()
        if not outcome.status.is_success or outcome.node_names is not None or _requests_by_name(pod):
            return None
        if not depends_on_node_alone(cycle):
            return None
        ok = cycle.run_filter_plugins(_emptied(snapshot, places)).ok
    except PluginError:
        return None
    return snapshot.nodes.objects[int(places[ok][0])].name if ok.any() else None


def _one_of_each_kind(snapshot: Snapshot, places: Index) -> Index:
    """Returns the first node of each kind: nodes of equal size and taints are one kind, whatever their labels."""
    nodes = snapshot.nodes
    kinds = np.column_stack(
        [nodes.allocatable[places], nodes.allowed_pods[places], nodes.taint_set[places], nodes.unschedulable[places]]
    )
    _, first = np.unique(kinds, axis=0, return_index=True)
    return places[np.sort(first)]


def depends_on_node_alone(cycle: Cycle) -> bool:
    """Returns whether no Filter that is asked about the pod looks beyond one node, and nothing is to be reserved for
    the pod.
    """
    skipped, plugins = cycle.skip_filter_plugins, cycle.framework.plugins
    looks_further = any(not plugin.looks_only_at_node for name, plugin in plugins.filter if name not in skipped)
    return not looks_further and all(plugin.name in skipped for plugin in plugins.reserve)


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


def _requests_by_name(pod: Pod) -> bool:
    of_nodes = (pod.spec.affinity or Affinity()).node_affinity
    terms = of_nodes.required.node_selector_terms if of_nodes is not None and of_nodes.required is not None else []
    keys = {each.key for term in terms for each in (*term.match_expressions, *term.match_fields)} | (
        pod.spec.node_selector or {}
    ).keys()
    return bool(keys & {HOSTNAME_LABEL, NAME_FIELD})
