"""How many of a pod fit, one after the other, without evicting anybody: the scheduler's own decisions, until one fails."""

from collections import Counter
from collections.abc import Mapping
from typing import final

from extender import framework as fwk
from extender.answers.filling_up import FilledUp, filled_up
from extender.answers.types import Capacity, NodeRoom
from extender.cache.cluster import Cluster
from extender.concurrency.abandoned import AbandonedError, IsWanted, always_wanted
from extender.objects.decoding import replaced
from extender.objects.devices import ResourceClaimStatus
from extender.objects.meta import OwnerReference
from extender.objects.pod import Pod, PodResourceClaimStatus, PodStatus
from extender.objects.quantity import QuantityError
from extender.objects.resources import validate_requests
from extender.runtime.errors import PluginError
from extender.runtime.framework import Framework
from extender.runtime.from_reserve_to_bind import run_reserve_plugins, run_unreserve_plugins
from extender.runtime.nominations import Nominations
from extender.scheduler.schedule_pod import FitError, SchedulingAlgorithm
from extender.scheduler.world import refused_on_one_node


def capacity(cluster: Cluster, frameworks: Mapping[str, Framework], pod: Pod, limit: int, is_wanted: IsWanted = always_wanted) -> Capacity:
    """Place copies of the pod until one fits nowhere. Each is assumed where it would go, and what it needs is reserved.

    Where it makes no difference who goes where, nodes are filled up in step instead, which counts the same.

    Copies are pods that have just been created: on no node, promised nothing, held back by no gate, each with claims of its own where
    controllers have made some for the pod.

    Arguments:
        cluster: is changed: hand over a fork.
        frameworks: by scheduler name; of this cluster, and of nobody else.
        limit: copies counted at most.
        is_wanted: asked before every copy that is placed by itself.

    Raises:
        AbandonedError: nobody wants to know any more.
    """
    framework = frameworks.get(pod.scheduler_name)
    if framework is None:
        return _stopped(Counter(), f'no profile here for schedulerName "{pod.scheduler_name}"')
    try:
        validate_requests(pod)
    except QuantityError as exc:
        return _stopped(Counter(), str(exc))
    nominations = Nominations(cluster.nominees(frameworks))
    try:
        full = _filled_up(cluster, framework, nominations, _copy(pod, 0), limit)
    except PluginError as exc:
        return _stopped(Counter(), str(exc))
    if full is not None:
        return _stopped(Counter(full.by_node), full.message)
    by_node: Counter[str] = Counter()
    algorithm = SchedulingAlgorithm()
    while True:
        if not is_wanted():
            raise AbandonedError
        try:
            node = _placed(cluster, framework, algorithm, nominations, _with_claims(cluster, pod, _copy(pod, by_node.total())))
        except (FitError, fwk.NoNodesAvailableError, PluginError, _NotKeptError) as exc:
            return _stopped(by_node, str(exc))
        if by_node.total() == limit:
            return Capacity(fits=limit, by_node=_rooms(by_node), stopped_by="", is_limit=True)
        by_node[node] += 1


@final
class _NotKeptError(Exception):
    """A node was chosen, and a plugin would not keep there what the pod needs."""


def _copy(pod: Pod, number: int) -> Pod:
    # Only names differ, so that what is known of one copy need not be asked again for the next.
    return replaced(
        pod,
        metadata=replaced(pod.metadata, name=f"{pod.name}-{number}", uid=f"{pod.uid or pod.key}/copy-{number}", deletion_timestamp=None),
        spec=replaced(pod.spec, node_name="", scheduling_gates=[]),
        status=PodStatus(),
    )


def _with_claims(cluster: Cluster, pod: Pod, copy: Pod) -> Pod:
    """The copy with claims like those that were made for the pod: of templates, and of its ephemeral volumes."""
    objects, owner = cluster.cache.objects, OwnerReference(api_version="v1", kind="Pod", name=copy.name, uid=copy.uid, controller=True)
    statuses = []
    made = {claim.name for claim in pod.spec.resource_claims if claim.resource_claim_template_name}
    for status in pod.status.resource_claim_statuses:
        claim = objects.resource_claims.get((pod.namespace, status.resource_claim_name or ""))
        if claim is None or status.name not in made:
            continue
        meta = replaced(claim.metadata, name=f"{copy.name}-{status.name}-1", uid=f"{copy.uid}/{status.name}", owner_references=[owner])
        cluster.changed("resource_claims", None, replaced(claim, metadata=meta, status=ResourceClaimStatus()))
        statuses.append(PodResourceClaimStatus(name=status.name, resource_claim_name=meta.name))
    for volume in pod.spec.volumes:
        wanted = objects.pvcs.get((pod.namespace, f"{pod.name}-{volume.name}")) if volume.ephemeral is not None else None
        if wanted is not None and not wanted.spec.volume_name:
            meta = replaced(wanted.metadata, name=f"{copy.name}-{volume.name}", uid=f"{copy.uid}/{volume.name}", owner_references=[owner])
            cluster.changed("pvcs", None, replaced(wanted, metadata=meta))
    return replaced(copy, status=PodStatus(resource_claim_statuses=statuses)) if statuses else copy


def _filled_up(cluster: Cluster, framework: Framework, nominations: Nominations, pod: Pod, limit: int) -> FilledUp | None:
    """None if copies of the pod have to be placed one by one."""
    slot = cluster.cache.nominate(pod)
    full = filled_up(framework, cluster.cache.update_snapshot(), nominations, pod, slot, limit)
    cluster.cache.denominate(pod.uid)
    return full


def _placed(cluster: Cluster, framework: Framework, algorithm: SchedulingAlgorithm, nominations: Nominations, pod: Pod) -> str:
    """The node that the pod counts on from now on."""
    snapshot = cluster.cache.update_snapshot()
    state = framework.begin_cycle(snapshot, nominations)
    node = algorithm.schedule_pod(framework, snapshot, pod, nominations, state=state).suggested_host
    assumed = replaced(pod, spec=replaced(pod.spec, node_name=node))
    cluster.cache.assume_pod(assumed)
    status = run_reserve_plugins(framework.plugins, state, assumed, node)
    if not status.is_success:
        run_unreserve_plugins(framework.plugins, state, assumed, node)
        cluster.cache.forget_pod(assumed)
        raise _NotKeptError(refused_on_one_node(status).status.message if status.is_rejected else status.message)
    return node


def _stopped(by_node: Counter[str], why: str) -> Capacity:
    return Capacity(fits=by_node.total(), by_node=_rooms(by_node), stopped_by=why)


def _rooms(by_node: Counter[str]) -> tuple[NodeRoom, ...]:
    """The nodes that take most come first."""
    return tuple(NodeRoom(node=node, pods=pods) for node, pods in sorted(by_node.items(), key=lambda item: (-item[1], item[0])))
