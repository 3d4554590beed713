"""The scale subresource: how many replicas a workload shall have, in the words of autoscaling/v1.

Upstream: pkg/registry/apps/deployment/storage/storage.go, ScaleREST, scaleFromDeployment, and its siblings (v1.36.2).
"""

from typing import Any, Final

from extender.embedded import schema, statuses
from extender.embedded.api_resources import REPLICATION_CONTROLLERS, Object, Resource
from extender.embedded.requests import request_bodies
from extender.embedded.requests.request_options import WriteOptions
from extender.embedded.validation import workload_rules
from extender.golang.schema import Struct

API_VERSION: Final = "autoscaling/v1"
_SHOWN_METADATA: Final = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_OPERATORS: Final = {"In": "in", "NotIn": "notin"}


def scale_type() -> Struct:
    """Returns the type of a Scale."""
    return schema.lookup("autoscaling", "v1", "Scale")


def scale_of(resource: Resource, obj: Object) -> Object:
    """The Scale of a workload."""
    metadata = {name: obj["metadata"][name] for name in _SHOWN_METADATA if name in obj["metadata"]}
    status: Object = {"replicas": obj.get("status", {}).get("replicas", 0)}
    selector = _selector_text(resource, obj["spec"].get("selector"))
    if selector:
        status["selector"] = selector
    replicas = obj["spec"].get("replicas", 0)
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": API_VERSION, "metadata": metadata, "spec": spec, "status": status}


def checked(resource: Resource, workload: Object, raw: Any, write: WriteOptions) -> Object:
    """A Scale as a caller sent it, fit to be taken over into its workload.

    Raises:
        ApiStatus: it cannot be read, or does not belong to the workload.
    """
    scale = request_bodies.read(scale_type(), raw, write, "Scale")
    metadata, former = scale["metadata"], workload["metadata"]
    if metadata.get("name", former["name"]) != former["name"]:
        raise statuses.bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({former['name']})")
    uid = metadata.get("uid")
    if uid and uid != former["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {former['uid']}"
        raise statuses.conflict(resource, former["name"], why)
    errors = workload_rules.validate_scale(scale)
    if errors:
        raise statuses.invalid("autoscaling", "Scale", former["name"], errors)
    return scale


def _selector_text(resource: Resource, selector: Any) -> str:
    """A selector as query parameters spell it. Upstream: metav1.LabelSelectorAsSelector, Selector.String."""
    labels = (selector or {}) if resource is REPLICATION_CONTROLLERS else (selector or {}).get("matchLabels", {})
    requirements = [(key, f"{key}={value}") for key, value in labels.items()]
    if resource is not REPLICATION_CONTROLLERS:
        for each in (selector or {}).get("matchExpressions", ()):
            key, operator = each["key"], each["operator"]
            if operator in _OPERATORS:
                text = f"{key} {_OPERATORS[operator]} ({','.join(sorted(each.get('values', ())))})"
            else:
                text = key if operator == "Exists" else f"!{key}"
            requirements.append((key, text))
    return ",".join(text for _, text in sorted(requirements, key=lambda each: each[0]))
