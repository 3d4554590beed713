"""How fast a service answers others while the claims, pods and budgets of a tenant cost what they may, for how long its
event loop is held, whether it goes on to lead, and its memory.

The scheduler decides meanwhile, for a cluster in another process.
"""

import http.client
import json
import multiprocessing
import statistics
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path

from bench.verbs import served, serving
from bench.watched_service import longest_step
from tests.api.test_questions import pod
from tests.hostile.attacks import BUDGETS, CLAIMS, PODS, Object, cluster_of_budgets, cluster_of_claims, cluster_of_pods
from tests.kit.ports import free_port

AIMS = {"livez": 2000, "filter": 2000, "step": 1000}
"""Milliseconds on two cores: of answers at the 99th percentile, of steps of the event loop the longest."""
LARGEST = 1_000_000
"""Bytes of a pod: about what the API server stores as one object."""


def _cluster_of_budgets(attack: Callable[[], Iterator[Object]]) -> Object:
    return cluster_of_budgets(attack(), *(pod(f"urgent-{place}", "3999m", priority=100) for place in range(3)))


CLUSTERS: dict[str, Callable[[], Object]] = {
    **{f"claims: {name}": partial(cluster_of_claims, attack) for name, attack in CLAIMS.items()},
    **{f"pods: {name}": partial(cluster_of_pods, attack, LARGEST) for name, attack in PODS.items()},
    **{f"budgets: {name}": partial(_cluster_of_budgets, attack) for name, attack in BUDGETS.items()},
}
_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
ORDINARY = {
    "metadata": {"name": "asked", "namespace": "shop", "uid": "asked"},
    "spec": {"containers": [{"name": "main"}]},
}


