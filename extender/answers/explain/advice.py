"""Which plugins refuse which nodes, each asked by itself; what they advise; and the nodes nearest to taking a pod."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final, TypeVar, final

import numpy as np

from extender.answers.parts import PodName
from extender.answers.types import Lack, NearNode
from extender.engine.evaluation.evaluate import Evaluation
from extender.engine.framework import AdvicePlugin, Code, NodeStatuses, Shortage, Suggestion, Verdicts
from extender.engine.runtime.cycle import Cycle, Nominations, PreFilterOutcome
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError, call_plugin
from extender.engine.snapshot import PodChanges, Rows, Snapshot
from extender.engine.snapshot.axes import Floats, Index, Int64s, Mask
from extender.values import limits
from extender.values.klog.logger import Logger
from extender.values.objects.node import HOSTNAME_LABEL, Node
from extender.values.objects.node_selectors import NAME_FIELD
from extender.values.objects.pod import Affinity, Pod
from extender.values.objects.resource_amounts import as_quantity

T = TypeVar("T")

_LOG: Final = Logger(__name__)


@final
@dataclass(frozen=True, slots=True)
class Refusals:
    """The refusals of one evaluation."""

    evaluation: Evaluation
    by_plugin: dict[str, Verdicts]
    statuses: NodeStatuses
    pre_filter: PreFilterOutcome
    refused: Mask
    """(N,) nodes that are not feasible."""
    left_out: Mask
    """(N,) nodes that PreFilter left out of the search."""
    counts: Int64s
    """(N,) how many Filters refuse the node."""

    @staticmethod
    def of(evaluation: Evaluation) -> "Refusals | None":
        """Returns None if no Filter was asked: PreFilter refused the pod, or a plugin failed."""
        by_plugin, statuses, pre_filter = evaluation.by_plugin, evaluation.statuses, evaluation.pre_filter
        if not by_plugin or statuses is None or pre_filter is None:
            return None
        nodes = evaluation.snapshot.nodes
        refused = np.ones(len(nodes), np.bool_)
        refused[[nodes.index[name] for name in evaluation.feasible]] = False
        left_out = np.zeros(len(nodes), np.bool_)
        if pre_filter.node_names is not None:
            left_out[:] = True
            left_out[[nodes.index[name] for name in pre_filter.node_names if name in nodes.index]] = False
        counts: Int64s = np.stack([~verdicts.ok for verdicts in by_plugin.values()]).sum(axis=0, dtype=np.int64)
        return Refusals(evaluation, by_plugin, statuses, pre_filter, refused, left_out, counts)

    @property
    def hopeless(self) -> Mask:
        """(N,) nodes on which preemption cannot help."""
        never = [verdicts.codes == Code.UNSCHEDULABLE_AND_UNRESOLVABLE for verdicts in self.by_plugin.values()]
        hopeless: Mask = np.logical_or.reduce(never) | self.left_out
        return hopeless

    @property
    def plugin_sets(self) -> Int64s:
        """(N,) a number for the set of Filters that refuse the node; equal sets have equal numbers."""
        sets = np.zeros(len(self.refused), np.int64)
        for verdicts in self.by_plugin.values():
            # The sets get new numbers at each step, so that any number of plugins fits into an int64.
            sets = np.unique(2 * sets + ~verdicts.ok, return_inverse=True)[1]
        return sets

    def refused_by(self, plugin: str) -> Mask:
        """Returns (N,) nodes that the plugin refuses."""
        verdicts = self.by_plugin.get(plugin)
        return np.zeros(len(self.refused), np.bool_) if verdicts is None else ~verdicts.ok

    def only_by(self, plugin: str) -> Mask:
        """Returns (N,) nodes that no other plugin refuses. Nominated pods do not count."""
        only: Mask = self.refused & (self.counts == self.refused_by(plugin))
        return only if plugin in self.pre_filter.narrowed_by else only & ~self.left_out

    def of_node(self, place: int) -> dict[str, list[str]]:
        """Returns plugin -> its reasons for one refused node; if no Filter refuses it alone, its status's."""
        alone = {
            plugin: verdicts.reasons_of(place)
            for plugin, verdicts in self.by_plugin.items()
            if verdicts.codes[place] != Code.SUCCESS
        }
        status = self.statuses.at_place(place, self.evaluation.snapshot)
        if status is not self.statuses.absent:
            alone.setdefault(status.plugin, list(status.reasons))
        elif not alone.keys() & set(self.pre_filter.narrowed_by):
            alone |= {plugin: list(status.reasons) for plugin in self.pre_filter.narrowed_by}
        return alone


