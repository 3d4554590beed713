"""Stands in for kube-scheduler, where no real one is at hand: it takes the same flags, reads the same configuration and
kubeconfig, and speaks to API server and extenders as a real one was recorded to do. It is no kube-scheduler: it knows
CPU and node selectors, and decides one pod after the other by what extenders say.

Run as `PROGRAM --version`, `--help`, or `--config=FILE --secure-port=0`. In the environment: STAND_IN_VERSION;
STAND_IN_PID, the file for its number; STAND_IN_ENDS_AFTER, the number of pods after which it ends by itself.
"""

import json
import os
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Object = dict[str, Any]

HELP = "The Kubernetes scheduler is a control plane process which assigns\nPods to Nodes.\n\nUsage:\n  kube-scheduler [flags]\n"
HEADERS = {"Content-Type": "application/json", "User-Agent": "Go-http-client/1.1"}


def main(flags: list[str]) -> None:
    version = os.environ.get("STAND_IN_VERSION", "v1.36.2")
    if flags == ["--version"]:
        print(f"Kubernetes {version}")
    elif flags == ["--help"]:
        print(HELP)
    else:
        options = dict(flag.removeprefix("--").split("=", 1) for flag in flags)
        assert options.keys() == {"config", "secure-port"} and options["secure-port"] == "0", flags
        configuration = yaml.safe_load(Path(options["config"]).read_text())
        kubeconfig = yaml.safe_load(Path(configuration["clientConnection"]["kubeconfig"]).read_text())
        assert configuration["leaderElection"]["leaderElect"] is False
        if "STAND_IN_PID" in os.environ:
            Path(os.environ["STAND_IN_PID"]).write_text(str(os.getpid()))
        Scheduler(kubeconfig["clusters"][0]["cluster"]["server"], configuration["extenders"]).run()


class Scheduler:
    """Decides one pod after the other."""

    def __init__(self, server: str, extenders: list[Object]) -> None:
        self.server = server
        self.extenders = extenders
        self.pods: dict[str, Object] = {}
        self.left = int(os.environ.get("STAND_IN_ENDS_AFTER", "1000000"))

    def run(self) -> None:
        listed = self.get("/api/v1/pods")
        self.pods = {pod["metadata"]["uid"]: pod for pod in listed["items"]}
        for pod in sorted(self.pods.values(), key=lambda pod: -pod["spec"].get("priority", 0)):
            self.look_at(pod)
        for event in self.watch(f"/api/v1/pods?watch=1&resourceVersion={listed['metadata']['resourceVersion']}"):
            pod = event["object"]
            self.pods[pod["metadata"]["uid"]] = pod
            if event["type"] == "DELETED":
                del self.pods[pod["metadata"]["uid"]]
            elif event["type"] == "ADDED":
                self.look_at(pod)

    def look_at(self, pod: Object) -> None:
        spec = pod["spec"]
        if spec.get("nodeName") or spec.get("schedulerGates") or spec["schedulerName"] != "default-scheduler":
            return
        self.schedule(pod)
        self.left -= 1
        if not self.left:
            print('E1128 20:00:00.000000 1 run.go:72] "command failed" err="as told"', file=sys.stderr)
            sys.exit(1)

    def schedule(self, pod: Object) -> None:
        nodes = self.get("/api/v1/nodes")["items"]
        fitting = [node["metadata"]["name"] for node in nodes if self.fits(pod, node)]
        scores = dict.fromkeys(fitting, 0)
        refused = f"{len(nodes) - len(fitting)} Insufficient cpu"
        for extender in self.extenders if fitting else ():
            body = {"Pod": pod, "Nodes": None, "NodeNames": fitting}
            answer = self.post(f"{extender['urlPrefix']}/{extender['filterVerb']}", body)
            reasons = (answer["FailedNodes"] or {}) | (answer["FailedAndUnresolvableNodes"] or {})
            refused = ", ".join(
                [refused, *sorted({f"{[*reasons.values()].count(why)} {why}" for why in reasons.values()})]
            )
            fitting = answer["NodeNames"] or []
        for extender in self.extenders if len(fitting) > 1 else ():
            body = {"Pod": pod, "Nodes": None, "NodeNames": fitting}
            for host_score in self.post(f"{extender['urlPrefix']}/{extender['prioritizeVerb']}", body):
                scores[host_score["Host"]] += host_score["Score"] * extender["weight"]
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        if not fitting:
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            condition["message"] = f"0/{len(nodes)} nodes are available: {refused}."
            self.patch(f"{path}/status", {"status": {"conditions": [condition]}})
            return
        node = max(fitting, key=lambda name: (scores[name], name))
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        metadata = {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        self.post(
            f"{self.server}{path}/binding",
            {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target},
        )
        pod["spec"]["nodeName"] = node

    def fits(self, pod: Object, node: Object) -> bool:
        labels, spec = node["metadata"].get("labels", {}), node["spec"]
        if spec.get("unschedulable") or spec.get("taints"):
            return False
        if not (pod["spec"].get("nodeSelector") or {}).items() <= labels.items():
            return False
        pods = [guest for guest in self.pods.values() if guest["spec"].get("nodeName") == node["metadata"]["name"]]
        return sum(map(cpu_of, pods)) + cpu_of(pod) <= milli(node["status"]["allocatable"]["cpu"])

    # HTTP

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.server}{path}", timeout=60) as answer:
            return json.load(answer)

    def watch(self, path: str) -> Iterator[Object]:
        with urllib.request.urlopen(f"{self.server}{path}", timeout=600) as answer:
            for line in answer:
                yield json.loads(line)

    def post(self, url: str, body: object) -> Any:
        with urllib.request.urlopen(
            urllib.request.Request(url, json.dumps(body).encode(), HEADERS), timeout=60
        ) as answer:
            return json.load(answer)

    def patch(self, path: str, body: object) -> None:
        headers = {"Content-Type": "application/strategic-merge-patch+json"}
        request = urllib.request.Request(f"{self.server}{path}", json.dumps(body).encode(), headers, method="PATCH")
        urllib.request.urlopen(request, timeout=60).close()


def cpu_of(pod: Object) -> int:
    requests = [part.get("resources", {}).get("requests", {}).get("cpu", "0") for part in pod["spec"]["containers"]]
    return sum(map(milli, requests))


def milli(text: str) -> int:
    return int(text.removesuffix("m")) if text.endswith("m") else int(float(text) * 1000)


def stand_in(folder: Path) -> Path:
    """Writes the program into a folder, and returns it."""
    path = folder / "kube-scheduler"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).resolve()}" "$@"\n')
    path.chmod(0o755)
    return path


if __name__ == "__main__":
    main(sys.argv[1:])
