"""The pods of a workload: made of its template, told apart by a hash of it, and found by its selector; and the claims
that their specs describe.

Upstream: pkg/controller/resourceclaim/controller.go, handleClaim; pkg/controller/volume/ephemeral/controller.go.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import orjson

from extender.values.objects import decoding
from extender.values.objects.label_selectors import NOTHING, Selector, SelectorError, selector_from_labels, selector_of
from extender.values.objects.meta import LabelSelector, Object

HASH_LABEL: Final = "pod-template-hash"
_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


def controller_reference(owner: Object) -> Object:
    """Returns the reference by which an object belongs to its controller (NewControllerRef)."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_from_template(template: Object, owner: Object) -> Object:
    """Returns a pod of this owner, still without a name (controller_utils.go, GetPodFromTemplate)."""
    metadata = template.get("metadata") or {}
    template_meta = {name: metadata[name] for name in ("labels", "annotations", "finalizers") if metadata.get(name)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**template_meta, "ownerReferences": [controller_reference(owner)]},
        "spec": template.get("spec") or {},
    }


def template_hash(template: Object, collisions: int | None = None) -> str:
    """Returns a short name for a template, as stable as upstream's, which depends on how Go prints it."""
    salt = b"" if collisions is None else collisions.to_bytes(8, "little")
    return "".join(_ALPHABET[ord(digit) % len(_ALPHABET)] for digit in str(fnv1a(template, salt)))


def fnv1a(value: object, salt: bytes = b"") -> int:
    """Returns the 32-bit FNV-1a hash of a JSON value; the order of its members does not matter."""
    code = _FNV_OFFSET
    for byte in orjson.dumps(value, option=orjson.OPT_SORT_KEYS) + salt:
        code = ((code ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return code


def selector_in(obj: Object) -> Selector:
    """Returns the selector in the spec of an object; one that is missing or cannot be used selects nothing."""
    selector = (obj.get("spec") or {}).get("selector")
    if obj["kind"] == "ReplicationController":
        # A plain map of labels; an empty one selects nothing.
        return selector_from_labels(selector) if selector else NOTHING
    return label_selector(selector)


def label_selector(selector: Object | None) -> Selector:
    """Returns a metav1.LabelSelector as a Selector; one that is missing or cannot be used selects nothing."""
    return NOTHING if selector is None else parsed_selector(orjson.dumps(selector))


@lru_cache(maxsize=1024)
def parsed_selector(selector: bytes) -> Selector:
    """Does as `label_selector` for one that is encoded as JSON."""
    try:
        return selector_of(decoding.decode(LabelSelector, selector))
    except (SelectorError, decoding.DecodeError):
        return NOTHING


POD_CLAIM_NAME: Final = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a generated ResourceClaim: the name of the pod's claim that it stands for."""


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
    resolved = {status.get("name") for status in (pod.get("status") or {}).get("resourceClaimStatuses") or ()}
    claims = pod["spec"].get("resourceClaims") or ()
    return [claim for claim in claims if claim.get("resourceClaimTemplateName") and claim["name"] not in resolved]


def resource_claim(pod: Object, claim: Object, template: Object) -> Object:
    """Returns the ResourceClaim of the template for one of the pod's claims, still without a name."""
    obj = _claim(
        "resource.k8s.io/v1",
        "ResourceClaim",
        {"generateName": f"{pod['metadata']['name']}-{claim['name']}-"},
        pod,
        template["spec"],
    )
    obj["metadata"]["annotations"] = {**obj["metadata"].get("annotations", {}), POD_CLAIM_NAME: claim["name"]}
    return obj


def _claim(api_version: str, kind: str, name: Object, pod: Object, template: Object) -> Object:
    metadata = template.get("metadata") or {}
    template_meta = {part: metadata[part] for part in ("labels", "annotations") if metadata.get(part)}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            **template_meta,
            **name,
            "namespace": pod["metadata"]["namespace"],
            "ownerReferences": [controller_reference(pod)],
        },
        "spec": template.get("spec") or {},
    }
