"""Taking possession: owner references that controllers put on what is theirs, and take off what is not."""

from extender.embedded.controllers.seen import Seen
from extender.embedded.controllers.writes import Update
from extender.embedded.resources import Object


def controller_reference(owner: Seen) -> Object:
    """The reference by which an object belongs to its controller. Upstream: controller_ref.go, NewControllerRef."""
    return {
        "apiVersion": owner.resource.api_version,
        "kind": owner.resource.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def adopted(seen: Seen, owner: Seen) -> Update:
    """The object, belonging to this owner from now on."""
    content = seen.content()
    references = [each for each in content["metadata"].get("ownerReferences") or () if each.get("uid") != owner.uid]
    content["metadata"]["ownerReferences"] = [*references, controller_reference(owner)]
    return Update(seen, content)


def released(seen: Seen, *uids: str) -> Update:
    """The object without the references to these owners."""
    content = seen.content()
    references = [each for each in content["metadata"].get("ownerReferences") or () if each.get("uid") not in uids]
    if references:
        content["metadata"]["ownerReferences"] = references
    else:
        content["metadata"].pop("ownerReferences", None)
    return Update(seen, content)


def pod_from_template(template: Object, owner: Seen) -> Object:
    """A pod of this owner, still without a name. Upstream: pkg/controller/controller_utils.go, GetPodFromTemplate."""
    metadata = template.get("metadata") or {}
    kept = {name: metadata[name] for name in ("labels", "annotations", "finalizers") if metadata.get(name)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**kept, "ownerReferences": [controller_reference(owner)]},
        "spec": template.get("spec") or {},
    }
