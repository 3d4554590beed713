"""What may be set in a KubeSchedulerConfiguration, to which values, and the document that says so.

All of it is what kube-scheduler itself reads: whole weights of Score plugins, the scoring strategy of NodeResourcesFit
with its resources and shape, the resources that are balanced, the default constraints of PodTopologySpread, and the
percentage of nodes that are scored.
"""

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

from extender.engine.scheduler.schedule_pod import MIN_FEASIBLE_NODES_TO_FIND
from extender.values.config.completion import written
from extender.values.config.configuration import API_VERSION, KIND, Configuration
from extender.values.config.plugin_args import LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO
from extender.values.objects.node import HOSTNAME_LABEL, ZONE_LABEL
from extender.values.objects.resource_names import CPU, MEMORY

Document = dict[str, Any]
Candidate = tuple[int, ...]
"""For each setting: 0 if it stays as it is, else the place of its value, from 1."""

WEIGHTS: Final[Mapping[str, Sequence[int]]] = {
    "NodeResourcesFit": (1, 2, 5, 10, 20, 50),
    "NodeResourcesBalancedAllocation": (0, 1, 2, 5, 10),
    "ImageLocality": (0, 1, 2, 5),
    # What pods wish for keeps a weight.
    "PodTopologySpread": (1, 2, 5, 10),
    "InterPodAffinity": (1, 2, 5, 10),
    "NodeAffinity": (1, 2, 5, 10),
    "TaintToleration": (1, 3, 5, 10),
}
SHAPES: Final[Mapping[str, Sequence[tuple[int, int]]]] = {
    "the fuller the better": ((0, 0), (100, 10)),
    "full ones much better": ((0, 0), (50, 1), (80, 4), (100, 10)),
    "not the empty ones": ((0, 0), (50, 9), (100, 10)),
    "full or empty": ((0, 4), (50, 0), (100, 10)),
    "nearly full": ((0, 0), (80, 10), (100, 5)),
}
CONSTRAINTS: Final[Mapping[str, Sequence[str]]] = {
    "none": (),
    "over hosts": (HOSTNAME_LABEL,),
    "over zones": (ZONE_LABEL,),
    "over zones and hosts": (ZONE_LABEL, HOSTNAME_LABEL),
}
PERCENTAGES: Final = (50, 20, 10, 5)


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """Something that may be set in a profile."""

    name: str
    values: Mapping[str, Any]
    """Words -> argument of `apply`."""
    apply: Callable[[Document, Any], None]


@final
class Space:
    """Every configuration that may be tried: the present one, with other values of some settings."""

    def __init__(self, present: Configuration | None, resources: Sequence[str], nodes: int) -> None:
        """`resources` are those that a strategy may weigh beside CPU and memory."""
        self._present: Document = (
            {"apiVersion": API_VERSION, "kind": KIND, "profiles": [{"schedulerName": "default-scheduler"}]}
            if present is None
            else written(present)
        )
        profile = (present or Configuration()).profiles[0]
        weights = {
            ref.name: ref.weight or 1 for point in ("multiPoint", "score") for ref in profile.plugins[point].enabled
        }
        strategies: dict[str, Any] = {kind: (kind, None) for kind in (MOST_ALLOCATED, LEAST_ALLOCATED)}
        strategies |= {
            f"{REQUESTED_TO_CAPACITY_RATIO}: {words}": (REQUESTED_TO_CAPACITY_RATIO, shape)
            for words, shape in SHAPES.items()
        }
        self.settings: Final = [
            Setting("NodeResourcesFit strategy", strategies, _set_strategy),
            Setting("NodeResourcesFit resources", _weighed(resources), _set_resources),
            Setting("NodeResourcesBalancedAllocation resources", _balanced(resources), _set_balanced),
            *(
                Setting(
                    f"{name} weight", {str(to): to for to in options if to != weights[name]}, partial(_set_weight, name)
                )
                for name, options in WEIGHTS.items()
                if name in weights
            ),
            Setting("PodTopologySpread constraints", CONSTRAINTS, _set_constraints),
            Setting(
                "percentageOfNodesToScore",
                {str(part): part for part in PERCENTAGES if nodes > MIN_FEASIBLE_NODES_TO_FIND},
                lambda profile, part: profile.update(percentageOfNodesToScore=part),
            ),
        ]
        self.unchanged: Final[Candidate] = (0,) * len(self.settings)

    def packing(self) -> Candidate:
        """Returns the common choice for a cluster that should be packed: MostAllocated, of the first resource."""
        return (1, 1, *self.unchanged[2:])

    def beginning(self) -> list[Candidate]:
        """Returns candidates that differ much: each strategy, of the first resource and of CPU and memory with it."""
        strategies = range(1, len(self.settings[0].values) + 1)
        return [(strategy, resources, *self.unchanged[2:]) for strategy in strategies for resources in (1, 2)]

    def document(self, candidate: Candidate) -> Document:
        """Returns the configuration, with the percentage of nodes spelled out: 0 means another one elsewhere."""
        document = copy.deepcopy(self._present)
        for profile in document["profiles"]:
            if not profile.get("percentageOfNodesToScore") and not document.get("percentageOfNodesToScore"):
                profile["percentageOfNodesToScore"] = 100
            for setting, place in zip(self.settings, candidate, strict=True):
                if place:
                    setting.apply(profile, [*setting.values.values()][place - 1])
        return document

    def words(self, candidate: Candidate) -> dict[str, str]:
        """Returns the candidate's values by the names of the settings."""
        pairs = zip(self.settings, candidate, strict=True)
        return {setting.name: [*setting.values][place - 1] for setting, place in pairs if place}


