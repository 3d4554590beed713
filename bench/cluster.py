"""The clusters that the figures are about: the same as those the Go scheduler's figures were taken on."""

from extender.client.informers.keeping import NodeKeeper, PodKeeper
from extender.engine.cache import Cache
from extender.values.objects.decoding import convert
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod

NUM_APPS = 20
ZONES = 3


def make_node(number: int, cpu: str = "16", memory: str = "64Gi") -> Node:
    """A node with hostname and one of three zones."""
    name = f"node-{number:05d}"
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % ZONES}"}
    allocatable = {"cpu": cpu, "memory": memory, "pods": "250", "ephemeral-storage": "100Gi"}
    return convert(
        Node,
        {"metadata": {"name": name, "uid": f"uid-{name}", "labels": labels}, "status": {"allocatable": allocatable}},
    )


def make_pod(
    name: str,
    *,
    app: int = 0,
    cpu: str = "100m",
    memory: str = "500Mi",
    node: str = "",
    priority: int = 0,
    spec: dict[str, object] | None = None,
) -> Pod:
    """A pod of one of twenty apps."""
    container = {
        "name": "c",
        "image": "registry.example/app:1",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    pod_spec = {"containers": [container], "nodeName": node, "priority": priority, **(spec or {})}
    return convert(
        Pod,
        {
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {"app": f"app-{app}"}},
            "spec": pod_spec,
        },
    )


def make_cache(num_nodes: int, pods_a_node: int = 10, num_apps: int = NUM_APPS) -> Cache:
    """Nodes with small running pods, each node with different apps, kept as the informers keep them."""
    cache, kept_node, kept_pod = Cache(), NodeKeeper(), PodKeeper()
    for number in range(num_nodes):
        node = kept_node(make_node(number))
        cache.add_node(node)
        for place in range(pods_a_node):
            cache.add_pod(kept_pod(make_pod(f"{node.name}-{place}", app=(number + place) % num_apps, node=node.name)))
    return cache


def make_full_cache(num_nodes: int, pods_a_node: int = 30) -> Cache:
    """Nodes that are full of pods of low priority (0 to 99): 15.6 of 16 CPU asked for."""
    cache = Cache()
    milli = [100 + 60 * (place % 15) for place in range(pods_a_node)]
    milli = [amount * 15600 // sum(milli) for amount in milli]
    for number in range(num_nodes):
        node = make_node(number)
        cache.add_node(node)
        for place in range(pods_a_node):
            priority = (number * 7 + place * 13) % 100
            pod = make_pod(
                f"{node.name}-{place}",
                app=place % NUM_APPS,
                node=node.name,
                cpu=f"{milli[place]}m",
                memory="1000Mi",
                priority=priority,
            )
            cache.add_pod(pod)
    return cache