@final
class Advice:
    """The advice of a profile's plugins. One that fails is logged, and its advice is left out."""

    def __init__(self, framework: Framework, snapshot: Snapshot, pod: Pod, nominations: Nominations) -> None:
        """Asks no plugin yet. Nodes count the pods that are nominated to them and go before this pod."""
        rows = Rows.of(snapshot)
        nominated = nominations.changes_for(pod, rows)
        self._rows = rows if nominated is None else rows.changed(nominated)
        self._pod = pod
        self._plugins: Mapping[str, AdvicePlugin] = framework.plugins.advice

    @cached_property
    def _shortages(self) -> Sequence[Shortage]:
        shortages: list[Shortage] = []
        for plugin in self._plugins.values():
            shortages += self._ask(plugin, partial(_listed, plugin.shortages, self._pod, self._rows), [])
        return sorted(shortages, key=lambda shortage: shortage.resource)

    @cached_property
    def share_missing(self) -> Floats:
        """(N,) the share of the requests that is missing, summed over resources; above 1 on overcommitted nodes."""
        shares: Floats = np.zeros(len(self._rows))
        for shortage in self._shortages:
            shares += np.maximum(shortage.requested - shortage.free, 0) / max(shortage.requested, 1)
        return shares

    def lacks(self, place: int) -> tuple[Lack, ...]:
        """Returns what the node at this place has too little of."""
        lacking = (shortage for shortage in self._shortages if shortage.requested > shortage.free[place])
        return tuple(_lack(shortage, int(shortage.free[place])) for shortage in lacking)

    def for_one_plugin(self, plugins: Sequence[str], refusals: Refusals | None, nearest: Index) -> Iterator[Suggestion]:
        """Yields changes that may each satisfy one of the plugins; `nearest` are the refused nodes, nearest first."""
        for name in self._distinct(plugins):
            plugin = self._plugins[name]
            alone = nearest if refusals is None else nearest[refusals.only_by(name)[nearest]]
            rows = self._rows.take(alone)
            suggestions: list[Suggestion] = self._ask(plugin, partial(_listed, plugin.suggest, self._pod, rows), [])
            yield from suggestions

    def for_all_plugins(self, refusals: Refusals, nearest: Index) -> Iterator[Suggestion]:
        """Yields changes that may satisfy all that refuse a node, for the nearest node of each refusing set."""
        places = nearest[refusals.counts[nearest] > 1]
        _, first = np.unique(refusals.plugin_sets[places], return_index=True)
        for place in places[np.sort(first)].tolist():
            together = self._for_node(place, list(refusals.of_node(place)))
            if together is not None:
                yield together

    def _for_node(self, place: int, plugins: Sequence[str]) -> Suggestion | None:
        """Returns the changes of all these plugins, made one after the other; None if one of them suggests none."""
        if any(name not in self._plugins for name in plugins):
            return None
        pod, row = self._pod, self._rows.take(np.array([place]))
        texts: list[str] = []
        for name in self._distinct(plugins):
            plugin = self._plugins[name]
            change = self._ask(plugin, partial(plugin.suggest_for_node, pod, row), None)
            if change is None:
                return None
            pod = change.pod
            texts.append(change.text)
        return Suggestion("other", ", ".join(texts[:-1]) + f", and {texts[-1]}" if len(texts) > 1 else texts[0], pod)

    def _distinct(self, names: Sequence[str]) -> list[str]:
        """Returns those of the plugins that give advice; of plugins that inherit theirs from one class, the first."""
        first: dict[Hashable, str] = {}
        for name in names:
            plugin = type(self._plugins[name]) if name in self._plugins else None
            if plugin is not None:
                first.setdefault((plugin.suggest, plugin.suggest_for_node), name)
        return list(first.values())

    def _ask(self, plugin: AdvicePlugin, call: Callable[[], T], otherwise: T) -> T:
        try:
            return call_plugin(None, plugin.name, "Advice", call)
        except PluginError as exc:
            _LOG.error(exc, "The advice of a plugin is left out", plugin=plugin.name, pod=self._pod.key)
            return otherwise


