"""ImageLocality: prefers nodes that have the pod's images already."""

from typing import Final, final

import numpy as np

from extender import framework as fwk
from extender.snapshot.axes import Int64s
from extender.snapshot.columns import ImageColumn

MEBIBYTE: Final = 1024 * 1024
MIN_THRESHOLD: Final = 23 * MEBIBYTE
"""Fewer bytes than this on a node score 0."""
MAX_CONTAINER_THRESHOLD: Final = 1000 * MEBIBYTE
"""More bytes than this per container score no more."""


@final
class ImageLocality(fwk.SignPlugin, fwk.ScorePlugin):
    """Prefers nodes that have the pod's images; large and widespread images count most.

    Upstream: framework/plugins/imagelocality/image_locality.go (v1.36.2).
    """

    looks_at_pods = False
    looks_only_at_node = True

    def sign_pod(self, pod: fwk.Pod) -> tuple[int, tuple[str, ...]]:
        return _num_containers(pod), tuple(_images(pod))

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        """(R,) 0..100, from the bytes of the pod's images on the node, each scaled by the share of nodes that have the image."""
        nodes = rows.snapshot.nodes
        columns = [column for image in _images(pod) if (column := nodes.image(normalized_image_name(image))).is_known]
        present = np.zeros(len(rows), np.int64)
        if not columns:
            return present
        ceiling = MAX_CONTAINER_THRESHOLD * _num_containers(pod)
        for column in columns:
            present += _scaled_sizes(rows, column)
        clamped = np.where(present < MIN_THRESHOLD, MIN_THRESHOLD, np.minimum(present, ceiling))
        scores: Int64s = fwk.MAX_NODE_SCORE * (clamped - MIN_THRESHOLD) // (ceiling - MIN_THRESHOLD)
        return scores


def normalized_image_name(name: str) -> str:
    """Returns the image's name with a tag: `latest` if it has none."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _num_containers(pod: fwk.Pod) -> int:
    return len(pod.spec.init_containers) + len(pod.spec.containers)


def _images(pod: fwk.Pod) -> list[str]:
    """Returns the images of init containers, containers and image volumes, with repetitions."""
    spec = pod.spec
    containers = [container.image for container in (*spec.init_containers, *spec.containers)]
    return containers + [volume.image.reference for volume in spec.volumes if volume.image is not None]


def _scaled_sizes(rows: fwk.Rows, column: ImageColumn) -> Int64s:
    """(R,) the image's bytes where the node has it, times the share of nodes that have it. Upstream: scaledImageScore."""
    # float64, because upstream's result is rounded in the same places.
    spread = rows.of_nodes(column.num_nodes) / len(rows.snapshot.nodes)
    return (rows.of_nodes(column.size) * spread).astype(np.int64)
