"""The pods and claims of a StatefulSet, each with its ordinal.

Upstream: pkg/controller/statefulset/stateful_set_utils.go (v1.36.2).
"""

import re
from typing import Final

import orjson

from extender.embedded.controllers.owning import pod_from_template
from extender.embedded.controllers.seen import Seen
from extender.embedded.resources import Object

REVISION_LABEL: Final = "controller-revision-hash"
POD_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
_ORDINAL: Final = re.compile(r"(.*)-([0-9]+)")


def ordinal_of(name: str, parent: str) -> int | None:
    """The ordinal in a pod's name; None if it is not the name of a pod of this set."""
    parts = _ORDINAL.fullmatch(name)
    return int(parts[2]) if parts is not None and parts[1] == parent else None


def revision_name(content: Object) -> str:
    """A short name for the set's template, after the set's name."""
    code = 0x811C9DC5
    for byte in orjson.dumps(content["spec"].get("template"), option=orjson.OPT_SORT_KEYS):
        code = ((code ^ byte) * 0x01000193) & 0xFFFFFFFF
    return f"{content['metadata']['name']}-{code:x}"


def claims_of(content: Object, ordinal: int) -> list[Object]:
    """The claims that the pod of this ordinal has for itself."""
    name, labels = content["metadata"]["name"], (content["spec"].get("selector") or {}).get("matchLabels") or {}
    claims = []
    for template in content["spec"].get("volumeClaimTemplates") or ():
        metadata = template.get("metadata") or {}
        claims.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": f"{metadata['name']}-{name}-{ordinal}",
                    "labels": {**(metadata.get("labels") or {}), **labels},
                    **({"annotations": metadata["annotations"]} if metadata.get("annotations") else {}),
                },
                "spec": template["spec"],
            }
        )
    return claims


def pod_of(content: Object, owner: Seen, ordinal: int, revision: str) -> Object:
    """The pod of this ordinal. Upstream: newVersionedStatefulSetPod."""
    set_name, spec = content["metadata"]["name"], content["spec"]
    name = f"{set_name}-{ordinal}"
    pod = pod_from_template(spec.get("template") or {}, owner)
    metadata = pod["metadata"]
    metadata["name"] = name
    mine = {POD_NAME_LABEL: name, INDEX_LABEL: str(ordinal), REVISION_LABEL: revision}
    metadata["labels"] = {**(metadata.get("labels") or {}), **mine}
    claimed = {
        template["metadata"]["name"]: f"{template['metadata']['name']}-{name}" for template in spec.get("volumeClaimTemplates") or ()
    }
    volumes = [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claimed.items()]
    others = [volume for volume in pod["spec"].get("volumes") or () if volume.get("name") not in claimed]
    pod["spec"] = {**pod["spec"], "hostname": name}
    if spec.get("serviceName"):
        pod["spec"]["subdomain"] = spec["serviceName"]
    if volumes or others:
        pod["spec"]["volumes"] = [*volumes, *others]
    return pod
