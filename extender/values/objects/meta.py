"""The parts that Kubernetes objects share: metadata, owners, selectors."""

from typing import Annotated, Any

import msgspec

Object = dict[str, Any]
"""An API object as JSON values."""

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""Go's integers: what does not fit is refused where it is decoded, not where it is added up."""


class ApiObject(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Base of objects and parts; subclasses have its options: camelCase, no unknown fields, no empty ones."""


class OwnerReference(ApiObject, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(ApiObject, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: tuple[str, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class HasMetadata(ApiObject, frozen=True):
    """Base of the objects that have a name of their own."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations


class Namespaced(HasMetadata, frozen=True):
    """Base of objects in a namespace, which is `default` where they name none."""

    @property
    def namespace(self) -> str:
        return self.metadata.namespace or "default"

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def key(self) -> str:
        """`namespace/name`, as upstream's logs, queues and messages name it."""
        meta = self.metadata
        return f"{meta.namespace or 'default'}/{meta.name}"


def version(meta: ObjectMeta) -> int:
    """Returns metadata.resourceVersion as a number; 0 for objects that never were on an API server."""
    text = meta.resource_version
    return int(text) if text.isascii() and text.isdigit() else 0


class LabelSelectorRequirement(ApiObject, frozen=True):
    """metav1.LabelSelectorRequirement: `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(ApiObject, frozen=True):
    """metav1.LabelSelector. Absent (None) selects nothing, empty selects everything."""

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class Condition(ApiObject, frozen=True):
    """A pod or node condition, with the fields that scheduling looks at."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class NodeSelectorRequirement(ApiObject, frozen=True):
    """v1.NodeSelectorRequirement: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class NodeSelectorTerm(ApiObject, frozen=True):
    """v1.NodeSelectorTerm: its requirements are AND-ed; an empty term matches nothing."""

    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(ApiObject, frozen=True):
    """v1.NodeSelector: its terms are OR-ed."""

    node_selector_terms: list[NodeSelectorTerm] = []
