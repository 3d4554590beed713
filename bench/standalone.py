"""What a backlog costs: pods a second from the first binding to the last; CPU and memory of the scheduler until the
last event is told. Then how long after its start `reprieve serve --schedule` binds the first pod, with leader election
and without.

Three processes: an embedded API over a socket, the scheduler, and this one, which waits.
"""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit

from bench.api_server import api_server

AIMS = {"basic": 0.7, "mixed": 0.9}
"""CPU milliseconds a pod."""

NUM_STARTS = 5


def run(num_pods: int = 5000) -> None:
    """Print the figures."""
    print(f"a backlog of {num_pods:,} pods drained by a scheduler of its own, bindings and events over a socket")
    for num_nodes in (1000, 5000):
        for shape, aim in AIMS.items():
            with serving(num_nodes, num_pods, shape) as url:
                command = [sys.executable, "-m", "bench.standalone_client", url, str(num_pods)]
                done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=600)
            drain = json.loads(done.stdout)
            print(
                f"  {num_nodes:5} nodes {shape:6}  {drain['per_second']:5.0f} pods/s  {drain['cpu_ms']:.2f} ms of CPU "
                f"a pod (aim {aim})  "
                f"peak {drain['peak']:.0f} MiB",
                flush=True,
            )
    for elects in (True, False):
        starts = [_first_binding(5000, elects=elects) for _ in range(NUM_STARTS)]
        print(
            f"   5000 nodes, {'with' if elects else 'without'} leader election: first binding {median(starts):.2f} s "
            "after the start, "
            f"from {min(starts):.2f} to {max(starts):.2f} s (aim 1.2)"
        )


def _first_binding(num_nodes: int, *, elects: bool) -> float:
    """Returns the seconds from the start of the command until the API server has a bound pod."""
    with serving(num_nodes, 300, "basic") as url:
        reader = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        command = [
            str(Path(sys.executable).with_name("reprieve")),
            "serve",
            "--schedule",
            "--master",
            url,
            "--port",
            "0",
        ]
        command += [] if elects else ["--no-leader-elect"]
        began = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as scheduler:
            try:
                while (seconds := time.perf_counter() - began) < 60:
                    reader.request("GET", "/api/v1/pods?fieldSelector=spec.nodeName!%3D&limit=1")
                    if json.loads(reader.getresponse().read())["items"]:
                        return seconds
                    time.sleep(0.01)
            finally:
                scheduler.terminate()
                reader.close()
    raise SystemExit("no pod was bound within a minute")


@contextmanager
def serving(num_nodes: int, num_pods: int, shape: str) -> Iterator[str]:
    """Runs an API server with nodes and pods, and yields its URL."""
    with api_server("standalone_server", NUM_NODES=num_nodes, NUM_PODS=num_pods, SHAPE=shape) as port:
        yield f"http://127.0.0.1:{port}"
