"""ImageLocality: prefers nodes that have the pod's images already."""

from collections import Counter
from typing import Any, Final, final

import numpy as np

from extender.engine import framework as fwk
from extender.engine.snapshot.axes import Int64s

MEBIBYTE: Final = 1024 * 1024
MIN_THRESHOLD: Final = 23 * MEBIBYTE
"""Fewer bytes than this on a node score 0."""
MAX_CONTAINER_THRESHOLD: Final = 1000 * MEBIBYTE
"""More bytes than this per container score no more."""


@final
class ImageLocality(fwk.SignPlugin, fwk.ScorePlugin):
    """Prefers nodes that have the pod's images; large and widespread images count most.

    Upstream: framework/plugins/imagelocality/image_locality.go.
    """

    looks_at_pods = False
    looks_only_at_node = True

    def __init__(self, arguments: Any = None, handle: fwk.Handle | None = None) -> None:
        super().__init__(arguments, handle)
        self._images = fwk.PodMemo[Counter[str]]()

    def sign_pod(self, pod: fwk.Pod) -> tuple[tuple[str, ...]]:
        return (tuple(_images(pod)),)

    def score(self, state: fwk.CycleState, pod: fwk.Pod, rows: fwk.Rows) -> Int64s:
        """(R,) 0..100, from the bytes of the pod's images there, each scaled by the share of nodes that have it."""
        nodes = rows.snapshot.nodes
        images = self._images.of(state, lambda: Counter(map(normalized_image_name, _images(pod))))
        present = np.zeros(len(rows), np.int64)
        for image, times in images.items():
            column = nodes.image(image)
            if column.is_known:
                present += _scaled(rows.of_nodes(column.size), rows.of_nodes(column.num_nodes), len(nodes)) * times
        if not present.any():
            return present
        # Image volumes count here, too (kubernetes#138951).
        ceiling = MAX_CONTAINER_THRESHOLD * images.total()
        clamped = np.where(present < MIN_THRESHOLD, MIN_THRESHOLD, np.minimum(present, ceiling))
        scores: Int64s = fwk.MAX_NODE_SCORE * (clamped - MIN_THRESHOLD) // (ceiling - MIN_THRESHOLD)
        return scores


def normalized_image_name(name: str) -> str:
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def _images(pod: fwk.Pod) -> list[str]:
    spec = pod.spec
    containers = [container.image for container in (*spec.init_containers, *spec.containers)]
    return containers + [volume.image.reference for volume in spec.volumes if volume.image is not None]


def _scaled(size: Int64s, num_nodes: Int64s, num_all_nodes: int) -> Int64s:
    """The bytes of images, each times the share of nodes that have it (scaledImageScore)."""
    # float64, because upstream's result is rounded in the same places.
    scaled: Int64s = (size * (num_nodes / num_all_nodes)).astype(np.int64)
    return scaled
