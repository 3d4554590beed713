"""The Gymnasium environment: an agent chooses, and the real scheduler does the rest."""

import runpy
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from extender.values.config.configuration import Configuration
from reprieve.gym import Progress, SchedulingEnvironment
from reprieve.lab.simulation.playing import play
from reprieve.lab.simulation.sweeping import read_workloads
from reprieve.lab.simulation.workload import WorkloadError

ROOT = Path(__file__).parents[4]
WORKLOAD = """
name: small
nodes:
  - {name: large, count: 2, cpu: 8, memory: 16Gi}
  - {name: gpu, count: 2, cpu: 8, memory: 16Gi, resources: {example.com/gpu: 4}}
pods:
  - {name: web, count: 6, cpu: 2, memory: 1Gi}
  - {name: late, rate: 0.02, for: 20m, cpu: 2, runsFor: {mean: 5m}}
  - {name: train, at: 10m, count: 3, cpu: 1, resources: {example.com/gpu: 2}}
"""


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(WORKLOAD)
    return file


def played(environment: gymnasium.Env[Any, Any], seed: int, choose: Any) -> tuple[list[Any], float, dict[str, Any]]:
    """What an episode showed, brought and reported, with the node or weights that `choose` takes from the last info."""
    observation, info = environment.reset(seed=seed)
    observations, total, is_over = [observation], 0.0, False
    while not is_over:
        observation, reward, is_over, _, info = environment.step(choose(info))
        observations.append(observation)
        total += float(reward)
    return observations, total, info["report"]


def last_feasible(info: dict[str, Any]) -> int:
    return int(np.flatnonzero(info["action_mask"])[-1])


@pytest.mark.slow
@pytest.mark.parametrize("action", ["node", "weights"])
def test_gymnasium_finds_nothing_wrong(workload: Path, action: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        environment = SchedulingEnvironment(workload, action=action)
        check_env(environment, skip_render_check=True)
    environment.close()


def test_environment_is_registered_by_its_name(workload: Path) -> None:
    environment = gymnasium.make(
        "reprieve.lab.simulation.environment:reprieve/Scheduling-v0", workload=str(workload), action="weights"
    )

    _, _, report = played(environment, 3, lambda info: environment.action_space.sample())

    assert report["placed"] > 0
    environment.close()


def test_a_pod_goes_to_the_node_that_the_agent_chooses(workload: Path) -> None:
    environment = SchedulingEnvironment(workload)
    _, first = environment.reset(seed=0)
    chosen = last_feasible(first)

    observation, *_, then = environment.step(chosen)

    free = observation["nodes"][:, len(environment.resources) + environment.resources.index("cpu")]
    assert then["is_valid"]
    assert free[chosen] == pytest.approx(0.75) and sorted(free)[1:] == [1.0] * 3
    environment.close()


def test_scheduler_chooses_another_node_when_the_chosen_one_is_not_feasible(workload: Path) -> None:
    environment = SchedulingEnvironment(workload, max_nodes=6)
    environment.reset(seed=0)

    observation, *_, info = environment.step(5)

    assert not info["is_valid"]
    assert observation["feasible"].tolist() == [1, 1, 1, 1, 0, 0]
    assert observation["nodes"][4:].sum() == 0
    environment.close()


@pytest.mark.slow
def test_equal_seeds_and_actions_give_equal_episodes(workload: Path) -> None:
    environment = SchedulingEnvironment(workload)

    (first, total, report), (second, total_again, report_again) = (
        played(environment, 5, last_feasible) for _ in range(2)
    )

    assert (total, len(first)) == (total_again, len(second))
    assert all(np.array_equal(one[name], other[name]) for one, other in zip(first, second, strict=True) for name in one)
    assert report["waiting"] == report_again["waiting"] and report["placed"] == report_again["placed"]
    assert played(environment, 6, last_feasible)[2]["pods"] != report["pods"]


def test_with_the_weights_of_the_profile_it_is_the_simulation(workload: Path) -> None:
    """Sums of normalised scores, weighted as the profile does, choose the nodes that the scheduler would."""
    environment = SchedulingEnvironment(workload, action="weights")
    of_two = ("NodeAffinity", "PodTopologySpread", "InterPodAffinity", "DynamicResources")
    weights = {"TaintToleration": 3, **dict.fromkeys(of_two, 2)}
    as_the_profile = np.array([weights.get(name, 1) / 3 for name in environment.score_plugins], np.float32)

    _, _, report = played(environment, 2, lambda info: as_the_profile)

    expected = play(read_workloads(workload)[0], Configuration(), 2).report
    assert (report["placed"], report["attempts"], report["allocated"]) == (
        expected.placed,
        expected.attempts,
        expected.allocated,
    )
    assert report["utilisation"] == {
        name: {"mean": use.mean, "peak": use.peak} for name, use in expected.utilisation.items()
    }


def test_rewards_are_what_the_user_makes_of_the_progress(workload: Path) -> None:
    def placed(before: Progress, after: Progress) -> float:
        return after.placed - before.placed

    environment = SchedulingEnvironment(workload, reward=placed)

    _, total, report = played(environment, 0, last_feasible)

    assert total == report["placed"]


def test_an_episode_that_is_given_up_leaves_nothing_behind(workload: Path, capfd: pytest.CaptureFixture[str]) -> None:
    environment = SchedulingEnvironment(workload)
    for seed in range(3):
        environment.reset(seed=seed)
        environment.step(0)
    environment.close()

    assert not [thread for thread in threading.enumerate() if thread.name == "episode"]
    assert capfd.readouterr().err == ""
    with pytest.raises(gymnasium.error.ResetNeeded):
        environment.step(0)


def test_a_workload_without_a_choice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(
        "name: one\nnodes: {name: only, count: 1, cpu: 4}\npods: [{name: web, count: 2, cpu: 1}]\n"
    )

    with pytest.raises(WorkloadError, match="no pod has several nodes"):
        SchedulingEnvironment(tmp_path / "one.yaml")


@pytest.mark.slow
def test_the_example_learns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On the sample of a GPU cluster, with fewer episodes than it has by default."""
    arguments = ["examples/workloads/gpu-sample", "--rounds", "2", "--size", "8", "--seeds", "1"]
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["learn_weights.py", *arguments])

    runpy.run_path("examples/gym/learn_weights.py", run_name="__main__")

    before, after = (
        float(word.rstrip("%")) for word in capsys.readouterr().out.splitlines()[-1].split() if word.endswith("%")
    )
    assert after > before + 5
