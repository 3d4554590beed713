"""An embedded API with 5,000 nodes and 150,000 pods as they are in real clusters, for `uvicorn --factory`."""

import os
import random
import uuid
from typing import Final

from starlette.types import ASGIApp

from api.kubernetes import KubernetesApp
from extender.rules.api_resources import NODES, PODS, Object
from reprieve.cluster.kube_api import KubeApi
from reprieve.cluster.store.object_store import ObjectStore
from tests.kit.cluster import make_registry

NUM_WORKLOADS: Final = 5000
_STARTED: Final = "2026-01-01T00:00:00Z"


def make() -> ASGIApp:
    """The application; how many there are is in the environment."""
    return KubernetesApp(make_api(int(os.environ.get("NUM_NODES", "5000")), int(os.environ.get("NUM_PODS", "150000"))))


def make_api(num_nodes: int, num_pods: int) -> KubeApi:
    """The first of each kind has been through admission, the others are like it."""
    store, rng = ObjectStore(), random.Random(1)
    registry = make_registry("default", store=store)
    first = registry.create(NODES, "", _node(0))
    for number in range(1, num_nodes):
        node = _node(number)
        metadata = first["metadata"] | node["metadata"] | {"uid": _uid(rng)}
        store.put(
            NODES, "", metadata["name"], first | {"metadata": metadata, "status": first["status"] | node["status"]}
        )
    pod = registry.create(PODS, "default", {"metadata": {"name": "like-me"}, "spec": _spec_of_pod("kube-api-access")})
    for number in range(num_pods):
        metadata, name = _metadata_of_pod(number, rng), f"web-{number:06}"
        metadata = pod["metadata"] | metadata | {"name": name}
        spec = (
            pod["spec"]
            | _spec_of_pod(f"kube-api-access-{rng.getrandbits(20):05x}")
            | {"nodeName": f"node-{number % num_nodes:05}"}
        )
        store.put(PODS, "default", name, pod | {"metadata": metadata, "spec": spec, "status": _status(rng)})
    store.remove(PODS, "default", pod["metadata"]["name"])
    return KubeApi(registry)


_TOKEN_SOURCES: Final = [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {
        "downwardAPI": {
            "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
        }
    },
]


def _uid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def _node(number: int) -> Object:
    name = f"node-{number:05}"
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": f"zone-{number % 3}",
        "kubernetes.io/os": "linux",
    }
    amounts = {"cpu": "64", "memory": "263856340Ki", "pods": "250", "ephemeral-storage": "203070420Ki"}
    conditions = [
        {
            "type": kind,
            "status": "False",
            "lastHeartbeatTime": _STARTED,
            "lastTransitionTime": _STARTED,
            "reason": f"KubeletHasNo{kind}",
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    images = [
        {
            "names": [f"registry.example/app-{number % 200}:1.{place}", f"registry.example/app@sha256:{place:064}"],
            "sizeBytes": 10**8,
        }
        for place in range(50)
    ]
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": conditions, "images": images},
    }


def _spec_of_pod(token: str) -> Object:
    container = {
        "name": "web",
        "image": "registry.example/web:1.27.3",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "env": [{"name": "MODE", "value": "production"}],
        "volumeMounts": [
            {"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}
        ],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "containers": [container],
        "volumes": [{"name": token, "projected": {"defaultMode": 420, "sources": _TOKEN_SOURCES}}],
    }


def _metadata_of_pod(number: int, rng: random.Random) -> Object:
    workload = f"web-{number % NUM_WORKLOADS}"
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{workload}-7d4b9c8f5d", "controller": True}
    return {
        "uid": _uid(rng),
        "labels": {"app": workload, "pod-template-hash": "7d4b9c8f5d"},
        "ownerReferences": [owner | {"uid": str(uuid.UUID(int=number % NUM_WORKLOADS))}],
    }


def _status(rng: random.Random) -> Object:
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    container = {
        "name": "web",
        "image": "registry.example/web:1.27.3",
        "imageID": f"registry.example/web@sha256:{'a' * 64}",
        "containerID": f"containerd://{rng.getrandbits(256):064x}",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": _STARTED}},
        "allocatedResources": {"cpu": "100m", "memory": "128Mi"},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
    }
    return {
        "phase": "Running",
        "startTime": _STARTED,
        "podIP": f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}",
        "conditions": [
            {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": _STARTED} for kind in kinds
        ],
        "containerStatuses": [container],
    }
