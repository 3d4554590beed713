"""Which node could go: each process drains some of them, in a copy of the cluster that it is sent once."""

import multiprocessing
from pathlib import Path

from reprieve import Cluster, Trial

CLUSTER = Path(__file__).parents[1] / "clusters" / "three-nodes.yaml"
trial: Trial


def begin(cluster: Cluster) -> None:
    global trial  # noqa: PLW0603 - a process of a pool keeps what it begins with nowhere else
    trial = cluster.trial()


def pods_left_over(node: str) -> tuple[str, int]:
    with trial.step():
        trial.drain(node)
        waiting = sum(not placed.node for placed in trial.schedule())
    trial.undo()
    return node, waiting


if __name__ == "__main__":
    cluster = Cluster.load(CLUSTER)
    nodes = cluster.trial().nodes().names
    with multiprocessing.get_context("spawn").Pool(2, begin, [cluster]) as pool:
        for node, waiting in pool.map(pods_left_over, nodes):
            print(f"without {node} {waiting} pods have no place")
