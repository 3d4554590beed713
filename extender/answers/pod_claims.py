"""Objects that a new pod's spec only describes: a claim for each ephemeral volume, a ResourceClaim for each template that it names.

Upstream: pkg/controller/resourceclaim/controller.go, handleClaim; pkg/controller/volume/ephemeral/controller.go (v1.36.2).
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from extender.embedded.controllers.pod_claims import POD_CLAIM_NAME
from extender.embedded.resources import RESOURCE_CLAIM_TEMPLATES
from extender.objects.pod import PodResourceClaimStatus

Object = dict[str, Any]
TemplateOf = Callable[[str, str], Object | None]
"""(namespace, name) -> the ResourceClaimTemplate, if it is known."""


def templates_among(objects: Iterable[Mapping[str, Any]]) -> TemplateOf:
    """Those of a cluster in a file."""
    found = {}
    for obj in objects:
        metadata = obj.get("metadata")
        if obj.get("kind") == RESOURCE_CLAIM_TEMPLATES.kind and isinstance(metadata, Mapping) and isinstance(obj.get("spec"), Mapping):
            found[str(metadata.get("namespace") or "default"), str(metadata.get("name"))] = obj

    def template_of(namespace: str, name: str) -> Object | None:
        obj = found.get((namespace, name))
        # Whoever gets it completes it.
        return None if obj is None else copy.deepcopy(dict(obj))

    return template_of


def objects_for(pod: Object, template_of: TemplateOf) -> Iterator[Object]:
    """The objects that controllers make for the pod."""
    metadata, spec = pod["metadata"], pod["spec"]
    for volume in spec.get("volumes") or ():
        if volume.get("ephemeral") is not None:
            template = volume["ephemeral"].get("volumeClaimTemplate") or {}
            yield _object("v1", "PersistentVolumeClaim", f"{metadata['name']}-{volume['name']}", pod, template)
    for claim, template in _templates(pod, template_of):
        made = _object("resource.k8s.io/v1", "ResourceClaim", _claim_name(pod, claim), pod, template)
        made["metadata"]["annotations"] = {**made["metadata"].get("annotations", {}), POD_CLAIM_NAME: claim["name"]}
        yield made


def claim_statuses(pod: Object, template_of: TemplateOf) -> list[PodResourceClaimStatus]:
    """What the pod's status says of them then."""
    return [
        PodResourceClaimStatus(name=claim["name"], resource_claim_name=_claim_name(pod, claim)) for claim, _ in _templates(pod, template_of)
    ]


def unknown_templates(pod: Object, template_of: TemplateOf) -> list[str]:
    """The names of the templates that the pod's claims are to be made of, and that are not known here."""
    named = (claim.get("resourceClaimTemplateName") for claim in _not_made_yet(pod))
    return [name for name in dict.fromkeys(named) if name and template_of(pod["metadata"]["namespace"], name) is None]


def _not_made_yet(pod: Object) -> Iterator[Object]:
    known = {each.get("name") for each in (pod.get("status") or {}).get("resourceClaimStatuses") or ()}
    return (claim for claim in pod["spec"].get("resourceClaims") or () if claim["name"] not in known)


def _templates(pod: Object, template_of: TemplateOf) -> Iterator[tuple[Object, Object]]:
    for claim in _not_made_yet(pod):
        name = claim.get("resourceClaimTemplateName")
        template = template_of(pod["metadata"]["namespace"], name) if name else None
        if template is not None:
            yield claim, template["spec"]


def _claim_name(pod: Object, claim: Object) -> str:
    return f"{pod['metadata']['name']}-{claim['name']}-1"


def _object(api_version: str, kind: str, name: str, pod: Object, template: Object) -> Object:
    metadata = template.get("metadata") or {}
    kept = {part: dict(metadata[part]) for part in ("labels", "annotations") if metadata.get(part)}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"], "controller": True}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {**kept, "name": name, "namespace": pod["metadata"]["namespace"], "ownerReferences": [owner]},
        "spec": template.get("spec") or {},
    }
