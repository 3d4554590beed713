"""A backlog as objects of an API server: empty nodes, and pods that wait for them."""

from typing import Any, Final

NUM_APPS: Final = 20
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def node(number: int) -> dict[str, Any]:
    """An empty node in one of three zones."""
    name = f"node-{number:05}"
    allocatable = {"cpu": "16", "memory": "64Gi", "pods": "250"}
    return {
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: f"zone-{number % 3}"}},
        "status": {"allocatable": allocatable},
    }


def pod(number: int, shape: str) -> dict[str, Any]:
    """A pod of one of twenty apps that waits: basic, spread, anti-affinity or affinity; mixed is a quarter of each."""
    app = f"app-{number % NUM_APPS}"
    peers = {"matchLabels": {"app": app}}
    kinds: dict[str, dict[str, Any]] = {
        "basic": {},
        "spread": {
            "topologySpreadConstraints": [
                {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": peers}
            ]
        },
        "anti-affinity": {
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": HOSTNAME, "labelSelector": peers}
                    ]
                }
            }
        },
        "affinity": {
            "affinity": {
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": peers}}
                    ]
                }
            }
        },
    }
    kind = [*kinds][number % 4] if shape == "mixed" else shape
    container = {
        "name": "c",
        "image": "registry.example/app:1",
        "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}},
    }
    return {
        "metadata": {"name": f"{kind}-{number}", "labels": {"app": app}},
        "spec": {"containers": [container], **kinds[kind]},
    }
