"""What `tune` may set: only what kube-scheduler reads, and with the effect that the words promise."""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest
import yaml

from extender.engine.plugins import IN_TREE
from extender.engine.runtime.registry import Registry
from extender.values.config.configuration import Configuration
from extender.values.config.loading import load
from extender.values.config.plugin_args import NodeResourcesFitArgs, PodTopologySpreadArgs
from reprieve.lab.tuning.settings import Candidate, Space

GPU = "nvidia.com/gpu"
OWN = load(
    """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 30
profiles:
- schedulerName: one
  plugins: {score: {enabled: [{name: ImageLocality, weight: 7}], disabled: [{name: NodeAffinity}]}}
  pluginConfig:
  - {name: NodeResourcesFit, args: {ignoredResources: [example.com/a]}}
- schedulerName: two
"""
)


def space(present: Configuration | None = None, nodes: int = 500) -> Space:
    return Space(present, [GPU], nodes)


def chosen(grid: Space, **values: str) -> Candidate:
    """The candidate with these values, by the beginnings of the settings' names."""
    positions = []
    for setting in grid.settings:
        name = next((key for key in values if setting.name.replace(" ", "_").startswith(key)), None)
        positions.append([*setting.values].index(values[name]) + 1 if name else 0)
    return tuple(positions)


def loaded(grid: Space, candidate: Candidate) -> Configuration:
    """What kube-scheduler's rules make of the file, profiles included."""
    configuration = load(yaml.safe_dump(grid.document(candidate)))
    assert configuration == load(json.dumps(grid.document(candidate)))
    Registry(IN_TREE).make_frameworks(configuration, random.Random())
    return configuration


@pytest.mark.parametrize("present", [None, OWN], ids=["default", "own"])
def test_each_value_is_one_that_kube_scheduler_takes(present: Configuration | None) -> None:
    grid = space(present)

    for place, setting in enumerate(grid.settings):
        for value in range(1, len(setting.values) + 1):
            loaded(grid, (*grid.unchanged[:place], value, *grid.unchanged[place + 1 :]))


def test_many_values_together_are_taken_too() -> None:
    grid, chance = space(), random.Random(1)

    for _ in range(30):
        loaded(grid, tuple(chance.randint(0, len(setting.values)) for setting in grid.settings))


@pytest.mark.skipif(not os.environ.get("REPRIEVE_KUBE_SCHEDULER"), reason="REPRIEVE_KUBE_SCHEDULER names no binary")
def test_a_real_kube_scheduler_takes_the_file(tmp_path: Path) -> None:
    """With --write-config-to it makes its profiles, writes what it would run, and ends."""
    grid, chance = space(), random.Random(2)
    client, file, wrote = tmp_path / "kubeconfig", tmp_path / "tuned.yaml", tmp_path / "wrote.yaml"
    client.write_text(
        "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], "
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], users: [{name: u, user: {}}]}"
    )
    document = grid.document(tuple(chance.randint(1, len(setting.values)) for setting in grid.settings))
    file.write_text(yaml.safe_dump({**document, "clientConnection": {"kubeconfig": str(client)}}))

    done = subprocess.run(
        [os.environ["REPRIEVE_KUBE_SCHEDULER"], "--config", str(file), "--write-config-to", str(wrote)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, yaml.safe_load(wrote.read_text())["kind"]) == (0, document["kind"]), done.stderr


def test_a_weight_of_nothing_leaves_out_the_score_only() -> None:
    grid = space()
    candidate = chosen(grid, NodeResourcesBalancedAllocation_weight="0", NodeResourcesFit_weight="20")
    [framework] = Registry(IN_TREE).make_frameworks(loaded(grid, candidate), random.Random()).values()

    weights = {scorer.name: scorer.weight for scorer in framework.plugins.score}
    assert "NodeResourcesBalancedAllocation" not in weights
    assert weights["NodeResourcesFit"] == 20
    assert weights["TaintToleration"] == 3
    assert "NodeResourcesFit" in [name for name, _ in framework.plugins.filter]


def test_what_is_not_set_stays_as_it_was() -> None:
    grid = space(OWN)
    configuration = loaded(grid, chosen(grid, NodeResourcesFit_strategy="MostAllocated"))

    one, two = configuration.profiles
    assert (one.scheduler_name, two.scheduler_name) == ("one", "two")
    assert configuration.percentage_of_nodes_to_score == 30
    for profile, ignored in ((one, ("example.com/a",)), (two, ())):
        args = profile.plugin_config["NodeResourcesFit"]
        assert isinstance(args, NodeResourcesFitArgs) and args.scoring_strategy is not None
        assert (args.scoring_strategy.type, args.ignored_resources) == ("MostAllocated", ignored)
    assert [ref.weight for ref in one.plugins["score"].enabled if ref.name == "ImageLocality"] == [7]


def test_all_nodes_are_scored_unless_a_part_of_them_is_chosen() -> None:
    grid = space()

    assert loaded(grid, grid.unchanged).profiles[0].percentage_of_nodes_to_score == 100
    assert loaded(grid, chosen(grid, percentageOfNodesToScore="20")).profiles[0].percentage_of_nodes_to_score == 20
    assert not space(nodes=100).settings[-1].values


def test_constraints_are_those_that_the_words_say() -> None:
    grid = space()
    args = (
        loaded(grid, chosen(grid, PodTopologySpread_constraints="over zones"))
        .profiles[0]
        .plugin_config["PodTopologySpread"]
    )

    assert isinstance(args, PodTopologySpreadArgs)
    assert (args.defaulting_type, [constraint.topology_key for constraint in args.default_constraints]) == (
        "List",
        ["topology.kubernetes.io/zone"],
    )


def test_what_differs_is_told_by_name_and_value() -> None:
    grid = space()
    packed = chosen(grid, NodeResourcesFit_strategy="MostAllocated", NodeResourcesFit_resources=f"{GPU} 1")

    assert packed == grid.packing()
    assert grid.words(packed) == {
        "NodeResourcesFit strategy": "MostAllocated",
        "NodeResourcesFit resources": f"{GPU} 1",
    }
    assert grid.words(grid.unchanged) == {}
