"""Which Struct describes which kind."""

from collections.abc import Mapping
from typing import Final

from extender.embedded.resources import Resource
from extender.embedded.schema.apps import DEPLOYMENT, REPLICA_SET, SCALE, STATEFUL_SET
from extender.embedded.schema.claims import PERSISTENT_VOLUME_CLAIM
from extender.embedded.schema.devices import DEVICE_CLASS, RESOURCE_SLICE
from extender.embedded.schema.events import EVENT, EVENTS_EVENT
from extender.embedded.schema.meta import DELETE_OPTIONS, STATUS
from extender.embedded.schema.nodes import NODE
from extender.embedded.schema.persistent_volumes import PERSISTENT_VOLUME
from extender.embedded.schema.pods import BINDING, POD
from extender.embedded.schema.policy import EVICTION, LEASE, POD_DISRUPTION_BUDGET, PRIORITY_CLASS
from extender.embedded.schema.resource_claims import RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE
from extender.embedded.schema.reviews import SELF_SUBJECT_ACCESS_REVIEW, SUBJECT_ACCESS_REVIEW, TOKEN_REVIEW
from extender.embedded.schema.services import NAMESPACE, REPLICATION_CONTROLLER, SERVICE
from extender.embedded.schema.storage import CSI_DRIVER, CSI_NODE, CSI_STORAGE_CAPACITY, STORAGE_CLASS, VOLUME_ATTACHMENT
from extender.embedded.schema.types import Struct

KINDS: Final[Mapping[tuple[str, str, str], Struct]] = {
    ("", "v1", "Binding"): BINDING,
    ("", "v1", "DeleteOptions"): DELETE_OPTIONS,
    ("", "v1", "Event"): EVENT,
    ("", "v1", "Namespace"): NAMESPACE,
    ("", "v1", "Node"): NODE,
    ("", "v1", "PersistentVolume"): PERSISTENT_VOLUME,
    ("", "v1", "PersistentVolumeClaim"): PERSISTENT_VOLUME_CLAIM,
    ("", "v1", "Pod"): POD,
    ("", "v1", "ReplicationController"): REPLICATION_CONTROLLER,
    ("", "v1", "Service"): SERVICE,
    ("", "v1", "Status"): STATUS,
    ("apps", "v1", "Deployment"): DEPLOYMENT,
    ("apps", "v1", "ReplicaSet"): REPLICA_SET,
    ("apps", "v1", "StatefulSet"): STATEFUL_SET,
    ("authentication.k8s.io", "v1", "TokenReview"): TOKEN_REVIEW,
    ("authorization.k8s.io", "v1", "SelfSubjectAccessReview"): SELF_SUBJECT_ACCESS_REVIEW,
    ("authorization.k8s.io", "v1", "SubjectAccessReview"): SUBJECT_ACCESS_REVIEW,
    ("autoscaling", "v1", "Scale"): SCALE,
    ("coordination.k8s.io", "v1", "Lease"): LEASE,
    ("events.k8s.io", "v1", "Event"): EVENTS_EVENT,
    ("policy", "v1", "Eviction"): EVICTION,
    ("policy", "v1", "PodDisruptionBudget"): POD_DISRUPTION_BUDGET,
    ("resource.k8s.io", "v1", "DeviceClass"): DEVICE_CLASS,
    ("resource.k8s.io", "v1", "ResourceClaim"): RESOURCE_CLAIM,
    ("resource.k8s.io", "v1", "ResourceClaimTemplate"): RESOURCE_CLAIM_TEMPLATE,
    ("resource.k8s.io", "v1", "ResourceSlice"): RESOURCE_SLICE,
    ("scheduling.k8s.io", "v1", "PriorityClass"): PRIORITY_CLASS,
    ("storage.k8s.io", "v1", "CSIDriver"): CSI_DRIVER,
    ("storage.k8s.io", "v1", "CSINode"): CSI_NODE,
    ("storage.k8s.io", "v1", "CSIStorageCapacity"): CSI_STORAGE_CAPACITY,
    ("storage.k8s.io", "v1", "StorageClass"): STORAGE_CLASS,
    ("storage.k8s.io", "v1", "VolumeAttachment"): VOLUME_ATTACHMENT,
}
"""By group, version and kind."""


def lookup(group: str, version: str, kind: str) -> Struct:
    """The Struct of a kind. Raises KeyError if the kind is not served."""
    return KINDS[group, version, kind]


def type_of(resource: Resource) -> Struct:
    """The Struct of the objects of a resource."""
    return KINDS[resource.group, resource.version, resource.kind]
