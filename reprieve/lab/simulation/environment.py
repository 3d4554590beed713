"""A simulation as a Gymnasium environment.

An episode is a workload that is played by the real scheduler in virtual time. A step is a pod with several feasible
nodes; what pods with one node or none do, evictions and the passing of time, happens between steps. The play runs in a
thread of its own, which waits while the agent thinks, and on which the environment waits otherwise: only one of the two
runs, and equal seeds and actions give equal episodes.

Needs the extra `gym`.
"""

import dataclasses
import queue
import threading
from pathlib import Path
from typing import Any, Final, final

import gymnasium
import msgspec
import numpy as np

from extender.engine import framework as fwk
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.registry import Registry
from extender.engine.snapshot import Rows
from extender.engine.snapshot.axes import Int64s
from extender.values.config.configuration import Configuration, Profile
from extender.values.config.plugin_sets import PluginRef, PluginSet
from reprieve.lab.simulation import agent_environment as agents
from reprieve.lab.simulation.agent_environment import AGENT, AgentEnvironment, NodeChoice, Progress
from reprieve.lab.simulation.playing import Played, play
from reprieve.lab.simulation.report import SimulationReport
from reprieve.lab.simulation.scene import Scene
from reprieve.lab.simulation.sweeping import read_workloads
from reprieve.lab.simulation.workload import Workload, WorkloadError

_DECISIVE: Final = 1_000_000
"""A weight above the sum of all others, so that the agent's node wins."""
_TIMED: Final = ("decisions_per_second", "cpu_ms_per_pod", "wall_seconds", "phases")
"""The figures of a report that are of real time."""


@final
class _Episode:
    """A play in a thread. State: the queues between the two threads, its scene, and whether others are scored."""

    def __init__(self, workload: Workload, configuration: Configuration, seed: int) -> None:
        self._workload = workload
        self._configuration = configuration
        self._seed = seed
        self._is_abandoned = False
        self._scene: Scene
        self._is_scoring = False
        self._to_agent: queue.SimpleQueue[NodeChoice | Played | Exception] = queue.SimpleQueue()
        self._to_play: queue.SimpleQueue[Int64s] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._play, name="episode", daemon=True)
        self._thread.start()

    def next(self, ratings: Int64s | None = None) -> NodeChoice | Played:
        """Goes on with (R,) the agent's scores for the nodes of a choice. Returns the next one, or the play when it is
        over. Raises WorkloadError if it cannot be played.
        """
        if ratings is not None:
            self._to_play.put(ratings)
        outcome = self._to_agent.get()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def abandon(self) -> None:
        """Ends the play, which waits for an action."""
        self._is_abandoned = True
        self._to_play.put(np.zeros(0, np.int64))
        self._thread.join()

    def progress(self) -> Progress:
        """Returns how far the play has come. Call it while the play waits, or is over."""
        observation = self._scene.observation
        return Progress(
            observation.time(),
            len(observation.fates),
            observation.placed,
            observation.evicted,
            observation.expected_pods,
            observation.allocated(),
        )

    # In the thread of the play.

    def _play(self) -> None:
        episode = self

        @final
        class _Agent(fwk.ScorePlugin):
            """The plugin through which the agent chooses."""

            name = AGENT

            def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: Rows) -> Int64s:
                return episode._scored(state, rows)

        with_agent = dataclasses.replace(
            self._configuration, profiles=tuple(map(_with_agent, self._configuration.profiles))
        )
        try:
            plugins = Registry({**IN_TREE, AGENT: _Agent})
            outcome: Played | Exception = play(
                self._workload, with_agent, self._seed, plugins=plugins, begin=self._begin, keeps_decisions=False
            )
        except Exception as exc:
            outcome = exc
        self._to_agent.put(outcome)

    def _begin(self, scene: Scene) -> None:
        self._scene = scene

    def _scored(self, cycle: fwk.CycleState, rows: Rows) -> Int64s:
        """Returns (R,) the agent's ratings; 0 while the other plugins are scored."""
        nothing = np.zeros(len(rows), np.int64)
        if self._is_scoring or not isinstance(cycle, Cycle):
            return nothing
        self._is_scoring = True
        try:
            choice = NodeChoice.of(cycle, rows, self.progress())
        finally:
            self._is_scoring = False
        self._to_agent.put(choice)
        ratings = self._to_play.get()
        if self._is_abandoned:
            self._scene.scheduling.scheduler.stop()
        return nothing if self._is_abandoned else ratings


