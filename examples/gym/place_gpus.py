"""Learns where pods of a GPU cluster go, such that more of its GPUs get used: a policy that weighs what an agent sees
of each node, and CMA-ES, which searches its weights.

    pip install '.[gym]' cma  # in a clone
    python examples/gym/place_gpus.py                                     # the sample of a GPU cluster, two minutes
    python examples/gym/place_gpus.py FOLDER --generations 40             # such as cluster-trace-gpu-v2023

Pods come in an order that the seed shuffles, until they have asked for as many GPUs as there are. What was learned is
compared, on seeds that were not learned from, with the two strategies of the scheduler.
"""

import argparse
import csv
import gzip
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reprieve import Cluster
from reprieve.gym import Progress, TrialEnvironment

GPU = "alibabacloud.com/gpu-milli"
HELD_OUT = 1000
"""Seeds from here on are not learned from."""


# The cluster.


def rows(folder: Path, name: str) -> Iterator[dict[str, str]]:
    file = next(path for end in (".csv", ".csv.gz") if (path := folder / f"{name}{end}").exists())
    with (gzip.open if file.suffix == ".gz" else open)(file, "rt") as lines:
        yield from csv.DictReader(lines)


def node(row: dict[str, str]) -> dict[str, Any]:
    offers = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi", "pods": "250"}
    if int(row["gpu"]):
        offers[GPU] = str(1000 * int(row["gpu"]))
    labels = {"gpu": row["model"]} if row["model"] else {}
    return {"kind": "Node", "metadata": {"name": row["sn"], "labels": labels}, "status": {"allocatable": offers}}


def asked(row: dict[str, str]) -> int:
    return int(row["num_gpu"]) * int(row["gpu_milli"] or 0)


def pod(row: dict[str, str]) -> dict[str, Any]:
    asks = {"cpu": f"{row['cpu_milli']}m", "memory": f"{row['memory_mib']}Mi"}
    if asked(row):
        asks[GPU] = str(asked(row))
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "trace", "resources": {"requests": asks}}]}
    if row["gpu_spec"]:
        models = {"key": "gpu", "operator": "In", "values": row["gpu_spec"].split("|")}
        required = {"nodeSelectorTerms": [{"matchExpressions": [models]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"kind": "Pod", "metadata": {"name": row["name"], "uid": row["name"]}, "spec": spec}


def objects(folder: Path) -> list[dict[str, Any]]:
    return [*map(node, rows(folder, "nodes")), *map(pod, rows(folder, "pods"))]


class UntilFull:
    """Pods in any order, until they have asked for as many GPUs as there are."""

    def __init__(self, folder: Path) -> None:
        self.gpus = sum(1000 * int(row["gpu"]) for row in rows(folder, "nodes"))
        self.asked = {f"default/{row['name']}": asked(row) for row in rows(folder, "pods")}

    def __call__(self, names: Sequence[str], chance: np.random.Generator) -> Iterable[str]:
        order = chance.permutation(np.array(names)).tolist()
        before = np.cumsum([0, *(self.asked[name] for name in order)])
        return order[: int(np.searchsorted(before, self.gpus))]


# The policy.


def gpus(before: Progress, after: Progress) -> float:
    """The reward: how much more of the GPUs is allocated. Rewards of an episode add up to what is, at its end."""
    return after.allocated[GPU] - before.allocated[GPU]


def features(observation: dict[str, np.ndarray]) -> np.ndarray:
    """(N, F) what is known of each node: scores of plugins, what is free, and what would be left beside the pod."""
    size, free = np.split(observation["nodes"], 2, axis=1)
    left = np.maximum(size * free - observation["pod"], 0.0)
    return np.hstack([observation["scores"], size, free, left, left > 0, left**2])


def chosen(weights: np.ndarray, observation: dict[str, np.ndarray]) -> int:
    """The feasible node that is worth most."""
    worth = features(observation) @ weights
    return int(np.where(observation["feasible"], worth, -np.inf).argmax())


def played(environment: TrialEnvironment, weights: np.ndarray, seed: int) -> float:
    """The GPUs that are allocated after an episode with these weights."""
    observation, _ = environment.reset(seed=seed)
    total, is_over = 0.0, False
    while not is_over:
        observation, reward, is_over, _, _ = environment.step(chosen(weights, observation))
        total += reward
    return total


def scheduled(cluster: Cluster, pods: UntilFull, strategy: str, seed: int) -> float:
    """What the scheduler brings with one of its strategies."""
    resources = [{"name": GPU, "weight": 10}, {"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    args = {"scoringStrategy": {"type": strategy, "resources": resources}}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}],
    }
    with cluster.trial(configuration) as trial:
        trial.schedule(pods(list(trial.pods), np.random.default_rng(seed)))
        nodes = trial.nodes()
    column = nodes.resources.index(GPU)
    return float(nodes.requested[:, column].sum() / nodes.allocatable[:, column].sum())


def main() -> None:
    import cma  # noqa: PLC0415 - what the cluster is can be known without it

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", nargs="?", type=Path, default=Path("examples/workloads/gpu-sample"))
    options.add_argument("--generations", type=int, default=20)
    options.add_argument("--size", type=int, default=12, help="vectors of weights in a generation")
    options.add_argument("--seeds", type=int, default=5, help="for the comparison")
    options.add_argument("--plot", type=Path, help="a picture of the curve; needs matplotlib")
    given = options.parse_args()

    pods = UntilFull(given.folder)
    cluster = Cluster.load(objects(given.folder))
    environment = TrialEnvironment(cluster, pods=pods, reward=gpus)
    held_out = range(HELD_OUT, HELD_OUT + given.seeds)
    lines = {
        strategy: float(np.mean([scheduled(cluster, pods, strategy, seed) for seed in held_out]))
        for strategy in ("LeastAllocated", "MostAllocated")
    }
    for strategy, share in lines.items():
        print(f"{strategy}: {share:.1%} of the GPUs over {given.seeds} seeds", flush=True)

    observation, _ = environment.reset(seed=0)
    search = cma.CMAEvolutionStrategy(
        np.zeros(features(observation).shape[1]), 0.5, {"popsize": given.size, "seed": 1, "verbose": -9}
    )
    curve = []
    for generation in range(given.generations):
        tried = search.ask()
        # All vectors of a generation meet the same pods.
        search.tell(tried, [-played(environment, weights, generation + 1) for weights in tried])
        curve.append(float(np.mean([played(environment, search.mean, seed) for seed in held_out])))
        print(f"generation {generation + 1}: {curve[-1]:.1%} over the seeds not learned from", flush=True)
    if given.plot:
        draw(given.plot, curve, lines, given.size)
    environment.close()


def draw(file: Path, curve: Sequence[float], lines: dict[str, float], size: int) -> None:
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    axes.plot(np.arange(1, len(curve) + 1) * size, np.array(curve) * 100, color="#2a6f97", label="learned")
    for (strategy, share), style in zip(lines.items(), (":", "--"), strict=True):
        axes.axhline(share * 100, color="0.4", linestyle=style, label=strategy)
    axes.set(xlabel="episodes", ylabel="GPUs allocated, %")
    axes.legend(frameon=False)
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