def _listed(method: Callable[[Pod, Rows], Iterable[T]], pod: Pod, rows: Rows) -> list[T]:
    """Runs a method that may be a generator to its end, so that it fails here if it fails."""
    return list(method(pod, rows))


def _lack(shortage: Shortage, free: int) -> Lack:
    resource, requested = shortage.resource, shortage.requested
    asks, free_text, short = (as_quantity(resource, amount) for amount in (requested, free, max(requested - free, 0)))
    return Lack(resource=resource, asks=asks, free=free_text, short=short)


def nearest_nodes(refusals: Refusals, advice: Advice, limit: int = limits.NEAREST_NODES) -> tuple[NearNode, ...]:
    """Returns the nearest nodes, in the order of `nearest_places`, with the reasons of each refusing plugin."""
    nodes: list[NearNode] = []
    for place in nearest_places(refusals, advice)[:limit].tolist():
        by_plugin = refusals.of_node(place)
        reasons = dict.fromkeys(reason for of_plugin in by_plugin.values() for reason in of_plugin)
        name = refusals.evaluation.snapshot.nodes.objects[place].name
        nodes.append(NearNode(node=name, plugins=tuple(by_plugin), reasons=tuple(reasons), lacks=advice.lacks(place)))
    return tuple(nodes)


def nearest_places(refusals: Refusals, advice: Advice) -> Index:
    """Returns the refused nodes' places on axis N: hopeful ones first, then by how few plugins refuse, then by lack."""
    # A node that no Filter refuses by itself counts as refused by one: PreFilter left it out, or pods are nominated to
    # it.
    order = np.lexsort((advice.share_missing, np.maximum(refusals.counts, 1), refusals.hopeless))
    return order[refusals.refused[order]]


def node_to_add(framework: Framework, refusals: Refusals, advice: Advice, pod: Pod) -> str | None:
    """Returns a node such that the pod would fit on a new one with its labels and taints, and its DaemonSets' pods
    alone. None if there is none, if a plugin fails, and for pods that depend on other nodes or request one by name: an
    existing node's verdict says nothing about a new one then.
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
    """Returns whether no Filter asked about the pod looks beyond one node, and nothing is to be reserved for it."""
    skipped, plugins = cycle.skip_filter_plugins, cycle.framework.plugins
    looks_further = any(not plugin.looks_only_at_node for name, plugin in plugins.filter if name not in skipped)
    return not looks_further and all(plugin.name in skipped for plugin in plugins.reserve)


def _emptied(snapshot: Snapshot, places: Index) -> Rows:
    rows, slots = [], []
    for row, place in enumerate(places.tolist()):
        for slot in snapshot.pods.on_node[place]:
            owners = snapshot.pod_at(slot).metadata.owner_references
            if not any(owner.controller and owner.kind == "DaemonSet" for owner in owners):
                rows.append(row)
                slots.append(slot)
    changes = PodChanges(np.array(rows, np.intp), np.array(slots, np.intp), np.full(len(rows), -1))
    return Rows.of(snapshot, places).changed(changes)


def _requests_by_name(pod: Pod) -> bool:
    of_nodes = (pod.spec.affinity or Affinity()).node_affinity
    terms = of_nodes.required.node_selector_terms if of_nodes is not None and of_nodes.required is not None else []
    keys = {requirement.key for term in terms for requirement in (*term.match_expressions, *term.match_fields)}
    return not keys.union(pod.spec.node_selector or {}).isdisjoint((HOSTNAME_LABEL, NAME_FIELD))


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """A pod that a plugin refuses."""

    pod: Pod
    snapshot: Snapshot
    framework: Framework
    refused: Index
    """The places of the nodes that the plugin refuses, nearest first; none if PreFilter refused the pod."""
    refusals: Refusals | None

    @property
    def nearest(self) -> Iterator[Node]:
        """The first of these nodes."""
        return (self.snapshot.nodes.objects[place] for place in self.refused[: limits.FACT_NODES].tolist())


@final
@dataclass(frozen=True, slots=True)
class NodeFact:
    """A fact about one node, or about the cluster."""

    text: str
    node: str = ""
    pods: tuple[PodName, ...] = ()

    @property
    def of_all_nodes(self) -> "NodeFact":
        return replace(self, node="")
