"""Services as people start them, each for as long as some tests look at it."""

import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
SECONDS = 60
ZONE = "topology.kubernetes.io/zone"
MANY = 5000


@dataclass(frozen=True)
class Running:
    """Where the page is, and where kubectl would go."""

    url: str
    kubernetes: str

    def create(self, path: str, obj: dict[str, Any]) -> None:
        """POST an object to the cluster's own API."""
        httpx.post(f"{self.kubernetes}{path}", json=obj, timeout=SECONDS, trust_env=False).raise_for_status()

    def pods(self) -> Any:
        """All pods, as the cluster's own API has them."""
        return httpx.get(f"{self.kubernetes}/api/v1/pods", timeout=SECONDS, trust_env=False).json()["items"]


@contextmanager
def running(*arguments: str) -> Iterator[Running]:
    """`reprieve serve` on free ports."""
    command = [sys.executable, "-m", "api.cli", "serve", "--port", "0", "--kubernetes-port", "0", *arguments]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("REPRIEVE_", "KUBERNETES_"))}
    service = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert service.stderr is not None
        said = ""
        while "reaches it" not in said:
            line = service.stderr.readline()
            assert line, f"the service did not start:\n{said}"
            said += line
        page, kubernetes = re.findall(r"http://[\w.]+:\d+", said)[:2]
        _wait_until_settled(page)
        yield Running(page, kubernetes)
    finally:
        service.terminate()
        service.communicate(timeout=SECONDS)


def _wait_until_settled(page: str) -> None:
    """Until nothing has changed for a second: a page that is drawn again under a test's hands is another test's matter."""
    last, since, end = "", 0.0, time.monotonic() + SECONDS
    while time.monotonic() < end:
        found = re.search(r'data-version="([^"]+)"', httpx.get(page, timeout=SECONDS, trust_env=False).text)
        version, now = found[1] if found else "", time.monotonic()
        if version != last:
            last, since = version, now
        elif version and now - since > 1:
            return
        time.sleep(0.2)
    raise AssertionError("the service does not come to rest")


def many_nodes(path: Path) -> Path:
    """A file with thousands of nodes in five zones, each with one pod of its own size, and a pod that is too large for all.

    The nodes of one zone are tainted, and some elsewhere are cordoned.
    """
    chance = random.Random(5)
    objects: list[dict[str, Any]] = []
    for number in range(MANY):
        name = f"node-{number:04}"
        amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
        labels = {ZONE: f"zone-{number * 5 // MANY}", "kubernetes.io/hostname": name}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        spec: dict[str, Any] = {"unschedulable": True} if number % 40 == 7 else {}
        if labels[ZONE] == "zone-3":
            spec["taints"] = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
        objects.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec, "status": status})
        share = min(1.0, max(0.02, chance.gauss(0.72, 0.2)))
        requests = {"cpu": f"{int(16000 * share)}m", "memory": f"{int(64 * share)}Gi"}
        objects.append(pod(f"pod-{number}", requests, priority=chance.choice([0, 10, 100, 1000]), node=name))
    objects.append(pod("too-large", {"cpu": "20"}, priority=100))
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return path


def pod(name: str, requests: dict[str, str], *, priority: int | str = 0, node: str = "") -> dict[str, Any]:
    """A pod as a manifest; its priority as a number, or as the name of a class."""
    container = {"name": "main", "image": "registry.example/app:1", "resources": {"requests": requests}}
    spec: dict[str, Any] = {"priorityClassName" if isinstance(priority, str) else "priority": priority, "containers": [container]}
    status = {"phase": "Running" if node else "Pending"}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec, "status": status}
