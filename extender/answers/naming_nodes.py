"""Pods that name their node themselves: no scheduler looks at them, and the node's kubelet takes them or does not."""

from collections.abc import Mapping, Sequence
from typing import Final

from extender.answers.lacks import Room, amounts_asked_by
from extender.cache.cluster import Cluster
from extender.objects.pod import Pod
from extender.objects.quantity import QuantityError
from extender.runtime.nominations import NO_NOMINATIONS

_NAMED: Final = 20
"""Pods of which a sentence is said."""


def put_on_their_nodes(cluster: Cluster, pods: Sequence[Pod]) -> tuple[str, ...]:
    """Each is where it says, unless there is no such node, or the node's kubelet refuses it; the sentences say so.

    A pod that says of itself that it runs is there in any case.

    Upstream: pkg/kubelet/lifecycle/predicate.go, Admit (v1.36.2), as far as amounts go.
    """
    places = {node.name: place for place, node in enumerate(cluster.cache.update_snapshot().nodes.objects)} if pods else {}
    said = [_outcome(cluster, pod, places) for pod in pods]
    more = [f"{len(said) - _NAMED} more pods name their nodes themselves"] if len(said) > _NAMED else []
    return (*said[:_NAMED], *more)


def _outcome(cluster: Cluster, pod: Pod, places: Mapping[str, int]) -> str:
    name = pod.spec.node_name
    what = f"{pod.key} is not scheduled, for it names node {name} itself"
    if name not in cluster.nodes:
        return f"{what}; there is no such node, so that it would run nowhere and be deleted"
    try:
        lacking = _lacking(cluster, pod, places[name])
    except QuantityError as exc:
        return f"{what}; it cannot be read: {exc}"
    if not lacking or pod.status.phase == "Running":
        cluster.changed("pods", None, pod)
    if lacking:
        reasons = ", ".join(f"OutOf{resource}" for resource in lacking)
        return f"{what}, whose kubelet {'would refuse' if pod.status.phase != 'Running' else 'refuses'} such a pod: {reasons}"
    return f"{what}, which takes it as it is"


def _lacking(cluster: Cluster, pod: Pod, place: int) -> list[str]:
    room = Room(cluster.cache.update_snapshot(), pod, NO_NOMINATIONS)
    return [resource for resource, asked in amounts_asked_by(pod).items() if asked > 0 and int(room.free(resource)[place]) < asked]
