"""What the Gymnasium environments have in common: spaces, observations, masks, and actions that are checked.

An episode asks for a choice after the other: a pod, and several nodes that all Filters let pass. Needs the extra `gym`.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle
from numpy.typing import NDArray

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.snapshot import Rows
from extender.engine.snapshot.axes import Int64s
from extender.values.objects.node import Node
from extender.values.objects.resource_amounts import requested_amounts
from extender.values.objects.resource_names import CPU, MEMORY, PODS

Floats: TypeAlias = NDArray[np.float32]
ObservedArrays: TypeAlias = dict[str, NDArray[Any]]
Action = Literal["node", "weights"]

AGENT: Final = "Agent"
"""The name of the plugin by which the agent chooses; the agent does not see it."""
_NEARLY: Final = 1e-6
"""Sums of weighted scores that differ by less are equal."""


@final
@dataclass(frozen=True, slots=True)
class Progress:
    """How far an episode has come, for rewards.

    Attributes:
        time: seconds of virtual time since the beginning; 0 where no time passes.
        arrived, placed, evicted: how many pods were so far.
        expected: how many pods are going to come; 0 if that is not known.
        allocated: resource -> the part of what the nodes have that is requested.
    """

    time: float
    arrived: int
    placed: int
    evicted: int
    expected: int
    allocated: Mapping[str, float]


Reward = Callable[[Progress, Progress], float]
"""Takes the progress before an action, and at the next step or at the end."""


def allocation(before: Progress, after: Progress) -> float:
    """Rewards what is allocated: the mean over the resources, so that an episode's rewards add up to the allocation at
    its end.
    """
    first, last = (
        sum(allocated.values()) / max(len(allocated), 1) for allocated in (before.allocated, after.allocated)
    )
    return last - first


def resources_of(nodes: Iterable[Node]) -> tuple[str, ...]:
    """Returns the names of what nodes offer, but for the number of pods."""
    offered = {name for node in nodes for name in node.status.allocatable} - {CPU, MEMORY, PODS}
    return CPU, MEMORY, *sorted(offered)


@final
@dataclass(frozen=True, slots=True)
class NodeChoice:
    """A pod and its feasible nodes, for the agent to choose among."""

    pod: fwk.Pod
    rows: Rows
    plugins: tuple[str, ...]
    scores: Floats
    """(R, P) the normalised scores, as parts of 1."""
    total: Int64s
    """(R,) the weighted sums by which the scheduler would choose."""
    progress: Progress

    @staticmethod
    def of(cycle: Cycle, rows: Rows, progress: Progress) -> "NodeChoice":
        """Returns the choice between rows that a cycle has filtered. Raises PluginError if one cannot be scored."""
        cycle.run_pre_score_plugins(rows)
        plugin_scores = cycle.run_score_plugins(rows)
        scorers = [scorer for scorer in cycle.framework.plugins.score if scorer.name != AGENT]
        scores = np.zeros((len(rows), len(scorers)), np.float32)
        for place, scorer in enumerate(scorers):
            if scorer.name in plugin_scores.weighted:
                scores[:, place] = plugin_scores.weighted[scorer.name] / (fwk.MAX_NODE_SCORE * scorer.weight)
        return NodeChoice(
            cycle.pod, rows, tuple(scorer.name for scorer in scorers), scores, plugin_scores.total, progress
        )


Outcome: TypeAlias = tuple[Progress, dict[str, Any]]
"""How an episode ended, and what `info` says then: `report`, which is equal for equal seeds and actions."""


class AgentEnvironment(EzPickle, gymnasium.Env[ObservedArrays, Any]):
    """An agent chooses each pod's node, or the weights of the scores, among several that are feasible. Equal seeds and
    actions give equal episodes.

    With `action="node"` it gives the row of a node; if that one is not feasible, the scheduler chooses, and
    `info["is_valid"]` is false at the next step. With `action="weights"` it gives -1 to 1 for each score plugin: the
    node with the highest sum of weighted scores is chosen. What is no action raises ValueError, and changes nothing.

    Observations have `max_nodes` rows, one for each node in the order in which the scheduler visits them, and then rows
    of zeros:

    - `nodes`, (max_nodes, 2 R): per resource what the node has, as a part of the largest node's; then the part of it
      that is free.
    - `feasible`, (max_nodes,): 1 where the pod may go. It is also `info["action_mask"]`, which is all ones at
      the end, for the action that a vector of environments asks for then and leaves out.
    - `scores`, (max_nodes, P): per plugin the normalised score of feasible nodes, 0 to 1.
    - `pod`, (R,): what the pod requests, as a part of the largest node's.

    A copy, also a pickled one, has the same arguments and no episode yet. State: the choice that waits for an action.
    """

    observation_space: spaces.Space[Any]
    max_nodes: int
    resources: tuple[str, ...]
    score_plugins: tuple[str, ...]

    def __new__(cls, *args: Any, **kwargs: Any) -> "AgentEnvironment":
        environment = super().__new__(cls)
        EzPickle.__init__(environment, *args, **kwargs)
        return environment

    def __init__(self, action: Action, reward: Reward, max_nodes: int | None) -> None:
        """Raises ValueError for an action or a number of rows that there cannot be."""
        if action not in ("node", "weights"):
            raise ValueError(f'action={action!r:.80}: it is "node" or "weights"')
        if max_nodes is not None and (type(max_nodes) is not int or max_nodes < 1):
            raise ValueError(f"max_nodes={max_nodes!r:.80}: give a whole number of at least 1")
        self._acts_on_nodes, self._reward = action == "node", reward
        self._choice: NodeChoice | None = None
        self._is_valid = True

    @abstractmethod
    def _begin(self, seed: int | None) -> NodeChoice:
        """Begins an episode with the chance of the seed, or another one than before."""

    @abstractmethod
    def _placed(self, choice: NodeChoice, ratings: Int64s) -> NodeChoice | Outcome:
        """Places the pod on one of the best rated rows, and goes on to the next choice or to the end."""

    def _lay_out(self, first: NodeChoice, max_nodes: int | None) -> None:
        """Sets the sizes and spaces, by the nodes and plugins of a choice."""
        nodes = first.rows.snapshot.nodes.objects
        self.max_nodes = rows = max_nodes or len(nodes)
        self.resources, self.score_plugins = resources_of(nodes), first.plugins
        count, plugins = len(self.resources), len(self.score_plugins)
        shapes = {"nodes": (rows, 2 * count), "scores": (rows, plugins), "pod": (count,)}
        boxes = {name: spaces.Box(0.0, 1.0, shape) for name, shape in shapes.items()}
        self.observation_space = spaces.Dict({**boxes, "feasible": spaces.MultiBinary(rows)})
        self._empty = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        self.action_space = spaces.Discrete(rows) if self._acts_on_nodes else spaces.Box(-1.0, 1.0, (plugins,))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[ObservedArrays, dict[str, Any]]:
        """Begins an episode. Without a seed each episode has another chance."""
        super().reset(seed=seed)
        self._choice, self._is_valid = None, True
        self._choice = first = self._begin(seed)
        return self._observed(first), self._info(first)

    def step(self, action: Any) -> tuple[ObservedArrays, float, bool, bool, dict[str, Any]]:
        """Places the pod. The episode is over when there are no more choices; `info["report"]` says what came of it."""
        choice = self._choice
        if choice is None:
            raise gymnasium.error.ResetNeeded("call reset() before step()")
        ratings = self._ratings(choice, action)
        self._choice = None  # an episode that fails is over
        outcome = self._placed(choice, ratings)
        progress = outcome.progress if isinstance(outcome, NodeChoice) else outcome[0]
        reward = float(self._reward(choice.progress, progress))
        if not isinstance(outcome, NodeChoice):
            ending = {"action_mask": self.action_masks().astype(np.int8), "is_valid": self._is_valid}
            return self._arrays(), reward, True, False, {**ending, **outcome[1]}
        self._choice = outcome
        return self._observed(outcome), reward, False, False, self._info(outcome)

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns (max_nodes,) the nodes where the pod may go, as MaskablePPO asks for it; all while no pod waits."""
        choice = self._choice
        return np.ones(self.max_nodes, np.bool_) if choice is None else self._feasible(choice).astype(np.bool_)

    def _ratings(self, choice: NodeChoice, action: Any) -> Int64s:
        """Returns (R,) ratings of the nodes by the action; equal ones leave the choice to the scheduler."""
        ratings = np.zeros(len(choice.rows), np.int64)
        if self._acts_on_nodes:
            row = np.asarray(action)
            if row.shape or row.dtype.kind not in "iu" or not 0 <= row < self.max_nodes:
                raise ValueError(f"action {action!r:.80}: give the row of a node, 0 to {self.max_nodes - 1}")
            ratings[choice.rows.node == row] = fwk.MAX_NODE_SCORE
            self._is_valid = bool(ratings.any())
            return ratings
        weights, count = np.asarray(action), len(self.score_plugins)
        is_real = weights.shape == (count,) and weights.dtype.kind in "fiu"
        if not is_real or not np.all(np.abs(weights := weights.astype(np.float64)) <= 1.0):
            raise ValueError(f"action {action!r:.80}: give {count} weights, from -1 to 1")
        total = choice.scores @ weights
        # Equals stay equal, so that the scheduler's own scores choose among them.
        ratings[total >= total.max() - _NEARLY] = fwk.MAX_NODE_SCORE
        return ratings

    def _info(self, choice: NodeChoice) -> dict[str, Any]:
        nodes = choice.rows.snapshot.nodes.objects[: self.max_nodes]
        return {
            "pod": choice.pod.key,
            "node_names": [node.name for node in nodes],
            "action_mask": self._feasible(choice),
            "is_valid": self._is_valid,
            "progress": {name: getattr(choice.progress, name) for name in Progress.__slots__},
        }

    def _feasible(self, choice: NodeChoice) -> NDArray[np.int8]:
        mask = np.zeros(self.max_nodes, np.int8)
        mask[choice.rows.node[choice.rows.node < self.max_nodes]] = 1
        return mask

    def _observed(self, choice: NodeChoice) -> ObservedArrays:
        arrays, nodes, amounts = self._arrays(), Rows.of(choice.rows.snapshot), requested_amounts(choice.pod)
        num_shown, count = min(len(nodes), self.max_nodes), len(self.resources)
        for place, name in enumerate(self.resources):
            has = nodes.allocatable_of(name).astype(np.float64)
            free, largest = has - nodes.requested_of(name), max(float(has.max()), 1.0)
            arrays["nodes"][:num_shown, place] = has[:num_shown] / largest
            arrays["nodes"][:num_shown, count + place] = np.maximum(free / np.maximum(has, 1.0), 0.0)[:num_shown]
            arrays["pod"][place] = min(amounts.get(name, 0) / largest, 1.0)
        is_shown = choice.rows.node < self.max_nodes
        arrays["scores"][choice.rows.node[is_shown]] = choice.scores[is_shown]
        arrays["feasible"] = self._feasible(choice)
        return arrays

    def _arrays(self) -> ObservedArrays:
        return {
            **{name: empty.copy() for name, empty in self._empty.items()},
            "feasible": np.zeros(self.max_nodes, np.int8),
        }
