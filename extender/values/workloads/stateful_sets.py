"""StatefulSets: the pods and claims of one, each with its ordinal.

Upstream: pkg/controller/statefulset/stateful_set_utils.go.
"""

import re
from typing import Final

from extender.values.objects.meta import Object
from extender.values.workloads.templates import fnv1a, pod_from_template

REVISION_LABEL: Final = "controller-revision-hash"
POD_NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"
_ORDINAL: Final = re.compile(r"(.*)-([0-9]+)")


def ordinal_of(name: str, parent: str) -> int | None:
    """Returns the ordinal in a pod's name; None if it is not the name of a pod of this set."""
    parts = _ORDINAL.fullmatch(name)
    return int(parts[2]) if parts is not None and parts[1] == parent else None


def revision_name(stateful_set: Object) -> str:
    """Returns a short name for the set's template, after the set's name."""
    return f"{stateful_set['metadata']['name']}-{fnv1a(stateful_set['spec'].get('template')):x}"


def claims_of(stateful_set: Object, ordinal: int) -> list[Object]:
    name = stateful_set["metadata"]["name"]
    labels = (stateful_set["spec"].get("selector") or {}).get("matchLabels") or {}
    claims = []
    for template in stateful_set["spec"].get("volumeClaimTemplates") or ():
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


def pod_of(stateful_set: Object, ordinal: int) -> Object:
    """Returns the pod of this ordinal. Upstream: newVersionedStatefulSetPod."""
    set_name, spec = stateful_set["metadata"]["name"], stateful_set["spec"]
    name = f"{set_name}-{ordinal}"
    pod = pod_from_template(spec.get("template") or {}, stateful_set)
    metadata = pod["metadata"]
    metadata["name"] = name
    mine = {POD_NAME_LABEL: name, INDEX_LABEL: str(ordinal), REVISION_LABEL: revision_name(stateful_set)}
    metadata["labels"] = {**(metadata.get("labels") or {}), **mine}
    claimed = {
        template["metadata"]["name"]: f"{template['metadata']['name']}-{name}"
        for template in spec.get("volumeClaimTemplates") or ()
    }
    volumes = [{"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claimed.items()]
    other_volumes = [volume for volume in pod["spec"].get("volumes") or () if volume.get("name") not in claimed]
    pod["spec"] = {**pod["spec"], "hostname": name}
    if spec.get("serviceName"):
        pod["spec"]["subdomain"] = spec["serviceName"]
    if volumes or other_volumes:
        pod["spec"]["volumes"] = [*volumes, *other_volumes]
    return pod
