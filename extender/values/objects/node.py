"""Node, its taints and images, and the decoding of nodes: they come by the thousands, and many have the same images."""

from typing import Final, final

import msgspec
from msgspec import Raw

from extender.values import limits
from extender.values.objects import decoding
from extender.values.objects.meta import ApiObject, Condition, HasMetadata, Int64

ResourceList = dict[str, str | int | float]
"""Resource name -> quantity as written; `objects.quantity` reads it."""

HOSTNAME_LABEL = "kubernetes.io/hostname"
ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
BETA_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION_LABEL = "failure-domain.beta.kubernetes.io/region"


class Taint(ApiObject, frozen=True):
    """v1.Taint: `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str = ""
    value: str = ""
    effect: str = ""


class ContainerImage(ApiObject, frozen=True):
    """v1.ContainerImage: one image under all its names; size in bytes."""

    names: list[str] = []
    size_bytes: Int64 = 0


class NodeSpec(ApiObject, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] = []


class NodeStatus(ApiObject, frozen=True):
    allocatable: ResourceList = {}
    capacity: ResourceList = {}
    conditions: list[Condition] = []
    images: list[ContainerImage] = []
    declared_features: list[str] = []


class Node(HasMetadata, frozen=True):
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


KEPT_IMAGES: Final = 2**16
"""The most images that are remembered."""

KEPT_IMAGE_BYTES: Final = 2**10
"""The most bytes of an image that is remembered."""


class _Status(NodeStatus, frozen=True):
    images: list[Raw] = []  # type: ignore[assignment]


class _Node(Node, frozen=True):
    status: _Status = msgspec.field(default_factory=_Status)


@final
class NodeDecoder:
    """Decodes nodes as `decoding.decode` does, in less memory: nodes share images that several report, 50 on each.
    Images beyond `limits.IMAGES_WEIGHED` are left out.

    State: the images that came before.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, ContainerImage] = {}

    def __call__(self, data: Raw) -> Node:
        """Returns the node that JSON holds. Raises DecodeError."""
        node: Node
        try:
            node = read = _DECODER.decode(data)
            documents = map(bytes, read.status.images[: limits.IMAGES_WEIGHED])
            images = [self._known.get(document) or self._new_image(document) for document in documents]
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            node = decoding.decode(Node, data)  # says what is wrong, or reads nulls
            images = node.status.images[: limits.IMAGES_WEIGHED]
        full_status = node.status
        status = NodeStatus(
            full_status.allocatable, full_status.capacity, full_status.conditions, images, full_status.declared_features
        )
        return Node(metadata=node.metadata, spec=node.spec, status=status)

    def _new_image(self, document: bytes) -> ContainerImage:
        image = _IMAGE_DECODER.decode(document)
        if len(document) <= KEPT_IMAGE_BYTES:
            if len(self._known) >= KEPT_IMAGES:
                self._known.clear()
            self._known[document] = image
        return image


_DECODER: Final = msgspec.json.Decoder(_Node)
_IMAGE_DECODER: Final = msgspec.json.Decoder(ContainerImage)
