"""What would let a pod in, and on how many nodes: every suggestion is tried, by asking the engine about the pod as it would be.

Nothing is written. The framework's cycle is another one afterwards.
"""

from collections.abc import Iterable
from itertools import islice
from typing import Final, final

import numpy as np

from extender.answers.another_node import node_to_add
from extender.answers.lacks import Room
from extender.answers.refusals import Refusals
from extender.answers.suggestions import Kind, Situation, giving_in_to_all, giving_in_to_one
from extender.answers.types import Fix
from extender.evaluation.evaluate import Evaluation
from extender.objects.decoding import replaced
from extender.objects.pod import Pod
from extender.objects.priorities import HIGHEST_USER_PRIORITY
from extender.preemption.evaluator import nodes_where_preemption_might_help
from extender.runtime.errors import PluginError
from extender.runtime.framework import Framework
from extender.runtime.nominations import Nominations
from extender.scheduler.schedule_pod import Search
from extender.snapshot import PodChanges, Rows, Snapshot
from extender.snapshot.axes import Index

MAX_FIXES: Final = 6
MAX_TRIES: Final = 20
"""Suggestions tried for one plugin's sake, of a pod that many plugins refuse for many reasons."""
MAX_TRIES_TOGETHER: Final = 4
"""Suggestions tried that give in to several plugins at once, where none that gives in to one helps."""
MAX_PRIORITIES_TRIED: Final = 5
_NODES_NAMED: Final = 5


def fixes(evaluation: Evaluation, refusals: Refusals | None, framework: Framework, pod: Pod, nominations: Nominations) -> tuple[Fix, ...]:
    """What would let the pod in, the change that opens most nodes first; nothing for a pod that fits, and nothing that opens none.

    Arguments:
        refusals: of the evaluation; None if no Filter was asked.
        nominations: those that the evaluation has counted.
    """
    trials = _Trials(framework, evaluation.snapshot, nominations)
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    if evaluation.feasible:
        places = np.array([evaluation.snapshot.nodes.index[name] for name in evaluation.feasible], np.intp)
        return (_fix(evaluation.snapshot, "gate", f"remove {_gates(gates)}", places),) if gates else ()
    if evaluation.statuses is None or evaluation.error:
        return ()
    also = f", and remove {_gates(gates)}" if gates else ""
    found = _Found(evaluation.snapshot, also)
    situation = Situation(pod, evaluation.snapshot, Room(evaluation.snapshot, pod, nominations), refusals)
    for one in islice(giving_in_to_one(situation, _refusing(evaluation, refusals)), MAX_TRIES):
        found.add(one.kind, one.text, trials.opened(one.pod))
    _try_preemption(evaluation, pod, trials, found)
    if not found:
        for several in islice(giving_in_to_all(situation), MAX_TRIES_TOGETHER):
            found.add(several.kind, several.text, trials.opened(several.pod))
    if refusals is not None:
        kind = node_to_add(framework, refusals, situation.room, pod)
        if kind is not None:
            found.add_node(f"add a node like {kind}")
    return found.best(MAX_FIXES)


@final
class _Trials:
    """Asks the engine about pods that are not there."""

    def __init__(self, framework: Framework, snapshot: Snapshot, nominations: Nominations) -> None:
        self._framework = framework
        self._snapshot = snapshot
        self._nominations = nominations

    def opened(self, pod: Pod) -> Index:
        """Places of the nodes on which such a pod would fit. A pod that a plugin cannot judge fits nowhere."""
        framework = self._framework
        state = framework.begin_cycle(self._snapshot, self._nominations)
        try:
            outcome = framework.run_pre_filter_plugins(state, pod)
            if outcome.status.is_success:
                within = Search(framework, self._snapshot, state, pod, outcome).within
                return framework.feasible_rows(state, pod, within).node
        except PluginError:
            pass  # judged by nobody, it opens nothing; the evaluation has told of plugins that fail for the pod as it is
        return np.zeros(0, np.intp)

    def opened_by_eviction(self, pod: Pod, potential: Index) -> Index:
        """Those of the potential nodes on which such a pod would fit if all pods of lower priority left.

        What the dry run does first; which of those pods could stay makes no difference to whether the node is opened.
        """
        framework, pods = self._framework, self._snapshot.pods
        row_at = np.full(len(self._snapshot.nodes) + 1, -1, np.intp)  # the last place answers for pods that are nowhere (-1)
        row_at[potential] = np.arange(len(potential))
        lower = np.flatnonzero(pods.priority < pod.priority)
        row = row_at[pods.node[lower]]
        lower, row = lower[row >= 0], row[row >= 0]
        if not len(lower):
            return np.zeros(0, np.intp)
        rows = Rows.of(self._snapshot, potential).changed(PodChanges(row, lower, np.full(len(lower), -1)))
        has_victims = np.zeros(len(potential), np.bool_)
        has_victims[row] = True
        state = framework.begin_cycle(self._snapshot, self._nominations)
        try:
            if framework.run_pre_filter_plugins(state, pod).status.is_success:
                return potential[framework.run_filters_with_nominated_pods(state, pod, rows).ok & has_victims]
        except PluginError:
            pass  # as above
        return np.zeros(0, np.intp)


