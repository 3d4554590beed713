"""A simulation as a Gymnasium environment.

An episode is a workload that is played by the real scheduler in virtual time. A step is a pod with several feasible
nodes; what pods with one node or none do, evictions and the passing of time, happens between steps. The play runs in a
thread of its own, which waits while the agent thinks, and on which the environment waits otherwise: only one of the two
runs, and equal seeds and actions give equal episodes.

Needs the extra `gym`.
"""

import dataclasses
import queue
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, final

import gymnasium
import msgspec
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from extender.engine import framework as fwk
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.framework import Framework
from extender.engine.runtime.registry import Registry
from extender.engine.snapshot import Rows
from extender.engine.snapshot.axes import Int64s
from extender.values.config.configuration import Configuration, Profile
from extender.values.config.plugin_sets import PluginRef, PluginSet
from extender.values.objects.resource_amounts import requested_amounts
from extender.values.objects.resource_names import CPU, MEMORY, PODS
from reprieve.lab.simulation.playing import Played, play
from reprieve.lab.simulation.scene import Scene
from reprieve.lab.simulation.sweeping import read_workloads
from reprieve.lab.simulation.workload import Workload, WorkloadError

Floats: TypeAlias = NDArray[np.float32]
ObservedArrays: TypeAlias = dict[str, NDArray[Any]]

AGENT: Final = "Agent"
"""The name of the plugin through which the agent chooses."""
_NEARLY: Final = 1e-6
"""Sums of weighted scores that differ by less are equal."""
_DECISIVE: Final = 1_000_000
"""A weight beyond what the others can have together, so that the agent's node wins."""


@final
@dataclass(frozen=True, slots=True)
class Progress:
    """How far a play has come, for rewards."""

    time: float
    """Seconds of virtual time since the beginning."""
    arrived: int
    placed: int
    evicted: int
    expected: int
    """How many pods the workload is going to have; 0 if that is not known."""
    allocated: Mapping[str, float]
    """By resource, the part of what the nodes have that is requested."""


Reward = Callable[[Progress, Progress], float]
"""Takes the progress before an action, and at the next step or at the end."""


def allocation(before: Progress, after: Progress) -> float:
    """Rewards what is allocated: the mean over the resources, so that an episode's rewards add up to the allocation at
    its end.
    """
    return float(_mean(after.allocated) - _mean(before.allocated))


def _mean(shares: Mapping[str, float]) -> float:
    return sum(shares.values()) / max(len(shares), 1)


@final
@dataclass(frozen=True, slots=True)
class _Choice:
    """A pod and its feasible nodes, for the agent to choose among."""

    pod: fwk.Pod
    rows: Rows
    scores: Mapping[str, Floats]
    """(R,) by plugin the normalised scores, as parts of 1."""
    progress: Progress


@final
class _Episode:
    """A play in a thread. State: what the two threads pass each other, its scene, and frameworks that only score."""

    def __init__(
        self, workload: Workload, configuration: Configuration, seed: int, choose: Callable[["_Choice", Any], Int64s]
    ) -> None:
        self._workload = workload
        self._configuration = configuration
        self._seed = seed
        self._choose = choose
        self._is_abandoned = False
        self._scene: Scene | None = None
        self._scoring: Mapping[str, Framework] = {}
        self._to_agent: queue.SimpleQueue[_Choice | Played | Exception] = queue.SimpleQueue()
        self._to_play: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._play, name="episode", daemon=True)
        self._thread.start()

    def next(self) -> _Choice | Played:
        """Returns the next choice, or the play when it is over. Raises WorkloadError if it cannot be played."""
        found = self._to_agent.get()
        if isinstance(found, Exception):
            raise found
        return found

    def act(self, action: Any) -> None:
        self._to_play.put(action)

    def abandon(self) -> None:
        """Ends the play, which waits for an action."""
        self._is_abandoned = True
        self._to_play.put(None)
        self._thread.join()

    def progress(self) -> Progress:
        """Returns how far the play has come. Call it while the play waits, or is over."""
        if self._scene is None:
            return Progress(0.0, 0, 0, 0, 0, {})
        seen = self._scene.observation
        return Progress(seen.time(), len(seen.fates), seen.placed, seen.evicted, seen.expected_pods, seen.allocated())

    # In the thread of the play.

    def _play(self) -> None:
        episode = self

        @final
        class _Agent(fwk.ScorePlugin):
            """The plugin through which the agent chooses."""

            name = AGENT

            def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: Rows) -> Int64s:
                return episode._scored(pod, rows)

        with_agent = dataclasses.replace(
            self._configuration, profiles=tuple(map(_with_agent, self._configuration.profiles))
        )
        try:
            plugins = Registry({**IN_TREE, AGENT: _Agent})
            found: Played | Exception = play(
                self._workload, with_agent, self._seed, plugins=plugins, begin=self._begin, keeps_decisions=False
            )
        except Exception as exc:
            found = exc
        self._to_agent.put(found)

    def _begin(self, scene: Scene) -> None:
        self._scene = scene
        live = scene.scheduling.world.cluster.cache
        self._scoring = Registry(IN_TREE).make_frameworks(
            self._workload.configured(self._configuration), random.Random(0), live=live
        )

    def _scored(self, pod: fwk.Pod, rows: Rows) -> Int64s:
        """Returns (R,) 100 for the node that the agent chooses, and 0 for others."""
        choice = _Choice(pod, rows, self._scores(pod, rows), self.progress())
        self._to_agent.put(choice)
        action = self._to_play.get()
        if self._is_abandoned and self._scene is not None:
            self._scene.scheduling.scheduler.stop()
            return np.zeros(len(rows), np.int64)
        return self._choose(choice, action)

    def _scores(self, pod: fwk.Pod, rows: Rows) -> dict[str, Floats]:
        cycle = Cycle(self._scoring[pod.scheduler_name], rows.snapshot, pod)
        cycle.run_pre_filter_plugins()
        cycle.run_pre_score_plugins(rows)
        weighted = cycle.run_score_plugins(rows).weighted
        nothing = np.zeros(len(rows), np.int64)
        return {
            scorer.name: (weighted.get(scorer.name, nothing) / (fwk.MAX_NODE_SCORE * scorer.weight)).astype(np.float32)
            for scorer in cycle.framework.plugins.score
        }


