"""What schedulers and claims have of devices."""

from extender.rules.api_resources import RESOURCE_CLAIMS, Object
from tests.kit.device_objects import DRIVER, GROUP
from tests.kit.scene import Scene


def leftover(scene: Scene, name: str, *, allocated: bool = True) -> None:
    """The special claim that a scheduler made for the pod before it was killed."""
    uid = scene.pod(name)["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    claim = {
        **GROUP,
        "kind": "ResourceClaim",
        "metadata": {
            "name": f"{name}-extended-resources-left",
            "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
            "finalizers": ["resource.kubernetes.io/delete-protection"] if allocated else [],
            "ownerReferences": [owner],
        },
        "spec": {"devices": {"requests": [{"name": "container-0-request-1", "exactly": exactly}]}},
    }
    created = scene.api.create(RESOURCE_CLAIMS, "default", claim)
    if allocated:
        result = {"request": "container-0-request-1", "driver": DRIVER, "pool": "n", "device": "gpu-1"}
        created["status"] = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": name, "uid": uid}],
        }
        scene.api.update(RESOURCE_CLAIMS, "default", created["metadata"]["name"], created, subresource="status")


def claims(scene: Scene) -> list[Object]:
    return scene.api.list(RESOURCE_CLAIMS, "default")


def held_devices(scene: Scene) -> list[str]:
    """The devices that claims have."""
    results = [
        claim["status"]["allocation"]["devices"]["results"]
        for claim in claims(scene)
        if "allocation" in claim.get("status", {})
    ]
    return sorted(result["device"] for every in results for result in every)