@dataclass(frozen=True)
class _Replica:
    """A scheduler that leads a cluster, which another process holds."""

    connection: http.client.HTTPConnection
    pid: int
    kubernetes: str
    """The address of the cluster's API."""
    noted: Path
    """What was noted of its event loop."""

    def memory(self, name: str) -> int:
        """Returns MiB: VmRSS is what it has, VmHWM the most that it has had."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) // 1024

    def leads(self) -> bool:
        try:
            return bool(self.lease()[0])
        except urllib.error.HTTPError:  # there is no lease yet
            return False

    def lease(self) -> tuple[str, int]:
        """Returns when the lease was renewed last, and how often it changed hands."""
        with urllib.request.urlopen(f"{self.kubernetes}{_LEASE}") as response:
            spec = json.load(response)["spec"]
        return spec["renewTime"], spec["leaseTransitions"]


def run(seconds: float = 8) -> None:
    """Prints the figures, an attack a line."""
    aims = ", ".join(f"{name} {aim}" for name, aim in AIMS.items())
    print(
        f"answers to others during {seconds:g} s of an attack, and the longest step of the event loop, ms (aims: {aims}); "
        "the longest time without renewal of the lease, in s (lost after 10), and how often it was lost; memory before "
        "and at most, in MiB"
    )
    head = ("attack", "livez p50", "p99", "filter p50", "p99", "number", "step", "lease", "lost", "RSS", "most")
    print("  {:50} {:>9} {:>6} {:>11} {:>6} {:>7} {:>6} {:>6} {:>5} {:>5} {:>5}".format(*head))
    for name, make in CLUSTERS.items():
        objects = make()
        evil = next(item for item in objects["items"] if item["kind"] == "Pod" and not item["spec"].get("nodeName"))
        nodes = [item["metadata"]["name"] for item in objects["items"] if item["kind"] == "Node"]
        with tempfile.TemporaryDirectory() as folder, _replica(Path(folder), objects) as replica:
            before, began = replica.memory("VmRSS"), time.monotonic()
            with _attacking(replica.connection.port, evil, nodes), _lease_watched(replica) as gaps:
                livez, filtered = _measured(replica.connection, nodes, seconds)
            lost = replica.lease()[1]
            figures = (
                *_percentiles(livez),
                *_percentiles(filtered),
                len(livez),
                longest_step(replica.noted, began) * 1000,
                max(gaps),
                lost,
                before,
                replica.memory("VmHWM"),
            )
        print(
            "  {:50} {:9.1f} {:6.1f} {:11.1f} {:6.1f} {:7} {:6.0f} {:6.1f} {:5} {:5} {:5}".format(name, *figures),
            flush=True,
        )


@contextmanager
def _replica(folder: Path, objects: Object) -> Iterator[_Replica]:
    """Starts an API server with the cluster, and a scheduler of its own that leads it."""
    state, noted = folder / "cluster.json", folder / "steps"
    state.write_text(json.dumps(objects))
    kubernetes_port = free_port()
    kubernetes = f"http://127.0.0.1:{kubernetes_port}"
    serve = ["-m", "api.cli", "serve"]
    watched = ["-m", "bench.watched_service", str(noted), "serve"]
    with (
        serving([*serve, "--state", str(state), "--no-schedule", "--kubernetes-port", str(kubernetes_port)]),
        served([*watched, "--master", kubernetes, "--schedule", "--leader-elect"]) as (connection, pid),
    ):
        replica = _Replica(connection, pid, kubernetes, noted)
        while not replica.leads():
            time.sleep(0.1)
        yield replica


@contextmanager
def _lease_watched(replica: _Replica) -> Iterator[list[float]]:
    """Collects the seconds between two renewals of the lease, as far as a look each tenth of a second shows them."""
    is_over, gaps, began = threading.Event(), [0.0], time.monotonic()

    def watch(since: float) -> None:
        renewed = replica.lease()[0]
        while not is_over.wait(0.1):
            now, latest = time.monotonic(), replica.lease()[0]
            gaps.append(now - since)
            if latest != renewed:
                since, renewed = now, latest

    thread = threading.Thread(target=watch, args=(began,))
    thread.start()
    try:
        yield gaps
    finally:
        is_over.set()
        thread.join()


@contextmanager
def _attacking(port: int, evil: object, nodes: list[str]) -> Iterator[None]:
    """Asks about the hostile pod again and again for as long as the block runs, in a process of its own: what it costs
    the caller to write so large a question must not count as the service's time.
    """
    spawning = multiprocessing.get_context("spawn")
    has_begun = spawning.Event()
    attacker = spawning.Process(target=_attack, args=(port, evil, nodes, has_begun), daemon=True)
    attacker.start()
    try:
        if not has_begun.wait(60):
            raise RuntimeError("the attack does not begin")
        yield
        if not attacker.is_alive():
            raise RuntimeError(f"the attack ended early, with exit code {attacker.exitcode}")
    finally:
        attacker.terminate()
        attacker.join()


def _attack(port: int, evil: object, nodes: list[str], has_begun: Event) -> None:
    has_begun.set()
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        try:
            _filter(connection, evil, nodes)
        except OSError:
            pass  # it takes longer than this caller waits
        finally:
            connection.close()


def _measured(
    connection: http.client.HTTPConnection, nodes: list[str], seconds: float
) -> tuple[list[float], list[float]]:
    livez: list[float] = []
    filtered: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        connection.request("GET", "/livez")
        connection.getresponse().read()
        livez.append(time.perf_counter() - began)
        began = time.perf_counter()
        _filter(connection, ORDINARY, nodes)
        filtered.append(time.perf_counter() - began)
        time.sleep(0.005)
    return livez, filtered


def _filter(connection: http.client.HTTPConnection, pod: object, nodes: list[str]) -> None:
    body = json.dumps({"Pod": pod, "NodeNames": nodes})
    connection.request("POST", "/extender/filter", body, {"Content-Type": "application/json"})
    connection.getresponse().read()


def _percentiles(seconds: list[float]) -> tuple[float, float]:
    """Returns the median and the 99th percentile in ms."""
    return statistics.median(seconds) * 1000, sorted(seconds)[int(0.99 * (len(seconds) - 1))] * 1000
