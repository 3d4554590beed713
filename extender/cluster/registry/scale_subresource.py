"""The scale subresource: the number of replicas of a workload, in the form of autoscaling/v1.

Upstream: pkg/registry/apps/deployment/storage/storage.go, ScaleREST, scaleFromDeployment, and its siblings (v1.36.2).
"""

from typing import Any, Final

from extender.cluster import statuses
from extender.cluster.api_resources import REPLICATION_CONTROLLERS, Object, Resource
from extender.cluster.requests import request_bodies
from extender.cluster.requests.request_options import WriteOptions
from extender.cluster.schema import api_types
from extender.cluster.store.selections import selector_text
from extender.cluster.validation import workload_rules
from extender.values.golang.schema import Struct

API_VERSION: Final = "autoscaling/v1"
_SHOWN_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_type() -> Struct:
    return api_types.lookup("autoscaling", "v1", "Scale")


def scale_of(resource: Resource, obj: Object) -> Object:
    metadata = {name: obj["metadata"][name] for name in _SHOWN_METADATA if name in obj["metadata"]}
    status: Object = {"replicas": obj.get("status", {}).get("replicas", 0)}
    given = obj["spec"].get("selector")
    selector = selector_text({"matchLabels": given} if resource is REPLICATION_CONTROLLERS else given)
    if selector:
        status["selector"] = selector
    replicas = obj["spec"].get("replicas", 0)
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": API_VERSION, "metadata": metadata, "spec": spec, "status": status}


def checked(resource: Resource, workload: Object, raw: Any, write: WriteOptions) -> Object:
    """Returns a Scale as a caller sent it, checked against its workload. Raises ApiStatus."""
    scale = request_bodies.read(scale_type(), raw, write, "Scale")
    metadata, former = scale["metadata"], workload["metadata"]
    if metadata.get("name", former["name"]) != former["name"]:
        raise statuses.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({former['name']})"
        )
    uid = metadata.get("uid")
    if uid and uid != former["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {former['uid']}"
        raise statuses.conflict(resource, former["name"], why)
    errors = workload_rules.validate_scale(scale)
    if errors:
        raise statuses.invalid("autoscaling", "Scale", former["name"], errors)
    return scale
