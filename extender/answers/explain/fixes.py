"""Changes that would let a pod fit, each tried by evaluating the changed pod, with a patch, a command, and objects."""

from collections.abc import Mapping, Sequence
from itertools import islice
from shlex import quote
from typing import Any, Final, Literal, final

import msgspec
import numpy as np

from extender.answers.explain.advice import Advice, Refusals, nearest_places, node_to_add
from extender.answers.parts import workload_of
from extender.answers.types import Fix
from extender.engine.evaluation.evaluate import Evaluation
from extender.engine.framework.interface import SuggestionKind, listed
from extender.engine.preemption import rules_of
from extender.engine.preemption.budgets import lower_priority_pods
from extender.engine.preemption.evaluator import nodes_where_preemption_might_help
from extender.engine.runtime.cycle import Cycle, Nominations
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.snapshot import PodChanges, Rows, Snapshot
from extender.engine.snapshot.axes import Index
from extender.values import limits
from extender.values.objects.decoding import replaced
from extender.values.objects.grouping import HIGHEST_USER_PRIORITY
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod

Kind = SuggestionKind | Literal["gate", "preemption"]

_NODES_NAMED: Final = 5


def fixes(
    evaluation: Evaluation,
    refusals: Refusals | None,
    advice: Advice,
    framework: Framework,
    pod: Pod,
    nominations: Nominations,
) -> tuple[Fix, ...]:
    """Returns changes that would let the pod fit, that which opens most nodes first; one that fits loses its gates."""
    trials = _Trials(framework, evaluation.snapshot, nominations)
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    gates_go = f"remove the {listed('scheduling gate', gates)}" if gates else ""
    if evaluation.feasible:
        places = np.array([evaluation.snapshot.nodes.index[name] for name in evaluation.feasible], np.intp)
        fixes = _OpeningFixes(evaluation.snapshot, pod, "")
        if gates:
            fixes.add("gate", gates_go, places, pod)
        return fixes.best(1)
    if evaluation.statuses is None or evaluation.error:
        return ()
    also = f", and {gates_go}" if gates else ""
    fixes = _OpeningFixes(evaluation.snapshot, pod, also)
    nearest = np.zeros(0, np.intp) if refusals is None else nearest_places(refusals, advice)
    for one in islice(advice.for_one_plugin(_refusing(evaluation, refusals), refusals, nearest), limits.FIXES_TRIED):
        fixes.add(one.kind, one.text, trials.with_objects(one.objects).opened(one.pod), one.pod, objects=one.objects)
    _try_preemption(evaluation, pod, trials, fixes)
    if refusals is not None:
        if not fixes:
            for several in islice(advice.for_all_plugins(refusals, nearest), limits.FIXES_TRIED_TOGETHER):
                fixes.add(several.kind, several.text, trials.opened(several.pod), several.pod)
        model = node_to_add(framework, refusals, advice, pod)
        if model is not None:
            fixes.add_node(model)
    return fixes.best(limits.FIXES)


@final
class _Trials:
    def __init__(self, framework: Framework, snapshot: Snapshot, nominations: Nominations) -> None:
        self._framework = framework
        self._snapshot = snapshot
        self._nominations = nominations
        self.rules = rules_of(framework.plugins.post_filter)

    def with_objects(self, objects: Sequence[HasMetadata]) -> "_Trials":
        """Returns trials in which these objects are as they would be."""
        if not objects:
            return self
        copied = self._snapshot.objects.copy()
        for obj in objects:
            copied.changed(copied.known(obj), obj)
        return _Trials(self._framework, msgspec.structs.replace(self._snapshot, objects=copied), self._nominations)

    def opened(self, pod: Pod, rows: Rows | None = None) -> Index:
        """Returns the places of the nodes, or of the hypothetical rows, on which such a pod would fit."""
        cycle = Cycle(self._framework, self._snapshot, pod, self._nominations)
        try:
            if cycle.run_pre_filter_plugins().status.is_success:
                if rows is None:
                    return cycle.feasible_rows().node
                return rows.node[cycle.run_filters_with_nominated_pods(rows).ok]
        except PluginError:
            pass  # the change opens nothing; plugins that fail for the pod as it is are in the evaluation
        return np.zeros(0, np.intp)

    def opened_by_eviction(self, pod: Pod, potential: Index, *, spares_siblings: bool = False) -> Index:
        """Returns the nodes on which such a pod would fit without pods of lower priority: the dry run's first step."""
        slots, row = lower_priority_pods(self._snapshot, pod, potential, self.rules)
        if spares_siblings:
            is_other = [not _are_siblings(pod, self._snapshot.pod_at(slot)) for slot in slots.tolist()]
            slots, row = slots[is_other], row[is_other]
        if not len(slots):
            return np.zeros(0, np.intp)
        rows = Rows.of(self._snapshot, potential).changed(PodChanges(row, slots, np.full(len(slots), -1)))
        has_victims = np.zeros(len(self._snapshot.nodes), np.bool_)
        has_victims[potential[row]] = True
        opened = self.opened(pod, rows)
        return opened[has_victims[opened]]


