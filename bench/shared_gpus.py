"""Decisions with the plugin of `examples/shared-gpu`: 5,000 pods on 1,000 nodes of eight cards, beside the same without it."""

import gc
import random
import time
from typing import Final

from bench.cluster import make_node, make_pod
from extender.engine import framework as fwk
from extender.engine.cache import Cache
from extender.engine.plugins import IN_TREE
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.registry import Registry
from extender.engine.runtime.reserve_to_bind import run_reserve_plugins
from extender.engine.scheduler.schedule_pod import SchedulingAlgorithm
from extender.values.config.loading import load
from extender.values.objects.decoding import replaced
from extender.values.objects.pod import Pod
from tests.kit.shared_gpu import EXAMPLE, SIZE, shared_gpu

NODES: Final = 1000
PODS: Final = 5000
CARDS: Final = ",".join([f"{SIZE}/100"] * 8)
DEMANDS: Final = (
    {"memory": 10240},
    {"memory": 4096, "cores": 20},
    {"cores": 30},
    {"cards": 1},
    {"cards": 2, "memory": 2048},
)


def _nodes() -> Cache:
    cache = Cache()
    for number in range(NODES):
        node = make_node(number)
        cache.add_node(replaced(node, metadata=replaced(node.metadata, annotations={shared_gpu.CARDS: CARDS})))
    return cache


def _pod(number: int) -> Pod:
    names = {"memory": shared_gpu.MEMORY, "cores": shared_gpu.CORES, "cards": shared_gpu.CARDS}
    gpu_requests = {names[what]: str(amount) for what, amount in DEMANDS[number % len(DEMANDS)].items()}
    requests = {"cpu": "100m", "memory": "500Mi", **gpu_requests}
    return make_pod(
        f"gpu-{number}", spec={"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    )


def _decided(place: str, pods: list[Pod]) -> float:
    """Decide, assume and reserve; return pods a second of CPU.

    Arguments:
        place: the plugin's argument; empty without the plugin.
    """
    text = (EXAMPLE / "scheduler-config.yaml").read_text()
    text = (
        text.replace("place: pack", f"place: {place}")
        if place
        else text.split("    plugins:")[0]
        + text[text.index("    pluginConfig:") : text.index("      - {name: SharedGpu, args")]
    )
    registry = Registry(IN_TREE, (), also={"SharedGpu": shared_gpu.SharedGpu})
    framework = registry.make_frameworks(load(text), random.Random(1))["default-scheduler"]
    algorithm, cache = SchedulingAlgorithm(), _nodes()
    cache.update_snapshot()  # the first one lays the columns out: that is starting up, not deciding
    gc.collect()
    gc.freeze()
    began = time.process_time()
    for pod in pods:
        cycle = Cycle(framework, cache.update_snapshot(), pod)
        host = algorithm.schedule_pod(cycle).suggested_host
        assumed = replaced(pod, spec=replaced(pod.spec, node_name=host))
        cache.assume_pod(assumed)
        if not run_reserve_plugins(cycle, assumed, host).is_success:
            raise RuntimeError(f"{pod.name} was not promised a card of {host}")
        cache.annotate(pod.uid, cycle.find(fwk.BINDING_ANNOTATIONS))
    took = time.process_time() - began
    gc.unfreeze()
    return len(pods) / took


def run() -> None:
    """Print the rates, the best of two each."""
    print(f"shared GPUs: {PODS:,} pods on {NODES:,} nodes of eight cards, pods a second of CPU (filter to reserve)")
    pods = [_pod(number) for number in range(PODS)]
    plain_rate = max(_decided("", pods) for _ in range(2))
    print(f"{'without the plugin':20} {plain_rate:8,.0f}")
    for place in ("pack", "spread"):
        rate = max(_decided(place, pods) for _ in range(2))
        print(f"{place:20} {rate:8,.0f} {rate / plain_rate:6.0%}")
