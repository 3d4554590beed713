"""What it takes to know a large cluster: time and memory until 5,000 nodes and 150,000 pods are known, and CPU time a
watch event.

Three processes: an embedded API, the reflectors, and this one, which changes pods.
"""

import http.client
import json
import subprocess
import sys
import time
from typing import Any

from bench.api_server import api_server

NUM_EVENTS = 2000

WORDS = {"streamed": "streamed lists", "ordinary": "ordinary lists", "engine": "the whole extender"}


def run(num_nodes: int = 5000, num_pods: int = 150_000) -> None:
    """Print the figures, for both ways of listing."""
    with api_server("reflector_server", NUM_NODES=num_nodes, NUM_PODS=num_pods) as port:
        print(f"reflectors of {num_nodes:,} nodes and {num_pods:,} pods over a socket; aims: 12 s, 900 MiB")
        for how in ("streamed", "ordinary", "engine"):
            _measure(port, how, num_nodes + num_pods)


def _measure(port: int, how: str, num_objects: int) -> None:
    command = [sys.executable, "-m", "bench.reflector_client", f"http://127.0.0.1:{port}", how]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        synced = _line(client)
        if synced["objects"] != num_objects:
            raise SystemExit(f"{synced['objects']} objects were told, there are {num_objects}")
        print(
            f"  {WORDS[how]}: {synced['seconds']:5.1f} s ({synced['cpu']:.1f} s of CPU), peak {synced['peak']:.0f} "
            "MiB, "
            f"then {synced['now']:.0f} MiB, of which {synced['before']:.0f} before the first request",
            flush=True,
        )
        first = _next_figures(client)
        _change_pods(port)
        time.sleep(1)
        last = _next_figures(client)
        num_events = last["objects"] - first["objects"]
        print(
            f"  {num_events} events one by one: {(last['cpu'] - first['cpu']) / num_events * 1e6:.0f} µs of CPU each",
            flush=True,
        )


def _change_pods(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for number in range(NUM_EVENTS):
        patch = json.dumps({"metadata": {"labels": {"changed": str(time.time_ns())}}})
        path = f"/api/v1/namespaces/default/pods/web-{number:06}"
        connection.request("PATCH", path, patch, {"Content-Type": "application/merge-patch+json"})
        response = connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise SystemExit(f"{path}: {response.status} {answer[:300]!r}")
    connection.close()


def _next_figures(client: "subprocess.Popen[str]") -> dict[str, Any]:
    assert client.stdin is not None
    client.stdin.write("\n")
    client.stdin.flush()
    return _line(client)


def _line(client: "subprocess.Popen[str]") -> dict[str, Any]:
    assert client.stdout is not None
    line = client.stdout.readline()
    if not line:
        raise SystemExit("the reflectors have ended")
    figures: dict[str, Any] = json.loads(line)
    return figures
