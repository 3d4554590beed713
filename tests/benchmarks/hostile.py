"""How fast a service answers others while the claims and pods of a tenant cost what they may. The scheduler decides meanwhile."""

import http.client
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.benchmarks.verbs import serving
from tests.hostile import test_device_selectors, test_pods

AIMS = {"livez": 100, "filter": 250}
"""Milliseconds at the 99th percentile, on two cores."""


def _cluster_with(attack: Callable[[], test_pods.Manifest]) -> test_pods.Manifest:
    return test_pods.cluster(attack())


CLUSTERS: dict[str, Callable[[], Any]] = {
    **{f"claims: {name}": partial(test_device_selectors.cluster, attack) for name, attack in test_device_selectors.ATTACKS.items()},
    **{f"pods: {name}": partial(_cluster_with, attack) for name, attack in test_pods.ATTACKS.items()},
}
ORDINARY = {"metadata": {"name": "asked", "namespace": "shop", "uid": "asked"}, "spec": {"containers": [{"name": "main"}]}}


def run(seconds: float = 8) -> None:
    """Prints the figures, an attack a line."""
    print(
        f"answers to others during {seconds:g} s of an attack, ms (aims at p99: {', '.join(f'{name} {aim}' for name, aim in AIMS.items())})"
    )
    print(f"  {'attack':50} {'livez p50':>9} {'p99':>6} {'filter p50':>11} {'p99':>6} {'number':>7}")
    for name, make in CLUSTERS.items():
        with tempfile.TemporaryDirectory() as folder:
            state = Path(folder) / "cluster.json"
            objects = make()
            state.write_text(json.dumps(objects))
            evil = next(item for item in objects["items"] if item["kind"] == "Pod" and not item["spec"].get("nodeName"))
            nodes = [item["metadata"]["name"] for item in objects["items"] if item["kind"] == "Node"]
            with (
                serving(["-m", "api.cli", "serve", "--state", str(state), "--schedule"]) as connection,
                _attacking(connection.port, evil, nodes),
            ):
                livez, filtered = _measured(connection, nodes, seconds)
        figures = (*_percentiles(livez), *_percentiles(filtered), len(livez))
        print("  {:50} {:9.1f} {:6.1f} {:11.1f} {:6.1f} {:7}".format(name, *figures), flush=True)


@contextmanager
def _attacking(port: int, evil: object, nodes: list[str]) -> Iterator[None]:
    """Asks about the hostile pod again and again for as long as the block runs."""
    is_over = threading.Event()

    def attack() -> None:
        while not is_over.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            try:
                _filter(connection, evil, nodes)
            except OSError:
                pass  # it takes longer than this caller waits
            finally:
                connection.close()

    thread = threading.Thread(target=attack)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _measured(connection: http.client.HTTPConnection, nodes: list[str], seconds: float) -> tuple[list[float], list[float]]:
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
