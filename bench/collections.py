"""How long garbage collections, and steps of the event loop, of a scheduler of a large cluster take, whatever a tenant
does to its pods.

Three processes: an embedded API over a socket, the scheduler, and this one, which plays the tenant. Printed is the
processor time of the longest ones in the scheduler, once it has the cluster.
"""

import http.client
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from bench.standalone import serving

NUM_NODES = 5000
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


def run(num_pods: int = 50_000) -> None:
    """Print the figures."""
    print(f"the longest of a scheduler with {NUM_NODES:,} nodes and {num_pods:,} pods, in ms of processor time")
    with serving(NUM_NODES, num_pods, "mixed") as url:
        command = [sys.executable, "-m", "bench.collections_client", url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as scheduler:
            tenant = _Tenant(url, num_pods)
            for what, act in (
                ("all pods are bound", tenant.waits),
                ("the labels of all pods change", tenant.labels),
                ("half as many pods more, which fit nowhere", tenant.creates),
                ("these are deleted", tenant.deletes),
            ):
                act()
                print(f"  {what:42} {_figures(scheduler)}", flush=True)
            scheduler.terminate()


def _figures(scheduler: "subprocess.Popen[str]") -> str:
    assert scheduler.stdin is not None
    assert scheduler.stdout is not None
    scheduler.stdin.write("\n")
    scheduler.stdin.flush()
    figures = json.loads(scheduler.stdout.readline())
    collections, steps = (", ".join(f"{value:.1f}" for value in figures[name]) for name in ("collections", "steps"))
    return f"collections {collections}; steps {steps}; memory {figures['memory']:.0f} MiB"


class _Tenant:
    def __init__(self, url: str, num_pods: int) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
        self._num_pods = num_pods

    def waits(self) -> None:
        """Returns when all pods are bound."""
        while self._request("GET", f"{PODS}?fieldSelector=spec.nodeName%3D&limit=1")["items"]:
            time.sleep(1)

    def labels(self) -> None:
        names: list[str] = []
        token = ""
        while not names or token:
            page = self._request("GET", f"{PODS}?limit=500&continue={token}")
            names += [pod["metadata"]["name"] for pod in page["items"]]
            token = page["metadata"].get("continue", "")
        for number, name in enumerate(names):
            self._request("PATCH", f"{PODS}/{name}", {"metadata": {"labels": {"turn": f"{number % 7}"}}})

    def creates(self) -> None:
        self._repeat(lambda number: self._request("POST", PODS, self._pod(number)))

    def deletes(self) -> None:
        self._repeat(lambda number: self._request("DELETE", f"{PODS}/more-{number}", {"gracePeriodSeconds": 0}))

    def _repeat(self, act: Callable[[int], object]) -> None:
        for number in range(self._num_pods // 2):
            act(number)

    def _pod(self, number: int) -> dict[str, Any]:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": f"{100 + number}"}}}
        return {
            "metadata": {"name": f"more-{number}", "labels": {"app": f"more-{number % 1000}"}},
            "spec": {"containers": [container]},
        }

    def _request(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        headers = {"Content-Type": MERGE if method == "PATCH" else "application/json"}
        self._connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = self._connection.getresponse()
        content: dict[str, Any] = json.loads(answer.read())
        assert answer.status < 300, content
        return content