@final
class _Found:
    """Fixes that open any node. Of those of a kind that open the same nodes, the first says it all."""

    def __init__(self, snapshot: Snapshot, also: str) -> None:
        self._snapshot = snapshot
        self._also = also
        self._fixes: dict[tuple[Kind, bytes], Fix] = {}

    def __len__(self) -> int:
        return len(self._fixes)

    def add(self, kind: Kind, text: str, places: Index) -> None:
        """The change was tried, and opens the nodes at these places."""
        if len(places):
            self._fixes.setdefault((kind, places.tobytes()), _fix(self._snapshot, kind, text + self._also, places))

    def add_node(self, text: str) -> None:
        """The change brings one more node, which the pod fits on."""
        self._fixes["node", b""] = Fix(kind="node", text=text + self._also, opens=1)

    def best(self, limit: int) -> tuple[Fix, ...]:
        """Those that open most nodes come first."""
        return tuple(sorted(self._fixes.values(), key=lambda fix: -fix.opens)[:limit])


def _fix(snapshot: Snapshot, kind: Kind, text: str, places: Index) -> Fix:
    named = tuple(snapshot.nodes.objects[place].name for place in places[:_NODES_NAMED].tolist())
    return Fix(kind=kind, text=text, opens=len(places), nodes=named)


def _gates(names: Iterable[str]) -> str:
    *others, last = names
    return f"the scheduling gates {', '.join(others)} and {last}" if others else f"the scheduling gate {last}"


def _refusing(evaluation: Evaluation, refusals: Refusals | None) -> list[str]:
    """The plugins that refuse the pod: first those that are the only obstacle on most nodes."""
    pre_filter = evaluation.pre_filter
    early = [] if pre_filter is None else [pre_filter.status.plugin, *pre_filter.narrowed_by]
    if refusals is None:
        return early
    plugins = {plugin for plugin in refusals.by_plugin if refusals.refused_by(plugin).any()}
    plugins |= {status.plugin for status in refusals.statuses.explicit.values()}
    return sorted({*plugins, *early} - {""}, key=lambda plugin: (-int(refusals.only_by(plugin).sum()), plugin))


def _try_preemption(evaluation: Evaluation, pod: Pod, trials: _Trials, found: _Found) -> None:
    """Letting the pod preempt, or giving it a priority at which there is somebody to preempt."""
    outcome, snapshot = evaluation.preemption, evaluation.snapshot
    if outcome is None or evaluation.statuses is None:
        return
    may_not = pod.spec.preemption_policy == "Never"
    if not may_not and (outcome.why_not_eligible is not None or outcome.candidates is None or len(outcome.candidates)):
        return
    potential = nodes_where_preemption_might_help(snapshot, evaluation.statuses)
    if may_not:
        changed = replaced(pod, spec=replaced(pod.spec, preemption_policy="PreemptLowerPriority"))
        found.add("preemption", "let it preempt (preemptionPolicy PreemptLowerPriority)", trials.opened_by_eviction(changed, potential))
        return
    is_potential = np.zeros(len(snapshot.nodes) + 1, np.bool_)
    is_potential[potential] = True
    priorities = np.unique(snapshot.pods.priority[is_potential[snapshot.pods.node]])
    levels = priorities[(priorities >= pod.priority) & (priorities < HIGHEST_USER_PRIORITY)].tolist()
    # The lowest that helps, as far as a few tries find it. More may be evicted at a higher one, so that it opens more.
    low, high, best = 0, len(levels) - 1, None
    at = high
    for _ in range(MAX_PRIORITIES_TRIED):
        if low > high:
            break
        opened = trials.opened_by_eviction(replaced(pod, spec=replaced(pod.spec, priority=levels[at] + 1)), potential)
        if len(opened):
            high, best = at - 1, (levels[at], opened)
        else:
            low = at + 1
        at = (low + high) // 2
    if best is not None:
        found.add("preemption", f"give it a priority above {best[0]}, so that it may preempt", best[1])
