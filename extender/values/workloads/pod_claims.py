"""Objects that a pod's spec describes: claims for ephemeral volumes, ResourceClaims for templates.

Upstream: pkg/controller/resourceclaim/controller.go, handleClaim; pkg/controller/volume/ephemeral/controller.go
(v1.36.2).
"""

from collections.abc import Iterator
from typing import Final

from extender.values.objects.meta import Object
from extender.values.workloads.templates import controller_reference

POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a generated ResourceClaim: which of the pod's claims it stands for."""


def volume_claims(pod: Object) -> Iterator[Object]:
    """Yields the PersistentVolumeClaim of each ephemeral volume of the pod."""
    for volume in pod["spec"].get("volumes") or ():
        if volume.get("ephemeral") is not None:
            template = volume["ephemeral"].get("volumeClaimTemplate") or {}
            yield _claim(
                "v1", "PersistentVolumeClaim", {"name": f"{pod['metadata']['name']}-{volume['name']}"}, pod, template
            )


def claims_without_object(pod: Object) -> list[Object]:
    """Returns the pod's resource claims of templates for which its status names no ResourceClaim yet."""
    known = {each.get("name") for each in (pod.get("status") or {}).get("resourceClaimStatuses") or ()}
    claims = pod["spec"].get("resourceClaims") or ()
    return [claim for claim in claims if claim.get("resourceClaimTemplateName") and claim["name"] not in known]


def resource_claim(pod: Object, claim: Object, template: Object) -> Object:
    """Returns the ResourceClaim of the template for one of the pod's claims, still without a name."""
    made = _claim(
        "resource.k8s.io/v1",
        "ResourceClaim",
        {"generateName": f"{pod['metadata']['name']}-{claim['name']}-"},
        pod,
        template["spec"],
    )
    made["metadata"]["annotations"] = {**made["metadata"].get("annotations", {}), POD_CLAIM_NAME: claim["name"]}
    return made


def _claim(api_version: str, kind: str, name: Object, pod: Object, template: Object) -> Object:
    metadata = template.get("metadata") or {}
    kept = {part: metadata[part] for part in ("labels", "annotations") if metadata.get(part)}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            **kept,
            **name,
            "namespace": pod["metadata"]["namespace"],
            "ownerReferences": [controller_reference(pod)],
        },
        "spec": template.get("spec") or {},
    }
