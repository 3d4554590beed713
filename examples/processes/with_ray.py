"""The CPU that is left as one node after the other goes: tasks share the cluster. `pip install ray`"""

from pathlib import Path

import ray

from reprieve import Cluster

CLUSTER = Path(__file__).parents[1] / "clusters" / "three-nodes.yaml"


@ray.remote
def cpu_left(cluster: Cluster, node: str) -> int:
    with cluster.trial() as trial:
        trial.remove(nodes=node)
        trial.schedule()
        nodes = trial.nodes()
        return int((nodes.allocatable - nodes.requested)[:, 0].sum())


if __name__ == "__main__":
    cluster = Cluster.load(CLUSTER)
    names = cluster.trial().nodes().names
    sent = ray.put(cluster)
    for name, left in zip(names, ray.get([cpu_left.remote(sent, name) for name in names]), strict=True):
        print(f"without {name}: {left} millicores")
