"""Environments of Gymnasium, by name `reprieve.gym:reprieve/Trial-v0` and `reprieve.gym:reprieve/Scheduling-v0`: pods
that are placed one after the other, and a simulation in which time passes. Needs the extra `gym`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, final

import gymnasium
import numpy as np

from extender.answers.what_if.simulated_pods import drop_leftover_claims
from extender.engine.framework import NoNodesAvailableError
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.plugin_calls import PluginError
from extender.engine.scheduler.schedule_pod import FitError, SchedulingAlgorithm
from extender.engine.snapshot import Rows
from extender.engine.snapshot.axes import Int64s
from extender.values.objects.pod import Pod
from reprieve.lab.simulation import agent_environment as agents
from reprieve.lab.simulation.agent_environment import AgentEnvironment, NodeChoice, Progress, allocation
from reprieve.lab.simulation.environment import SchedulingEnvironment
from reprieve.library import Cluster, ReprieveError, Trial
from reprieve.trials import parts_of

__all__ = ["AgentEnvironment", "Progress", "SchedulingEnvironment", "TrialEnvironment", "allocation"]


@final
class TrialEnvironment(AgentEnvironment):
    """Places the pending pods of a cluster, each tried once and without evictions. No time passes. A pod with one
    feasible node goes there, one with none is refused; a pod of a group is placed by itself. See `AgentEnvironment`.

    State: the trial, the episode that is taken back, the pods that are still to come, and what became of the others.
    """

    def __init__(
        self,
        cluster: Cluster | str | Path | Sequence[Mapping[str, Any]],
        *,
        action: agents.Action = "node",
        pods: Callable[[Sequence[str], np.random.Generator], Iterable[str]] | None = None,
        reward: agents.Reward = allocation,
        max_nodes: int | None = None,
        **of_trial: Any,
    ) -> None:
        """Opens a trial, and begins an episode, to learn which nodes, resources and plugins there are.

        Arguments:
            cluster: a cluster, or what `Cluster.load` takes.
            pods: takes the names of all pending pods, in the order of the queue, and the chance of the episode, and
                returns those that come, in their order; None for all, those of equal priority in any order.
            max_nodes: the number of rows; None for the number of nodes.
            of_trial: arguments of `Cluster.trial`, such as `configuration` and `plugins`.

        Raises:
            ReprieveError: the cluster, the configuration or a plugin cannot be used, or no pod has a choice.
            ValueError: there is no such action, fewer rows than nodes, or `pods` cannot be called.
        """
        super().__init__(action, reward, max_nodes)
        if pods is not None and not callable(pods):
            raise ValueError(f"pods={pods!r:.80}: give a function that returns the names of those that come")
        self._cluster = cluster if isinstance(cluster, Cluster) else Cluster.load(cluster)
        self._of_trial, self._arrivals, self._algorithm = of_trial, pods, SchedulingAlgorithm()
        self._open, self._taken_back = ExitStack(), ExitStack()
        self._trial: Trial | None = None
        first = self._begin(0)
        if max_nodes is not None and max_nodes < (count := len(first.rows.snapshot.nodes)):
            raise ValueError(f"max_nodes={max_nodes}: the cluster has {count} nodes")
        self._lay_out(first, max_nodes)
        self.close()

    def close(self) -> None:
        """Ends the trial. Idempotent; `reset` opens another one."""
        self._choice, self._trial = None, None
        self._taken_back.close()
        self._open.close()

    def _begin(self, seed: int | None) -> NodeChoice:
        self._taken_back.close()
        if self._trial is None:
            self._trial = self._open.enter_context(self._cluster.trial(**self._of_trial))
        self._engine, waiting, self._why_not_tried = parts_of(self._trial)
        self._taken_back.enter_context(self._engine.transaction())
        rows = Rows.of(self._engine.cluster.cache.update_snapshot())
        names = agents.resources_of(rows.snapshot.nodes.objects)
        self._amounts = {name: int(rows.allocatable_of(name).sum()) for name in names}
        pods = self._arriving(waiting)
        drop_leftover_claims(self._engine, pods)
        self._coming, self._expected, self._arrived, self._num_placed = iter(pods), len(pods), 0, 0
        self._refusals: Counter[str] = Counter()
        first = self._next()
        if not isinstance(first, NodeChoice):
            raise ReprieveError("no pod has several nodes to choose from")
        return first

    def _arriving(self, waiting: Sequence[Pod]) -> list[Pod]:
        def turn(pod: Pod) -> Any:
            framework = self._engine.frameworks.get(pod.scheduler_name)
            return (0,) if framework is None else framework.plugins.queue_sort.sort_key(pod, 0.0)

        if self._arrivals is None:
            return sorted((waiting[index] for index in self.np_random.permutation(len(waiting))), key=turn)
        pods = {pod.key: pod for pod in sorted(waiting, key=turn)}
        chosen = [name if "/" in name else f"default/{name}" for name in self._arrivals([*pods], self.np_random)]
        if unknown := [name for name in chosen if name not in pods]:
            raise ReprieveError(f"pod {unknown[0]} is not pending")
        return [pods[name] for name in dict.fromkeys(chosen)]

    def _next(self) -> NodeChoice | agents.Outcome:
        """Tries pods up to one with several feasible nodes."""
        for pod in self._coming:
            self._arrived += 1
            if why_not := self._why_not_tried(pod):
                self._refusals[why_not] += 1
                continue
            cycle = self._engine.cycle(pod)
            try:
                self._algorithm.run_pre_filter(cycle)
                rows = self._algorithm.feasible_rows(cycle, 0)
                if len(rows) > 1:
                    self._cycle = cycle
                    return NodeChoice.of(cycle, rows, self._progress())
            except (FitError, PluginError, NoNodesAvailableError) as exc:
                self._refusals[str(exc)] += 1
            else:
                self._put(cycle, rows.names[0])
        refusals = [{"message": message, "pods": pods} for message, pods in self._refusals.most_common()]
        nodes, progress = len(self._engine.cluster.nodes), self._progress()
        counts = {"nodes": nodes, "pods": self._expected, "placed": self._num_placed, "refused": self._refusals.total()}
        return progress, {"report": {**counts, "allocated": progress.allocated, "refusals": refusals}}

    def _placed(self, choice: NodeChoice, ratings: Int64s) -> NodeChoice | agents.Outcome:
        best = np.flatnonzero(ratings == ratings.max())
        best = best[(totals := choice.total[best]) == totals.max()]
        row = int(best[0] if len(best) == 1 else self.np_random.choice(best))
        self._put(self._cycle, choice.rows.names[row])
        return self._next()

    def _put(self, cycle: Cycle, node: str) -> None:
        attempt = self._engine.place(cycle, node)
        self._num_placed += bool(attempt.node)
        if not attempt.node:
            self._refusals[attempt.message] += 1

    def _progress(self) -> Progress:
        rows = Rows.of(self._engine.cluster.cache.update_snapshot())
        allocated = {name: int(rows.requested_of(name).sum()) / has for name, has in self._amounts.items() if has}
        return Progress(0.0, self._arrived, self._num_placed, 0, self._expected, allocated)


gymnasium.register("reprieve/Trial-v0", entry_point=f"{__name__}:{TrialEnvironment.__name__}")
