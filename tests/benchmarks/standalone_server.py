"""An embedded API with empty nodes and a backlog of pods, for `uvicorn --factory`."""

import os
from datetime import UTC, datetime

from starlette.types import ASGIApp

from api.kubernetes import KubernetesApp
from extender.rules.api_resources import NODES, PODS, Object
from reprieve.cluster.kube_api import KubeApi
from tests.kit.cluster import make_registry

NUM_APPS = 20
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def make() -> ASGIApp:
    """The application; what it holds is in the environment."""
    registry = make_registry("default", "kube-system", now=lambda: datetime.now(UTC))
    for number in range(int(os.environ["NUM_NODES"])):
        registry.create(NODES, "", _node(number))
    for number in range(int(os.environ["NUM_PODS"])):
        registry.create(PODS, "default", _pod(number, os.environ["SHAPE"]))
    return KubernetesApp(KubeApi(registry))


def _node(number: int) -> Object:
    name = f"node-{number:05}"
    allocatable = {"cpu": "16", "memory": "64Gi", "pods": "250"}
    return {
        "metadata": {"name": name, "labels": {HOSTNAME: name, ZONE: f"zone-{number % 3}"}},
        "status": {"allocatable": allocatable},
    }


def _pod(number: int, shape: str) -> Object:
    app = f"app-{number % NUM_APPS}"
    own = {"matchLabels": {"app": app}}
    kinds: dict[str, Object] = {
        "basic": {},
        "spread": {
            "topologySpreadConstraints": [
                {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": own}
            ]
        },
        "anti-affinity": {
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOSTNAME, "labelSelector": own}]
                }
            }
        },
        "affinity": {
            "affinity": {
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": own}}
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