@final
class _OpeningFixes:
    """The fixes that open any node. Of those of a kind that open the same nodes, only the first is kept."""

    def __init__(self, snapshot: Snapshot, pod: Pod, also: str) -> None:
        self._snapshot = snapshot
        self._pod = pod
        self._also = also
        self._fixes: dict[tuple[Kind, bytes], Fix] = {}

    def __len__(self) -> int:
        return len(self._fixes)

    def add(self, kind: Kind, text: str, places: Index, changed: Pod, *, objects: Sequence[HasMetadata] = ()) -> None:
        """Adds a change, as good as made in `changed` and `objects`, that opens the nodes at these places, if any."""
        if not len(places) or (kind, places.tobytes()) in self._fixes:
            return
        nodes, changed = self._snapshot.nodes, self._without_gates(changed)
        node_names = tuple(nodes.objects[place].name for place in places[:_NODES_NAMED].tolist())
        # A pod gets its priority and its policy from its class.
        patch = {} if kind in ("node", "preemption") else patch_of(self._pod, changed)
        is_cordoned = kind == "node" and bool(nodes.unschedulable[places].all())
        self._fixes[kind, places.tobytes()] = Fix(
            kind=kind,
            text=text + self._also,
            opens=len(places),
            nodes=node_names,
            patch=patch,
            command=f"kubectl uncordon {' '.join(map(quote, node_names))}"
            if is_cordoned
            else command_of(self._pod, patch),
            # A what-if creates objects; it changes none that exist.
            objects=() if objects else objects_to_try(changed),
        )

    def add_node(self, model: str) -> None:
        """Adds the change that brings one more node, on which the pod fits."""
        objects = objects_to_try(self._without_gates(self._pod))
        self._fixes["node", b""] = Fix(
            kind="node", text=f"add a node like {model}{self._also}", opens=1, objects=objects, add_like=model
        )

    def _without_gates(self, pod: Pod) -> Pod:
        return replaced(pod, spec=replaced(pod.spec, scheduling_gates=[])) if pod.spec.scheduling_gates else pod

    def best(self, limit: int) -> tuple[Fix, ...]:
        """Returns the fixes that open most nodes, best first."""
        return tuple(sorted(self._fixes.values(), key=lambda fix: -fix.opens)[:limit])


def _refusing(evaluation: Evaluation, refusals: Refusals | None) -> list[str]:
    """Returns the plugins that refuse the pod: first those that alone refuse most nodes."""
    pre_filter = evaluation.pre_filter
    early = [] if pre_filter is None else [pre_filter.status.plugin, *pre_filter.narrowed_by]
    if refusals is None:
        return early
    plugins = {plugin for plugin in refusals.by_plugin if refusals.refused_by(plugin).any()}
    plugins |= {status.plugin for status, _ in refusals.statuses.counts()}
    return sorted({*plugins, *early} - {""}, key=lambda plugin: (-int(refusals.only_by(plugin).sum()), plugin))


def _try_preemption(evaluation: Evaluation, pod: Pod, trials: _Trials, fixes: _OpeningFixes) -> None:
    outcome, snapshot = evaluation.preemption, evaluation.snapshot
    if outcome is None or evaluation.statuses is None:
        return
    may_not = pod.spec.preemption_policy == "Never"
    if not may_not and (outcome.why_not_eligible is not None or outcome.candidates is None or len(outcome.candidates)):
        return
    potential = nodes_where_preemption_might_help(snapshot, evaluation.statuses, trials.rules)
    if may_not:
        changed = replaced(pod, spec=replaced(pod.spec, preemption_policy="PreemptLowerPriority"))
        opened = trials.opened_by_eviction(changed, potential)
        fixes.add("preemption", "let it preempt (preemptionPolicy PreemptLowerPriority)", opened, changed)
        return
    is_potential = np.zeros(len(snapshot.nodes) + 1, np.bool_)
    is_potential[potential] = True
    priorities = set(snapshot.pods.priority[is_potential[snapshot.pods.node]].tolist())
    levels = sorted(level for level in priorities if pod.priority <= level < HIGHEST_USER_PRIORITY)
    # Bisection for the lowest priority that helps, as far as a few tries find it. A higher one may evict more pods, and
    # so open more nodes.
    low, high, best = 0, len(levels) - 1, None
    level_index = high
    for _ in range(limits.PRIORITIES_TRIED):
        if low > high:
            break
        opened = trials.opened_by_eviction(
            replaced(pod, spec=replaced(pod.spec, priority=levels[level_index] + 1)), potential
        )
        if len(opened):
            high, best = level_index - 1, (levels[level_index], opened)
        else:
            low = level_index + 1
        level_index = (low + high) // 2
    if best is not None:
        changed = replaced(pod, spec=replaced(pod.spec, priority=best[0] + 1, priority_class_name=""))
        # A pod that is evicted for one of its own workload waits in its place.
        if not len(trials.opened_by_eviction(changed, best[1][: limits.SIBLING_NODES], spares_siblings=True)):
            return
        fixes.add("preemption", f"give it a priority above {best[0]}, so that it may preempt", best[1], changed)


