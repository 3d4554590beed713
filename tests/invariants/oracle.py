"""The oracle: what must be true of a world, told from its API server's objects and a look at the scheduler's state."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from extender.assembly.scheduling import Scheduling
from extender.client.informers.keeping import keeper_of
from extender.engine.cache import Cache
from extender.engine.cache.cluster import Cluster
from extender.engine.cache.dump import NodeDump
from extender.engine.queue.queued_pod_info import QueuedPodInfo
from extender.rules.api_resources import NODES, PERSISTENT_VOLUME_CLAIMS, PODS, Object, Resource
from extender.values.objects import kinds
from extender.values.objects.decoding import convert
from extender.values.objects.kinds import WatchedKind
from tests.invariants.worlds import World
from tests.invariants.write_monitor import FINISHED, host_ports, milli, milli_cpu, pods_on
from tests.kit.snapshot_dump import dump_snapshot

FOLLOWED: dict[str, tuple[WatchedKind[Any], Resource]] = {
    "nodes": (kinds.NODES, NODES),
    "pods": (kinds.PODS, PODS),
    "pvcs": (kinds.PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUME_CLAIMS),
}
OURS = "default-scheduler"


def wrong_at_rest(world: World) -> list[str]:
    """What is wrong, by the name of the invariant; empty once the world has settled."""
    return [
        *(["the scheduler has ended"] if world.life.task.done() else []),
        *world.life.failed,
        *(f"not lost: {what}" for what in lost_pods(world)),
        *(f"cache: {what}" for what in cache_errors(world)),
        *(f"at rest: {what}" for what in leftovers(world)),
        *(f"unchanged objects: {what}" for what in changed_objects(world)),
        *(f"scheduled: {what}" for what in neglected_pods(world)),
    ]


def wrong_at_any_time(world: World) -> list[str]:
    """What must not be wrong for a moment: what the monitor saw, and misplaced pods as far as the scheduler can know."""
    return [
        *(["the scheduler has ended"] if world.life.task.done() else []),
        *world.life.failed,
        *world.monitor.complaints,
        *(f"not lost: {what}" for what in misplaced_pods(world)),
    ]


async def settles(world: World, seconds: float = 60.0, *, but_first: float = 0.0) -> None:
    """Returns when nothing is wrong any more; fails if that takes too long, or the monitor complains.

    Arguments:
        but_first: seconds that are waited in any case.
    """
    await asyncio.sleep(but_first)
    wrong = wrong_at_rest(world)
    for _ in range(int(seconds)):
        if not wrong:
            break
        await asyncio.sleep(1)
        wrong = wrong_at_rest(world)
    assert not wrong, f"seed {world.seed}, after {seconds} s: {'; '.join(wrong)}"
    assert not world.monitor.complaints, f"seed {world.seed}: {'; '.join(world.monitor.complaints)}"


# Nothing is lost, and nothing is in two places.


def lost_pods(world: World) -> Iterator[str]:
    """Pods that wait for us and that we do not have in exactly one place; and places that hold what is not there."""
    pending = {pod["metadata"]["uid"]: pod for pod in pending_pods(world)}
    places = places_of(world.life.alone)
    for uid, pod in pending.items():
        if len(places.get(uid, [])) != 1 and "deletionTimestamp" not in pod["metadata"]:
            yield f"pod {pod['metadata']['name']} is in {places.get(uid, 'no place')}"
    for uid, homes in places.items():
        if uid not in pending:
            yield f"{uid} is in {homes} and does not wait"
    for info in queued(world.life.alone):
        pending_pod = pending.get(info.pod.uid)
        if pending_pod is not None and info.pod.metadata.resource_version != pending_pod["metadata"]["resourceVersion"]:
            yield f"pod {info.key} waits as it was before"


def misplaced_pods(world: World) -> Iterator[str]:
    """As `lost_pods`, measured by what the informers have told, and so at any time."""
    cluster, places = world.life.alone.world.cluster, places_of(world.life.alone)
    for uid, pod in cluster.pending.items():
        homes = places.pop(uid, [])
        if len(homes) != 1 and pod.scheduler_name == OURS and not pod.is_terminating and uid not in cluster.unreadable:
            yield f"pod {pod.name} is in {homes or 'no place'}"
    for uid, homes in places.items():
        if homes != ["under way"]:
            yield f"{uid} is in {homes} and is not known to wait"


def pending_pods(world: World) -> list[Object]:
    """Ours that have no node and are not finished."""
    pods = [
        pod
        for pod in world.registry.list(PODS)
        if not pod["spec"].get("nodeName") and pod["spec"]["schedulerName"] == OURS
    ]
    return [pod for pod in pods if pod.get("status", {}).get("phase") not in FINISHED]


def places_of(alone: Scheduling) -> dict[str, list[str]]:
    """UID -> where the pod is. Being decided about and being bound are one place."""
    queue = alone.world.queue
    places: dict[str, list[str]] = {}
    for name, infos in {
        "activeQ": queue.pods_in_active_q(),
        "backoffQ": queue.pods_in_backoff_q(),
        "errorBackoffQ": queue.pods_in_backoff_q(failed=True),
        "unschedulable": queue.unschedulable_pods(),
    }.items():
        for info in infos:
            places.setdefault(info.pod.uid, []).append(name)
    for uid in {info.pod.uid for info in queue.in_flight_pods()} | alone.world.cluster.cache.assumed_pods:
        places.setdefault(uid, []).append("under way")
    return places


def queued(alone: Scheduling) -> list[QueuedPodInfo]:
    """All that wait."""
    queue = alone.world.queue
    return [
        *queue.pods_in_active_q(),
        *queue.pods_in_backoff_q(),
        *queue.pods_in_backoff_q(failed=True),
        *queue.unschedulable_pods(),
    ]


# The cache is what it would be if it were filled again.


def cache_errors(world: World) -> Iterator[str]:
    """Where the cache, and the columns that are made from it, differ from a cache filled with what the server has
    now.
    """
    fresh, cluster = Cluster(), world.life.alone.world.cluster
    for kind, resource in FOLLOWED.values():
        keep = keeper_of(kind)
        for obj in world.registry.list(resource):
            if resource is not PODS or obj.get("status", {}).get("phase") not in FINISHED:
                fresh.changed(None, keep(convert(kind.type, json.loads(json.dumps(obj)))))
    expected, actual = fresh.cache.dump(), cluster.cache.dump()
    for name in sorted({*expected, *actual}):
        if in_any_order(expected.get(name)) != in_any_order(actual.get(name)):
            yield f"node {name} is cached as {actual.get(name)} and is {expected.get(name)}"
    columns = dump_snapshot(cluster.cache.update_snapshot())
    for name, dump in dump_snapshot(fresh.cache.update_snapshot()).items():
        if in_any_order(columns.get(name)) != in_any_order(dump):
            yield f"the columns of node {name} say {columns.get(name)} and should say {dump}"
    if cluster.pending.keys() != fresh.pending.keys():
        yield f"pending are {sorted(fresh.pending)}, and known as that are {sorted(cluster.pending)}"
    if uids(cluster.cache) != uids(fresh.cache):
        yield f"cached are {uids(cluster.cache)}, and there are {uids(fresh.cache)}"
    if cluster.cache.objects.pvcs != fresh.cache.objects.pvcs:
        yield "claims are not what they are"


def in_any_order(dump: NodeDump | None) -> NodeDump | None:
    """Pods are in the order of their arrival."""
    return (
        None
        if dump is None
        else replace(
            dump,
            pods=tuple(sorted(dump.pods)),
            pods_with_affinity=tuple(sorted(dump.pods_with_affinity)),
            pods_with_required_anti_affinity=tuple(sorted(dump.pods_with_required_anti_affinity)),
        )
    )


def uids(cache: Cache) -> list[str]:
    """Of the pods that have a node."""
    return sorted(pod.uid for pod in cache.pods)


# At rest, nothing is under way.


def leftovers(world: World) -> Iterator[str]:
    """What should have come to its end."""
    alone = world.life.alone
    queue = alone.world.queue
    for name, what in {
        "in flight": [info.key for info in queue.in_flight_pods()],
        "kept for pods in flight": queue.in_flight_log(),
        "assumed": sorted(alone.world.cluster.cache.assumed_pods),
        "in limbo": sorted(world.life.dispatcher.in_limbo),
        "waiting for leave": [waiting.pod.key for waiting in alone.world.waiting_pods],
    }.items():
        if what:
            yield f"{name}: {what}"
    promised = {pod.uid: node for node, pods in queue.nominated_pods().items() for pod in pods}
    nodes = {pod["metadata"]["uid"]: pod.get("status", {}).get("nominatedNodeName", "") for pod in pending_pods(world)}
    # A gated pod that is promised room is no affair of the queue yet.
    nodes = {uid: node for uid, node in nodes.items() if node}
    if promised != nodes:
        yield f"promised is {promised}, and pods say {nodes}"


# What informers hold is nobody's to change.


def changed_objects(world: World) -> Iterator[str]:
    """Objects that are not what they were when they came; or not what the server says, because they share something
    with such a one.
    """
    for key, (obj, before) in world.life.known.items():
        if msgspec.json.encode(obj) != before:
            yield f"{'/'.join(key)} was {before!r} and is {msgspec.json.encode(obj)!r}"
    for table, (kind, resource) in FOLLOWED.items():
        keep = keeper_of(kind)
        for stored in world.registry.list(resource):
            fresh = keep(convert(kind.type, json.loads(json.dumps(stored))))
            local, _ = world.life.known.get((table, fresh.metadata.namespace, fresh.metadata.name), (fresh, b""))
            is_as_new = local.metadata.resource_version == fresh.metadata.resource_version
            if is_as_new and msgspec.json.encode(local) != msgspec.json.encode(fresh):
                yield (
                    f"{table} {fresh.metadata.name} is {msgspec.json.encode(local)!r} and should be "
                    f"{msgspec.json.encode(fresh)!r}"
                )


# Whoever can run, runs.


def neglected_pods(world: World) -> Iterator[str]:
    """Pods that wait although there is room, what is promised to others left aside. Knows cpu, numbers, ports, cordons,
    names of nodes.
    """
    waiting = [
        pod
        for pod in pending_pods(world)
        if not pod["spec"].get("schedulingGates") and "deletionTimestamp" not in pod["metadata"]
    ]
    nominated: Counter[str] = Counter()
    for pod in waiting:
        node = pod.get("status", {}).get("nominatedNodeName", "")
        if node:
            nominated[node] += milli_cpu(pod)
    for node in world.registry.list(NODES):
        if node["spec"].get("unschedulable") or node["spec"].get("taints"):
            continue
        name, pods = node["metadata"]["name"], pods_on(world.registry, node["metadata"]["name"])
        allocatable = node["status"]["allocatable"]
        free = milli(allocatable["cpu"]) - sum(map(milli_cpu, pods))
        for pod in waiting:
            share = milli_cpu(pod) if pod.get("status", {}).get("nominatedNodeName") == name else 0
            fits = (
                milli_cpu(pod) <= free - nominated[name] + share and len(pods) + 1 <= milli(allocatable["pods"]) // 1000
            )
            fits = fits and not set(host_ports(pod)) & {port for other in pods for port in host_ports(other)}
            if fits and pod["spec"].get("nodeSelector", {}).get("name", name) == name:
                yield f"pod {pod['metadata']['name']} waits, and fits on node {name}"
