"""Whom an urgent pod would evict, by its size: workers are sent the cluster once. `pip install 'reprieve[dask]'`"""

from pathlib import Path

from distributed import Client

from reprieve import Cluster

CLUSTER = Path(__file__).parents[1] / "clusters" / "three-nodes.yaml"


def evicted(cluster: Cluster, cpu: str) -> list[str]:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "priorityClassName": "vip"}
    with cluster.trial() as trial:
        answer = trial.preempt({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "new"}, "spec": spec})
    return [victim.pod.key for victim in answer.victims]


if __name__ == "__main__":
    with Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
        [cluster] = client.scatter([Cluster.load(CLUSTER)], broadcast=True)
        sizes = ["1", "2", "4"]
        for cpu, victims in zip(sizes, client.gather(client.map(evicted, [cluster] * 3, sizes)), strict=True):
            print(f"{cpu} cores instead of {victims}")