def _are_siblings(pod: Pod, other: Pod) -> bool:
    """Returns whether both are of one workload; of pods that nothing makes, whether they have the same labels."""
    if pod.namespace != other.namespace:
        return False
    workload = workload_of(pod)
    return workload == workload_of(other) and bool(workload or (pod.labels and pod.labels == other.labels))


_KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "ports": "containerPort",
    "topologySpreadConstraints": "topologyKey",
}
"""Lists that a strategic merge patch merges by a key. Upstream: the patchMergeKey tags of core/v1."""
_WITH_TEMPLATE: Final = frozenset(("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"))
"""Kinds whose pod template can be changed; that of a Job cannot."""
_OF_A_PENDING_POD: Final = frozenset(("schedulingGates", "tolerations"))
"""Members of a pod's spec that can be changed while it has no node."""


def patch_of(before: Pod, after: Pod) -> dict[str, Any]:
    """Returns the strategic merge patch that makes one spec the other; an empty one if it would be very large."""
    patch = _difference(msgspec.to_builtins(before.spec), msgspec.to_builtins(after.spec))
    return patch if len(msgspec.json.encode(patch)) <= limits.FIX_PATCH_BYTES else {}


def command_of(pod: Pod, patch: Mapping[str, Any]) -> str:
    """Returns the command that patches the pod's workload, or a pod that can be changed; empty if neither can."""
    if not patch:
        return ""
    kind, _, name = workload_of(pod).partition("/")
    spec = {"spec": patch}
    if kind in _WITH_TEMPLATE and patch.keys() != {"schedulingGates"}:
        kind, spec = kind.lower(), {"spec": {"template": spec}}
    elif patch.keys() <= _OF_A_PENDING_POD:
        kind, name = "pod", pod.name
    else:
        return ""
    patch_json = quote(msgspec.json.encode(spec).decode())
    return f"kubectl -n {quote(pod.namespace)} patch {kind} {quote(name)} -p {patch_json}"


def objects_to_try(pod: Pod) -> tuple[dict[str, Any], ...]:
    """Returns the pod under a new name, as it would be created, after its PriorityClass; none of a very large pod."""
    name, classes = f"{pod.name[:240]}-tried", []
    spec = replaced(pod.spec, node_name="", priority=None, preemption_policy=None)
    if pod.priority <= HIGHEST_USER_PRIORITY:
        priority_class = {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": pod.priority,
        }
        classes = [
            priority_class | ({"preemptionPolicy": pod.spec.preemption_policy} if pod.spec.preemption_policy else {})
        ]
        spec = replaced(spec, priority_class_name=name)
    metadata = {
        "name": name,
        "namespace": pod.namespace,
        "labels": dict(pod.labels),
        "annotations": dict(pod.annotations),
    }
    pod_object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {key: value for key, value in metadata.items() if value},
    }
    objects = (*classes, {**pod_object, "spec": msgspec.to_builtins(spec)})
    return objects if len(msgspec.json.encode(objects)) <= limits.FIX_OBJECT_BYTES else ()


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    patch: dict[str, Any] = {}
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            patch[name] = _difference(old, new)
        elif name in _KEYS and isinstance(old, list):
            patch[name] = _difference_of_lists(old, new or [], _KEYS[name])
        else:
            patch[name] = new
    return patch


def _difference_of_lists(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], key: str
) -> list[dict[str, Any]]:
    new = {element.get(key): element for element in after}
    old = {element.get(key): element for element in before}
    deletions = [{"$patch": "delete", key: value} for value in old if value not in new]
    changed = [
        {key: value, **_difference(old.get(value, {}), element)}
        for value, element in new.items()
        if element != old.get(value)
    ]
    return [*deletions, *changed]
