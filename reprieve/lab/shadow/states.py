"""States: the cluster as a scheduler may have seen it when it decided, from which time has gone on.

Volumes and devices are bound before the pod is. And the order in which changes are seen is not the one in which they
came about.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Final, TypeVar, final

from extender.engine.cache.cluster import Cluster
from extender.values.objects.claims import SELECTED_NODE_ANNOTATION, WAIT_FOR_FIRST_CONSUMER, claim_class, claim_name
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim
from reprieve.lab.shadow.changes import ObservedChange, key_of

Key = tuple[str, str, str]
Outcome = TypeVar("Outcome")

STATES: Final = 60
"""The number of states that are tried for one decision."""


@final
class BeforeBinding:
    """Volumes and devices as they were when a pod's node was chosen.

    State: claims and volumes that were bound, as they were before; None for a volume that did not exist.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._before: dict[Key, HasMetadata | None] = {}

    def see(self, change: ObservedChange) -> None:
        if change.new is None:
            self._before.pop(change.key, None)
        if not _binds(change.old, change.new):
            return
        if isinstance(change.new, PersistentVolumeClaim) and not self._waits_for_pod(change.new):
            return  # it was bound whatever pod may use it
        self._before[change.key] = change.old

    @contextmanager
    def of(self, pod: Pod) -> Iterator[frozenset[Key]]:
        """Unbinds the objects bound for a pod until the end of the block. Yields their keys."""
        restored = [(now, self._before[key_of(now)]) for now in self._bound_for(pod)]
        for now, before in restored:
            self._cluster.changed(now, before)
        try:
            yield frozenset(key_of(now) for now, _ in restored)
        finally:
            for now, before in restored:
                self._cluster.changed(before, now)

    def forget(self, pod: Pod) -> None:
        """Forgets the objects bound for a pod that has its node: for others they are bound."""
        for now in self._bound_for(pod):
            self._before.pop(key_of(now), None)

    def _bound_for(self, pod: Pod) -> list[HasMetadata]:
        if not self._before:
            return []
        objects, namespace = self._cluster.cache.objects, pod.namespace
        bound: list[HasMetadata | None] = []
        for volume in pod.spec.volumes:
            claim = objects.pvcs.get((namespace, claim_name(pod, volume) or ""))
            if claim is not None and key_of(claim) in self._before:
                bound += [claim, objects.pvs.get(claim.spec.volume_name)]
        names = [reference.resource_claim_name for reference in pod.spec.resource_claims]
        names += [status.resource_claim_name for status in pod.status.resource_claim_statuses]
        bound += [objects.resource_claims.get((namespace, name or "")) for name in names]
        return [obj for obj in bound if obj is not None and key_of(obj) in self._before]

    def _waits_for_pod(self, claim: PersistentVolumeClaim) -> bool:
        storage_class = self._cluster.cache.objects.storage_classes.get(claim_class(claim))
        return storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _binds(old: HasMetadata | None, new: HasMetadata | None) -> bool:
    """Whether a claim got its volume or devices, or is about to, or a volume its claim."""
    match new:
        case PersistentVolumeClaim():
            return isinstance(old, PersistentVolumeClaim) and not _has_choice(old) and _has_choice(new)
        case PersistentVolume():
            was_free = old is None or (isinstance(old, PersistentVolume) and old.spec.claim_ref is None)
            return was_free and new.spec.claim_ref is not None
        case ResourceClaim():
            return (
                isinstance(old, ResourceClaim) and old.status.allocation is None and new.status.allocation is not None
            )
        case _:
            return False


def _has_choice(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) or SELECTED_NODE_ANNOTATION in claim.metadata.annotations


# Other orders.


async def in_another_order(
    cluster: Cluster,
    earlier: Sequence[ObservedChange],
    later: Sequence[ObservedChange],
    looks: Callable[[], Awaitable[Outcome | None]],
) -> Outcome | None:
    """Returns the first result of `looks` in the states that the scheduler may have seen; the cluster stays as it is.

    A scheduler knows its own decisions at once: later placements may have been decided before. It hears late of changes
    by others. And where two of its writes overtook each other, an earlier placement was decided later.

    `earlier` are changes that were taken in, the last one first; `later` are placements to come, in order.
    """
    by_others = _by_others(earlier)
    nearest = sorted(product(range(len(by_others) + 1), range(len(later) + 1)), key=sum)[1:]
    states = [(earlier[:undone], later[:0]) for undone in range(1, len(earlier) + 1)]
    states += [(by_others[:unseen], later[:decided]) for unseen, decided in nearest]
    for undone, done in states[:STATES]:
        with _instead(cluster, undone, done):
            outcome = await looks()
        if outcome is not None:
            return outcome
    return None


def _by_others(earlier: Sequence[ObservedChange]) -> list[ObservedChange]:
    """Returns changes by others, the last one first, except to objects that changed again."""
    changes: list[ObservedChange] = []
    fixed_keys: set[tuple[str, str, str]] = set()
    for change in earlier:
        if change.is_placement or change.key in fixed_keys:
            fixed_keys.add(change.key)
        else:
            changes.append(change)
    return changes


@contextmanager
def _instead(cluster: Cluster, undone: Sequence[ObservedChange], done: Sequence[ObservedChange]) -> Iterator[None]:
    """Takes changes back, and others in, until the end of the block."""
    for change in undone:
        cluster.changed(change.new, change.old)
    for change in done:
        cluster.changed(change.old, change.new)
    try:
        yield
    finally:
        for change in reversed(done):
            cluster.changed(change.new, change.old)
        for change in reversed(undone):
            cluster.changed(change.old, change.new)