def changes(candidate: Candidate) -> int:
    return sum(map(bool, candidate))


def _weighed(resources: Collection[str]) -> dict[str, dict[str, int]]:
    weightings: list[dict[str, int]] = [{name: 1} for name in resources]
    for name in resources:
        weightings += [{CPU: 1, MEMORY: 1, name: 1}, {CPU: 1, MEMORY: 1, name: 10}, {CPU: 1, name: 1}]
    weightings += [{CPU: 1, MEMORY: 1}, {CPU: 1}, {MEMORY: 1}]
    return {", ".join(f"{name} {weight}" for name, weight in weights.items()): weights for weights in weightings}


def _balanced(resources: Collection[str]) -> dict[str, Sequence[str]]:
    extended = [name for name in resources if name not in (CPU, MEMORY)]
    return {", ".join(names): names for names in ([CPU, MEMORY, *extended], [CPU, *extended]) if extended}


def _set_balanced(profile: Document, resources: Sequence[str]) -> None:
    _args(profile, "NodeResourcesBalancedAllocation")["resources"] = [{"name": name, "weight": 1} for name in resources]


def _set_weight(plugin: str, profile: Document, weight: int) -> None:
    score = profile.setdefault("plugins", {}).setdefault("score", {})
    for name, added in (("enabled", {"name": plugin, "weight": weight}), ("disabled", {"name": plugin})):
        references = [reference for reference in score.pop(name, ()) if reference["name"] != plugin]
        if references := [*references, *([added] if bool(weight) is (name == "enabled") else [])]:
            score[name] = references


def _args(profile: Document, plugin: str) -> Document:
    """Returns the arguments of the plugin, to be changed."""
    configs = profile.setdefault("pluginConfig", [])
    if all(config["name"] != plugin for config in configs):
        configs.append({"name": plugin, "args": {}})
    args: Document = next(config["args"] for config in configs if config["name"] == plugin)
    return args


def _set_strategy(profile: Document, chosen: tuple[str, Sequence[tuple[int, int]] | None]) -> None:
    kind, shape = chosen
    strategy = _args(profile, "NodeResourcesFit").setdefault("scoringStrategy", {})
    strategy.pop("requestedToCapacityRatio", None)
    strategy["type"] = kind
    if shape is not None:
        points = [{"utilization": utilization, "score": score} for utilization, score in shape]
        strategy["requestedToCapacityRatio"] = {"shape": points}


def _set_resources(profile: Document, weights: Mapping[str, int]) -> None:
    strategy = _args(profile, "NodeResourcesFit").setdefault("scoringStrategy", {"type": LEAST_ALLOCATED})
    strategy["resources"] = [{"name": name, "weight": weight} for name, weight in weights.items()]


def _set_constraints(profile: Document, keys: Sequence[str]) -> None:
    constraints = [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"} for key in keys]
    args = _args(profile, "PodTopologySpread")
    args |= {"defaultingType": "List", "defaultConstraints": constraints}