def _with_agent(profile: Profile) -> Profile:
    """Returns the profile with the agent's plugin, whose weight decides."""
    score = profile.plugins.get("score", PluginSet())
    enabled = (*score.enabled, PluginRef(AGENT, _DECISIVE))
    return dataclasses.replace(
        profile, plugins={**profile.plugins, "score": dataclasses.replace(score, enabled=enabled)}
    )


@final
class SchedulingEnvironment(AgentEnvironment):
    """Plays a workload, an episode after the other. See `AgentEnvironment`. State: the episode."""

    def __init__(
        self,
        workload: Workload | str | Path,
        *,
        action: agents.Action = "node",
        configuration: Configuration | None = None,
        reward: agents.Reward = agents.allocation,
        max_nodes: int | None = None,
        only: str | None = None,
    ) -> None:
        """Begins an episode, to learn which nodes, resources and plugins there are.

        Arguments:
            workload: what is played, or the path of a file or folder as `reprieve simulate` reads it.
            configuration: of the scheduler; None for the workload's own, or the default one.
            max_nodes: the number of rows; None for the number of nodes at the first step.
            only: the name of the workload, in a file with several.

        Raises:
            WorkloadError: it cannot be played, or no pod has a choice.
            ValueError: there is no such action, or no such number of rows.
        """
        super().__init__(action, reward, max_nodes)
        self._workload = workload if isinstance(workload, Workload) else _one_of(Path(workload), only)
        self._configuration = configuration or self._workload.own_configuration or Configuration()
        self._episode = _Episode(self._workload, self._configuration, 0)
        self._lay_out(self._first(), max_nodes)
        self.close()

    def close(self) -> None:
        """Idempotent."""
        self._choice = None
        self._episode.abandon()

    def _begin(self, seed: int | None) -> NodeChoice:
        self.close()
        chance = int(self.np_random.integers(1 << 31)) if seed is None else seed
        self._episode = _Episode(self._workload, self._configuration, chance)
        return self._first()

    def _first(self) -> NodeChoice:
        first = self._episode.next()
        if isinstance(first, Played):
            raise WorkloadError(f"{self._workload.name}: no pod has several nodes to choose from")
        return first

    def _placed(self, choice: NodeChoice, ratings: Int64s) -> NodeChoice | agents.Outcome:
        outcome = self._episode.next(ratings)
        return outcome if isinstance(outcome, NodeChoice) else (self._episode.progress(), _told(outcome.report))


def _told(report: SimulationReport) -> dict[str, Any]:
    """Returns a report without its figures of real time, and these: equal episodes have equal reports."""
    document = msgspec.to_builtins(report)
    timing = {name: document.pop(name) for name in _TIMED}
    document["assertions"] = [
        assertion for assertion in document["assertions"] if not assertion["text"].startswith(_TIMED)
    ]
    return {"report": document, "timing": timing}


def _one_of(path: Path, only: str | None) -> Workload:
    workloads = [workload for workload in read_workloads(path) if only in (None, workload.name)]
    if len(workloads) != 1:
        raise WorkloadError(f"{path}: {len(workloads)} workloads; give the name of one with `only`")
    return workloads[0]


gymnasium.register("reprieve/Scheduling-v0", entry_point=f"{__name__}:{SchedulingEnvironment.__name__}")
