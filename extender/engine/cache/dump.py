"""The nodes of the cache in a form that can be compared, for debugging and tests.

Upstream: pkg/scheduler/backend/cache/cache.go, Dump; framework/types.go, NodeInfo.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import final

import msgspec

from extender.engine.cache.column_writer import ColumnWriter
from extender.engine.cache.nodes import ImageState, NodeEntry, counted_images
from extender.engine.snapshot.axes import NATIVE_RESOURCES
from extender.engine.snapshot.columns import ImagesOnNode
from extender.engine.snapshot.pod_attributes import HostPort
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod
from extender.values.objects.quantity import QuantityError
from extender.values.objects.resource_amounts import Resources, allocatable


@final
class NodeDump(msgspec.Struct, frozen=True):
    """One node with the fields of upstream's NodeInfo."""

    has_node: bool
    """False for a ghost: the node was deleted, its pods were not."""
    requested: dict[str, int]
    non_zero_requested: tuple[int, int]
    allocatable: dict[str, int]
    allowed_pods: int
    pods: tuple[str, ...]
    """namespace/name, in NodeInfo order."""
    pods_with_affinity: tuple[str, ...]
    pods_with_required_anti_affinity: tuple[str, ...]
    used_ports: frozenset[HostPort]
    images: dict[str, tuple[int, int]]
    """Name -> (size, number of nodes that have it)."""
    pvc_ref_counts: dict[str, int]


def dump_entry(entry: NodeEntry, writer: ColumnWriter, images: Mapping[str, ImageState]) -> NodeDump:
    """Returns a node, or a ghost, as the cache knows it; `images` are those of all nodes."""
    requested: Counter[str] = Counter()
    cpu = memory = 0
    for slot in entry.slots:
        amounts_of_pod, cpu_of_pod, memory_of_pod = writer.requests(slot)
        requested.update(amounts_of_pod)
        cpu, memory = cpu + cpu_of_pod, memory + memory_of_pod
    amounts, allowed_pods = _allocatable_of(entry.node)
    return node_dump(
        has_node=entry.node is not None,
        requested=dict(requested),
        non_zero=(cpu, memory),
        allocatable=amounts,
        allowed_pods=allowed_pods,
        pods=[writer.pod(slot) for slot in entry.slots],
        used_ports=frozenset(entry.used_ports),
        # A ghost may have an image that no node has any more, or that other nodes have pulled again since.
        images=counted_images(entry.images, entry.images if entry.node is None else images, {}),
    )


def node_dump(
    *,
    has_node: bool,
    requested: dict[str, int],
    non_zero: tuple[int, int],
    allocatable: dict[str, int],
    allowed_pods: int,
    pods: Iterable[Pod],
    used_ports: frozenset[HostPort],
    images: ImagesOnNode,
) -> NodeDump:
    """Returns the dump of a node, with the fields that follow from its pods."""
    pods = list(pods)
    affine = [
        (pod.key, affinity.pod_affinity, affinity.pod_anti_affinity) for pod in pods if (affinity := pod.spec.affinity)
    ]
    return NodeDump(
        has_node=has_node,
        requested=requested,
        non_zero_requested=non_zero,
        allocatable=allocatable,
        allowed_pods=allowed_pods,
        pods=tuple(pod.key for pod in pods),
        pods_with_affinity=tuple(key for key, near, apart in affine if near is not None or apart is not None),
        pods_with_required_anti_affinity=tuple(key for key, _, apart in affine if apart is not None and apart.required),
        used_ports=used_ports,
        images=dict(images),
        pvc_ref_counts=dict(Counter(_claims_used(pods))),
    )


def by_name(resources: Resources) -> dict[str, int]:
    """Returns the amounts by resource name, without zeros."""
    native = zip(NATIVE_RESOURCES, (resources.milli_cpu, resources.memory, resources.ephemeral_storage), strict=True)
    return {name: amount for name, amount in (*native, *resources.scalar.items()) if amount}


def _claims_used(pods: Iterable[Pod]) -> Iterator[str]:
    """Yields namespace/name of every claim that the pods name; like upstream, without generic ephemeral volumes."""
    for pod in pods:
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                yield f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}"


def _allocatable_of(node: Node | None) -> tuple[dict[str, int], int]:
    """Returns (allocatable, allowed pods) of a node; nothing for a ghost, and where allocatable is invalid."""
    if node is None:
        return {}, 0
    try:
        resources, allowed_pods = allocatable(node)
    except QuantityError:
        return {}, 0
    return by_name(resources), allowed_pods