def _with_agent(profile: Profile) -> Profile:
    """Returns a profile in which the agent scores, too, and decides."""
    score = profile.plugins.get("score", PluginSet())
    enabled = (*score.enabled, PluginRef(AGENT, _DECISIVE))
    return dataclasses.replace(
        profile, plugins={**profile.plugins, "score": dataclasses.replace(score, enabled=enabled)}
    )


@final
class SchedulingEnvironment(gymnasium.Env[ObservedArrays, Any]):
    """Plays a workload, an episode after the other; an agent chooses each pod's node, or the weights of the scores.

    Observations have `max_nodes` rows, one for each node in the order in which the scheduler visits them, and then rows
    of zeros:

    - `nodes`, (max_nodes, 2 R): per resource what the node has, as a part of the largest node's; then the part of it
      that is free.
    - `feasible`, (max_nodes,): 1 where the pod may go. It is also `info["action_mask"]`.
    - `scores`, (max_nodes, P): per plugin the normalised score of feasible nodes, 0 to 1.
    - `pod`, (R,): what the pod requests, as a part of the largest node's.

    State: the episode, and the progress at its last step.
    """

    def __init__(
        self,
        workload: Workload | str | Path,
        *,
        action: Literal["node", "weights"] = "node",
        configuration: Configuration | None = None,
        reward: Reward = allocation,
        max_nodes: int | None = None,
        only: str | None = None,
    ) -> None:
        """Begins an episode, to learn which nodes, resources and plugins there are.

        Arguments:
            workload: what is played, or the path of a file or folder as `reprieve simulate` reads it.
            action: "node", the row of a node; with one that is not feasible the scheduler chooses, and
                `info["is_valid"]` is false at the next step. Or "weights", from -1 to 1 for each score plugin: the node
                with the highest sum of weighted scores is chosen.
            configuration: of the scheduler; None for the workload's own, or the default one.
            max_nodes: the number of rows; None for the number of nodes at the first step.
            only: the name of the workload, in a file with several.

        Raises:
            WorkloadError: it cannot be played, or no pod has a choice.
        """
        self._workload = workload if isinstance(workload, Workload) else _one_of(Path(workload), only)
        self._configuration = configuration or self._workload.own_configuration or Configuration()
        self._acts_on_nodes = action == "node"
        self._reward = reward
        self._before: Progress | None = None
        self._is_valid = True
        self._episode: _Episode | None = None
        first = self._begin(0)
        snapshot = first.rows.snapshot
        self.max_nodes: Final = max_nodes or len(snapshot.nodes)
        offered = {name for node in snapshot.nodes.objects for name in node.status.allocatable} - {PODS}
        self.resources: Final = (CPU, MEMORY, *sorted(offered - {CPU, MEMORY}))
        self.score_plugins: Final = tuple(first.scores)
        rows, count = self.max_nodes, len(self.resources)
        self.observation_space: spaces.Space[Any] = spaces.Dict(
            {
                "nodes": spaces.Box(0.0, 1.0, (rows, 2 * count), np.float32),
                "feasible": spaces.MultiBinary(rows),
                "scores": spaces.Box(0.0, 1.0, (rows, len(self.score_plugins)), np.float32),
                "pod": spaces.Box(0.0, 1.0, (count,), np.float32),
            }
        )
        self.action_space = (
            spaces.Discrete(rows)
            if self._acts_on_nodes
            else spaces.Box(-1.0, 1.0, (len(self.score_plugins),), np.float32)
        )
        self.close()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObservedArrays, dict[str, Any]]:
        """Begins an episode. The seed is the workload's and the scheduler's; without one each episode has another."""
        super().reset(seed=seed)
        self.close()
        first = self._begin(int(self.np_random.integers(1 << 31)) if seed is None else seed)
        return self._observed(first), self._info(first)

    def step(self, action: Any) -> tuple[ObservedArrays, float, bool, bool, dict[str, Any]]:
        """Places the pod. The episode is over when the workload is; `info["report"]` is then what `reprieve simulate -o
        json` prints.
        """
        if self._episode is None or self._before is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        episode, before = self._episode, self._before
        episode.act(action)
        found = episode.next()
        self._before = found.progress if isinstance(found, _Choice) else episode.progress()
        reward = float(self._reward(before, self._before))
        if isinstance(found, _Choice):
            return self._observed(found), reward, False, False, self._info(found)
        self._episode = None
        return (
            self._arrays(),
            reward,
            True,
            False,
            {"is_valid": self._is_valid, "report": msgspec.to_builtins(found.report)},
        )

    def close(self) -> None:
        """Idempotent."""
        episode, self._episode = self._episode, None
        if episode is not None:
            episode.abandon()

    def _begin(self, seed: int) -> _Choice:
        self._episode = _Episode(self._workload, self._configuration, seed, self._chosen)
        first = self._episode.next()
        if isinstance(first, Played):
            self._episode = None
            raise WorkloadError(f"{self._workload.name}: no pod has several nodes to choose from")
        self._before, self._is_valid = first.progress, True
        return first

    def _chosen(self, choice: _Choice, action: Any) -> Int64s:
        """Returns (R,) the agent's scores; called in the play, while the agent waits."""
        chosen = np.zeros(len(choice.rows), np.int64)
        if self._acts_on_nodes:
            chosen[choice.rows.node == int(action)] = fwk.MAX_NODE_SCORE
            self._is_valid = bool(chosen.any())
        else:
            weights = np.asarray(action, np.float64)
            total = np.column_stack([choice.scores[name] for name in self.score_plugins]) @ weights
            # Equals stay equal, so that the scheduler's own scores choose among them.
            chosen[total >= total.max() - _NEARLY] = fwk.MAX_NODE_SCORE
        return chosen

    def _info(self, choice: _Choice) -> dict[str, Any]:
        nodes = choice.rows.snapshot.nodes.objects[: self.max_nodes]
        return {
            "pod": choice.pod.key,
            "node_names": [node.name for node in nodes],
            "action_mask": self._feasible(choice),
            "is_valid": self._is_valid,
            "progress": dataclasses.asdict(choice.progress),
        }

    def _feasible(self, choice: _Choice) -> NDArray[np.int8]:
        mask = np.zeros(self.max_nodes, np.int8)
        mask[choice.rows.node[choice.rows.node < self.max_nodes]] = 1
        return mask

    def _observed(self, choice: _Choice) -> ObservedArrays:
        snapshot, found, shown = choice.rows.snapshot, self._arrays(), choice.rows.node < self.max_nodes
        amounts = requested_amounts(choice.pod)
        nodes = Rows.of(snapshot)
        for place, name in enumerate(self.resources):
            has = nodes.allocatable_of(name).astype(np.float64)
            free, largest = has - nodes.requested_of(name), max(float(has.max()), 1.0)
            found["nodes"][: len(has), place] = (has / largest)[: self.max_nodes]
            found["nodes"][: len(has), len(self.resources) + place] = np.clip(free / np.maximum(has, 1.0), 0.0, 1.0)[
                : self.max_nodes
            ]
            found["pod"][place] = min(amounts.get(name, 0) / largest, 1.0)
        for place, name in enumerate(self.score_plugins):
            found["scores"][choice.rows.node[shown], place] = choice.scores[name][shown]
        found["feasible"] = self._feasible(choice)
        return found

    def _arrays(self) -> ObservedArrays:
        rows, count = self.max_nodes, len(self.resources)
        return {
            "nodes": np.zeros((rows, 2 * count), np.float32),
            "feasible": np.zeros(rows, np.int8),
            "scores": np.zeros((rows, len(self.score_plugins)), np.float32),
            "pod": np.zeros(count, np.float32),
        }


def _one_of(path: Path, only: str | None) -> Workload:
    found = [workload for workload in read_workloads(path) if only in (None, workload.name)]
    if len(found) != 1:
        raise WorkloadError(f"{path}: {len(found)} workloads; give the name of one with `only`")
    return found[0]


gymnasium.register("reprieve/Scheduling-v0", entry_point=f"{__name__}:{SchedulingEnvironment.__name__}")
