"""The filter verb over a socket: 5,000 node names, and 5,000 nodes in full, cold and warm. One keep-alive client, as
kube-scheduler has.
"""

import gzip
import http.client
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.full_nodes import body_of, node
from tests.kit.ports import free_port
from tests.kit.processes import cpu_seconds

GO_TRIVIAL_EXTENDER = {"names": 3.1, "full nodes": 441.0}
"""Round trip in ms of a Go extender that decides nothing, at 5,000 nodes, as recorded."""


def run(num_nodes: int = 5000, bytes_a_node: int = 5000) -> None:
    """Start a server on a cluster of that size and call it."""
    nodes = [node(number, bytes_a_node) for number in range(num_nodes)]
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "cluster.json.gz"
        items = [{"apiVersion": "v1", "kind": "Node", **of_node} for of_node in nodes] + list(_pods(num_nodes))
        state.write_bytes(gzip.compress(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode(), 1))
        with serving(["-m", "api.cli", "serve", "--state", str(state)]) as connection:
            _measure(connection, nodes)


def _measure(connection: http.client.HTTPConnection, nodes: list[dict[str, object]]) -> None:
    pod = {"metadata": {"name": "p", "namespace": "default", "uid": "p"}, "spec": {"containers": [_container()]}}
    names = [str(of_node["metadata"]["name"]) for of_node in nodes]  # type: ignore[index]
    by_name = _by_name(pod, names)
    print(f"filter verb over a socket, {len(nodes):,} nodes, one keep-alive client")
    took = [_call(connection, by_name) for _ in range(50)]
    go = GO_TRIVIAL_EXTENDER
    print(
        f"  names      {len(by_name) / 1e3:8.0f} KB  p50 {statistics.median(took):7.2f} ms   "
        f"(Go extender that decides nothing: {go['names']} ms)"
    )
    shuffled = [_by_name(pod, random.Random(number).sample(names, len(names))) for number in range(50)]
    took = [_call(connection, body) for body in shuffled]
    print(f"  names in another order each time  p50 {statistics.median(took):7.2f} ms")
    in_full = body_of(nodes)
    cold = _call(connection, in_full)
    took = [_call(connection, in_full) for _ in range(9)]
    warm = statistics.median(took)
    print(
        f"  full nodes {len(in_full) / 1e6:8.1f} MB  cold {cold:6.1f} ms, warm p50 {warm:6.1f} ms   (Go: "
        f"{go['full nodes']} ms)"
    )


def _by_name(pod: dict[str, object], names: list[str]) -> bytes:
    return json.dumps({"Pod": pod, "Nodes": None, "NodeNames": names}, separators=(",", ":")).encode()


def _call(connection: http.client.HTTPConnection, body: bytes) -> float:
    began = time.perf_counter()
    connection.request("POST", "/extender/filter", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = response.read()
    took = (time.perf_counter() - began) * 1e3
    if response.status != 200 or b'"Error":""' not in answer:
        raise SystemExit(f"the filter verb answered {response.status}: {answer[:300]!r}")
    return took


@contextmanager
def serving(arguments: list[str]) -> Iterator[http.client.HTTPConnection]:
    """A server in a process of its own, ready to answer."""
    with served(arguments) as (connection, _):
        yield connection


@contextmanager
def served(arguments: list[str]) -> Iterator[tuple[http.client.HTTPConnection, int]]:
    """Does as `serving`, and yields the process's id as well."""
    port = free_port()
    command = [sys.executable, *arguments, "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            connection = _connected(port)
            _until_idle(process.pid)
            yield connection, process.pid
        finally:
            process.terminate()


def _connected(port: int) -> http.client.HTTPConnection:
    for _ in range(600):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            connection.request("GET", "/readyz")
            response = connection.getresponse()
            response.read()
            if response.status == 200:
                return connection
        except OSError:
            connection.close()
        time.sleep(0.1)
    raise SystemExit("the server did not become ready within a minute")


def _until_idle(pid: int) -> None:
    """Waits until the process uses less than a tenth of a processor: a cluster that has just begun has pods to
    start.
    """
    used = math.inf
    for _ in range(120):
        before, used = used, cpu_seconds(pid)
        if 0 <= used - before < 0.05:
            return
        time.sleep(0.5)
    raise SystemExit("the server did not come to rest within a minute")


def _pods(num_nodes: int) -> Iterator[dict[str, object]]:
    for number in range(num_nodes):
        for place in range(10):
            name = f"pod-{number:05d}-{place}"
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": "default",
                    "uid": name,
                    "labels": {"app": f"app-{(number + place) % 20}"},
                },
                "spec": {"nodeName": f"node-{number:05d}", "containers": [_container()]},
                "status": {"phase": "Running"},
            }


def _container() -> dict[str, object]:
    return {
        "name": "c",
        "image": "registry.example/app:1",
        "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}},
    }
