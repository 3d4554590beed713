"""How many pods of several sizes fit: each task has the cluster and a part of the sizes. `pip install joblib`"""

from pathlib import Path

from joblib import Parallel, delayed

from reprieve import Cluster

CLUSTER = Path(__file__).parents[1] / "clusters" / "three-nodes.yaml"


def room(cluster: Cluster, sizes: list[str]) -> dict[str, int]:
    with cluster.trial() as trial:
        return {cpu: trial.fits(pod(cpu)).fits for cpu in sizes}


def pod(cpu: str) -> dict:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"of-{cpu}"}, "spec": {"containers": [container]}}


if __name__ == "__main__":
    cluster, sizes = Cluster.load(CLUSTER), ["100m", "250m", "500m", "1"]
    for part in Parallel(n_jobs=2)(delayed(room)(cluster, sizes[first::2]) for first in range(2)):
        for cpu, fits in part.items():
            print(f"{fits} pods of {cpu}")
