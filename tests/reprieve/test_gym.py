"""Environments of Gymnasium: what an agent may do, what comes of it, and pods that are placed without time passing."""

import runpy
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from reprieve import Cluster, ReprieveError
from reprieve.gym import Progress, SchedulingEnvironment, TrialEnvironment
from tests.kit.tables import cases
from tests.reprieve.lab.simulation.test_environment import WORKLOAD, last_feasible, played
from tests.reprieve.test_library import ROOT, node, pod

SMALL = [
    *(node(f"node-{number}", cpu=str(4 + number)) for number in range(4)),
    pod("runs", "2", on="node-3"),
    *(pod(f"web-{number}", "1") for number in range(9)),
    *(pod(f"api-{number}", "500m", priority=10) for number in range(3)),
    pod("huge", "16"),
    pod("gated", schedulingGates=[{"name": "example.com/wait"}]),
]
Make = Callable[..., Any]


@pytest.fixture(params=["trial", "simulated"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """What makes either environment."""
    if request.param == "trial":
        return partial(TrialEnvironment, SMALL)
    (tmp_path / "small.yaml").write_text(WORKLOAD)
    return partial(SchedulingEnvironment, tmp_path / "small.yaml")


def zeros(info: dict[str, Any]) -> Any:
    return np.zeros(9)


# Both environments.


@pytest.mark.parametrize("action", ["node", "weights"])
def test_gymnasium_finds_nothing_wrong(action: Any) -> None:
    """With that in which time passes, see `test_environment.py`."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        environment = TrialEnvironment(SMALL, action=action)
        check_env(environment, skip_render_check=True)
    environment.close()


NO_NODES: list[Any] = [np.nan, 1.0, "1", None, True, [1], np.array([1]), np.array(1.0), -1, 4, 10**30, {}]
NO_WEIGHTS: list[Any] = [
    np.ones(2),
    np.full(9, np.nan),
    np.r_[np.zeros(8), np.inf],
    np.full(9, 1.5),
    np.zeros((9, 1)),
    0,
    None,
    ["1"] * 9,
    [[1], [2, 3]],
    np.ones(9, np.bool_),
    np.ones(9, np.complex128),
    np.full(9, np.iinfo(np.int64).min),
]


@pytest.mark.parametrize(("action", "wrong"), [("node", NO_NODES), ("weights", NO_WEIGHTS)])
def test_what_is_no_action_is_refused_and_changes_nothing(make: Make, action: str, wrong: list[Any]) -> None:
    environment = make(action=action)
    choose = last_feasible if action == "node" else zeros
    _, total, report = played(environment, 3, choose)
    _, first = environment.reset(seed=3)

    for wrong_action in wrong:
        with pytest.raises(ValueError):
            environment.step(wrong_action)

    assert len(environment.score_plugins) == 9 and environment.max_nodes == 4
    _, reward, is_over, _, info = environment.step(choose(first))
    while not is_over:
        _, more, is_over, _, info = environment.step(choose(info))
        reward += more
    assert (reward, info["report"]) == (total, report)
    environment.close()


@pytest.mark.parametrize(
    "wrong",
    [
        *({"action": action} for action in ("foo", "", None, 1, "Node")),
        *({"max_nodes": number} for number in (0, -1, 2.5, "4", float("nan"), True)),
    ],
    ids=str,
)
def test_environment_that_there_cannot_be_is_refused(make: Make, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        make(**wrong)


@pytest.mark.parametrize("action", ["node", "weights"])
@pytest.mark.parametrize("library", ["pickle", "cloudpickle"])
def test_equal_seeds_and_actions_give_equal_reports_in_a_copy_too(make: Make, action: str, library: str) -> None:
    environment, copied = make(action=action), import_module(library)
    environment.reset(seed=1)
    choose = last_feasible if action == "node" else zeros

    copy = copied.loads(copied.dumps(environment))

    with pytest.raises(gymnasium.error.ResetNeeded):
        copy.step(0)
    observations, total, report = played(environment, 5, choose)
    for other in (environment, copy):
        seen_again, *outcome = played(other, 5, choose)
        assert outcome == [total, report] and len(seen_again) == len(observations)
        for one, same in zip(observations, seen_again, strict=True):
            assert all(np.array_equal(one[name], same[name]) for name in one)
        other.close()


def test_an_agent_that_masks_actions_asks_for_the_feasible_nodes(make: Make) -> None:
    environment = make(max_nodes=6)
    assert environment.action_masks().all()

    observation, info = environment.reset(seed=0)
    is_over = False
    while not is_over:
        mask = environment.action_masks()
        assert mask.dtype == np.bool_ and mask.shape == (6,) and mask[:4].sum() > 1 and not mask[4:].any()
        assert np.array_equal(mask, info["action_mask"]) and np.array_equal(mask, observation["feasible"])
        observation, _, is_over, _, info = environment.step(int(np.flatnonzero(mask)[0]))

    assert environment.action_masks().all() and info["action_mask"].all()
    environment.close()


def test_vector_of_environments_is_played_by_masks_over_the_ends_of_episodes(make: Make) -> None:
    """Every environment has a choice at each step, also at the one that only begins its next episode."""
    environments = gymnasium.vector.SyncVectorEnv([make, make])
    _, infos = environments.reset(seed=[7, 8])
    ends = 0
    for _ in range(40):
        assert infos["action_mask"].any(1).all()
        _, _, over, _, infos = environments.step(infos["action_mask"].argmax(1))
        ends += int(over.sum())
    assert ends > 1
    environments.close()


@pytest.mark.slow
def test_processes_play_one_environment_each(make: Make) -> None:
    alone = make()
    environments = gymnasium.vector.AsyncVectorEnv([make, make], context="spawn")

    observations, infos = environments.reset(seed=[7, 8])
    masks = environments.call("action_masks")

    for place, seed in enumerate((7, 8)):
        observation, info = alone.reset(seed=seed)
        assert infos["pod"][place] == info["pod"] and np.array_equal(masks[place], alone.action_masks())
        assert all(np.array_equal(observations[name][place], observation[name]) for name in observation)
    environments.close()
    alone.close()


# Pods that are placed without time passing.


def test_environment_is_registered_by_its_name() -> None:
    environment = gymnasium.make("reprieve.gym:reprieve/Trial-v0", cluster=SMALL, action="weights")

    _, _, report = played(environment, 3, lambda info: environment.action_space.sample())

    assert (report["pods"], report["placed"], report["refused"]) == (14, 12, 2)
    assert sorted(report["refusals"], key=lambda refusal: str(refusal["message"])) == [
        {"message": "0/4 nodes are available: 4 Insufficient cpu.", "pods": 1},
        {"message": "waiting for scheduling gates: [example.com/wait]", "pods": 1},
    ]
    environment.close()


def test_every_step_is_one_of_a_trial() -> None:
    """The mask is what the Filters let pass, and a pod that is placed takes its room."""
    environment, pods = TrialEnvironment(SMALL), []
    with Cluster.load(SMALL).trial() as trial:
        _, info = environment.reset(seed=4)
        is_over = False
        while not is_over:
            nodes = trial.nodes(info["pod"])
            assert info["node_names"] == nodes.names
            assert np.array_equal(info["action_mask"], nodes.feasible)
            pods.append(info["pod"])
            row = last_feasible(info)
            assert trial.place(info["pod"], nodes.names[row]).node
            _, _, is_over, _, info = environment.step(row)
        last = trial.nodes()

    cpu = last.resources.index("cpu")
    assert info["report"]["allocated"]["cpu"] == last.requested[:, cpu].sum() / last.allocatable[:, cpu].sum()
    assert [name.startswith("default/api") for name in pods] == [True] * 3 + [False] * (len(pods) - 3)
    environment.close()


@pytest.mark.parametrize("action", ["node", "weights"])
def test_where_the_agent_does_not_choose_the_scheduler_does(action: Any) -> None:
    """With a row that is no node, and with the weights of the profile."""
    environment = TrialEnvironment(SMALL, action=action, max_nodes=5)
    double = {"NodeAffinity", "PodTopologySpread", "InterPodAffinity", "DynamicResources"}
    weights = {"TaintToleration": 3} | dict.fromkeys(double, 2)
    as_the_profile = np.array([weights.get(name, 1) for name in environment.score_plugins]) / 3

    cpu = environment.resources.index("cpu") + len(environment.resources)
    with Cluster.load(SMALL).trial() as trial:
        before, info = environment.reset(seed=2)
        while True:
            nodes = trial.nodes(info["pod"])
            after, _, is_over, _, then = environment.step(4 if action == "node" else as_the_profile)
            assert then["is_valid"] == (action == "weights")
            if is_over:
                break
            (chosen,) = np.flatnonzero(after["nodes"][:4, cpu] < before["nodes"][:4, cpu]).tolist()
            total = np.where(nodes.feasible, sum(nodes.scores.values()), -1)
            assert total[chosen] == total.max()
            assert trial.place(info["pod"], nodes.names[chosen]).node
            before, info = after, then
    environment.close()


def test_caller_chooses_which_pods_come() -> None:
    def three(names: Iterable[str], chance: np.random.Generator) -> list[str]:
        return ["web-2", "default/huge", *chance.permutation([name for name in names if "api" in name])[:1], "web-2"]

    environment = TrialEnvironment(SMALL, pods=three, reward=placed_more)

    infos = [environment.reset(seed=seed)[1]["pod"] for seed in range(3)]
    _, total, report = played(environment, 0, last_feasible)

    assert infos == ["default/web-2"] * 3
    assert (report["pods"], report["placed"], total) == (3, 2, 2)
    environment.close()
    with pytest.raises(ReprieveError, match="pod default/runs is not pending"):
        TrialEnvironment(SMALL, pods=lambda names, chance: ["runs"])


def placed_more(before: Progress, after: Progress) -> float:
    return after.placed - before.placed


def test_cluster_and_configuration_are_those_of_a_trial(tmp_path: Path) -> None:
    cluster = Cluster.load(SMALL)
    only_names = {"plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}}}
    configuration = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}

    environment = TrialEnvironment(cluster, configuration={**configuration, "profiles": [only_names]})

    assert environment.score_plugins == ("NodeResourcesFit",)
    played(environment, 1, last_feasible)
    with cluster.trial() as trial:
        assert sum(bool(on) for on in trial.pods.values()) == 1
    environment.close()
    with pytest.raises(ReprieveError, match="is no configuration"):
        TrialEnvironment(cluster, configuration=3)


@cases(
    "objects",
    ("one node", [node("only"), pod("web")]),
    ("no feasible node", [node("one"), node("other"), pod("huge", "16")]),
    ("no pod", [node("one"), node("other")]),
    ("no node", [pod("web")]),
)
def test_cluster_without_a_choice_is_refused(objects: list[dict[str, Any]]) -> None:
    with pytest.raises(ReprieveError, match="no pod has several nodes to choose from"):
        TrialEnvironment(objects)


def test_fewer_rows_than_nodes_are_refused() -> None:
    with pytest.raises(ValueError, match="max_nodes=3: the cluster has 4 nodes"):
        TrialEnvironment(SMALL, max_nodes=3)


@pytest.mark.parametrize("pods", [["default/web"], "default/web", 3], ids=str)
def test_pods_that_are_no_function_are_refused(pods: Any) -> None:
    with pytest.raises(ValueError, match="give a function that returns the names"):
        TrialEnvironment(SMALL, pods=pods)


@pytest.mark.slow
def test_the_example_learns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """On the sample of a GPU cluster, with fewer episodes than it has by default."""
    picture = tmp_path / "curve.png"
    arguments = ["--generations", "2", "--size", "6", "--seeds", "1", "--plot", str(picture)]
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["place_gpus.py", *arguments])

    runpy.run_path("examples/gym/place_gpus.py", run_name="__main__")

    lowest, highest, *generations = (
        float(word.rstrip("%")) for word in capsys.readouterr().out.split() if word.endswith("%")
    )
    assert lowest < highest and len(generations) == 2
    assert generations[-1] > lowest + 5
    assert picture.read_bytes().startswith(b"\x89PNG")
