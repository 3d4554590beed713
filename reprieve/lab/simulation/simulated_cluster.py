"""The API server of a simulation, with its controllers. It performs the scheduler's writes on objects in memory."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar, cast, final

import msgspec

from extender.engine import framework as fwk
from extender.engine.cache.cluster import ClusterFeed, Subscriber
from extender.engine.framework import storage_calls
from extender.values.golang.times import rfc3339
from extender.values.klog.logger import Logger
from extender.values.objects.decoding import convert, replaced
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.grouping import PodGroup
from extender.values.objects.kinds import kind_of
from extender.values.objects.meta import Condition, HasMetadata, OwnerReference
from extender.values.objects.node import Node
from extender.values.objects.pod import Pod, PodResourceClaimStatus
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from extender.values.workloads.templates import POD_CLAIM_NAME
from extender.values.workloads.volumes import provisioned
from reprieve.lab.simulation.storage_writes import (
    ClaimWrite,
    bound,
    claim_after,
    created_claim,
    volume_after,
    volume_claim_after,
    without_user,
)

T = TypeVar("T")
H = TypeVar("H", bound=HasMetadata)

Key = tuple[type[HasMetadata], str, str]
"""(type, namespace, name); the namespace of objects without one is empty."""

BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""Virtual time 0, where an object says when something happened."""

_LOG: Final = Logger(__name__)


@final
@dataclass(frozen=True, slots=True)
class Lifetime:
    """How long a pod runs and how long it takes to stop, in seconds of virtual time."""

    runs_for: float | None = None
    """None for a pod that runs until it is deleted."""
    grace: float = 0.0


ENDLESS: Final = Lifetime()


@final
class SimulatedCluster(fwk.Dispatcher):
    """Keeps the objects, passes their changes on, and lets bound pods run.

    A write is seen by the subscribers when it is performed, as if watches took no time. State: the objects, their last
    version, the lifetimes of pods, and the number of pods that are about to stop.
    """

    def __init__(self) -> None:
        self.num_running_out = 0
        """Bound pods that will succeed by themselves."""
        self.num_stopping = 0
        """Deleted pods whose grace is not over."""
        self.claim_templates: dict[tuple[str, str], ResourceClaim] = {}
        """(namespace, name) -> a claim as the ResourceClaimTemplate of that name describes it."""
        self.num_calls = 0
        """Calls that are under way."""
        self._feed = ClusterFeed()
        self._objects: dict[Key, HasMetadata] = {}
        self._lifetimes: dict[str, Lifetime] = {}
        self._last_version = 0

    def subscribe(self, subscriber: Subscriber) -> None:
        self._feed.subscribe(subscriber)

    # Objects.

    def find(self, kind: type[H], name: str, namespace: str = "") -> H | None:
        return cast("H | None", self._objects.get((kind, namespace, name)))

    def all_of(self, kind: type[H], namespace: str | None = None) -> Iterator[H]:
        """Yields the objects of a kind, in order of arrival: of one namespace, or of all."""
        for (of_kind, in_namespace, _), obj in list(self._objects.items()):
            if of_kind is kind and namespace in (None, in_namespace):
                yield cast("H", obj)

    def put(self, obj: HasMetadata) -> HasMetadata:
        """Creates the object, or replaces that of its name. Returns it as stored, with a version and a UID."""
        key = _key(obj)
        self._last_version += 1
        meta = obj.metadata
        uid = meta.uid or f"{kind_of(obj).plural}/{key[1]}/{key[2]}/{self._last_version}"
        stored = replaced(obj, metadata=replaced(meta, uid=uid, resource_version=str(self._last_version)))
        old = self._objects.get(key)
        self._objects[key] = stored
        self._feed.changed(old, stored)
        return stored

    def remove(self, obj: HasMetadata) -> None:
        """Removes the object at once. Idempotent."""
        old = self._objects.pop(_key(obj), None)
        if old is not None:
            if isinstance(old, Pod):
                self._lifetimes.pop(old.uid, None)
            self._feed.changed(old, None)
            if isinstance(old, Pod) and (
                old.spec.resource_claims or old.status.extended_resource_claim_status is not None
            ):
                self._release_claims(old)

    # Pods.

    def create_pod(self, pod: Pod, lifetime: Lifetime = ENDLESS) -> None:
        """Creates a pod without a node."""
        if pod.spec.resource_claims:
            self._last_version += 1
            uid = pod.uid or f"pods/{pod.key}/{self._last_version}"
            pod = self._with_claims(replaced(pod, metadata=replaced(pod.metadata, uid=uid)))
        stored = self.put(pod)
        if lifetime != ENDLESS:
            self._lifetimes[stored.metadata.uid] = lifetime

    def delete_pod(self, pod: Pod) -> None:
        """Deletes the pod. A pod with a node stops within its grace; one with finalizers stays and is terminating."""
        current = self._pod(pod.namespace, pod.name, pod.uid)
        if current is None or current.is_terminating:
            return
        grace = self._lifetimes.get(current.uid, ENDLESS).grace
        stays = bool(current.metadata.finalizers)
        if not stays and (not grace or not current.spec.node_name):
            self.remove(current)
            return
        self.put(replaced(current, metadata=replaced(current.metadata, deletion_timestamp=_moment())))
        if not stays:
            self.num_stopping += 1
            asyncio.get_running_loop().call_later(grace, self._stopped, current)

    def _stopped(self, pod: Pod) -> None:
        self.num_stopping -= 1
        self._end(pod)

    def _succeeded(self, pod: Pod) -> None:
        self.num_running_out -= 1
        self._end(pod)

    def _end(self, pod: Pod) -> None:
        current = self._pod(pod.namespace, pod.name, pod.uid)
        if current is not None:
            self.remove(current)

    def _pod(self, namespace: str, name: str, uid: str) -> Pod | None:
        current = self.find(Pod, name, namespace)
        return current if current is not None and current.uid == uid else None

    def _named_pod(self, call: fwk.BindPod | fwk.DeletePod) -> Pod:
        current = self._pod(call.namespace, call.name, call.uid)
        if current is None:
            raise fwk.CallNotFound(f'pods "{call.name}" not found')
        return current

    # Writes of the scheduler.

    async def perform(self, call: fwk.ApiCall[T]) -> T:
        """Performs the call after other tasks had a turn. Raises CallError if an API server would refuse it."""
        self.num_calls += 1
        try:
            await asyncio.sleep(0)
            return cast("T", self._performed(call))
        finally:
            self.num_calls -= 1

    def submit(self, call: fwk.ApiCall[T]) -> "asyncio.Future[T | None]":
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T | None] = loop.create_future()
        self.num_calls += 1
        loop.call_soon(self._perform_into, call, done)
        return done

    def _perform_into(self, call: fwk.ApiCall[Any], done: "asyncio.Future[Any]") -> None:
        self.num_calls -= 1
        result = None
        try:
            result = self._performed(call)
        except fwk.CallError as exc:
            _LOG.error(exc, "A write of the scheduler was refused", call=type(call).__name__)
        if not done.done():
            done.set_result(result)

    def _performed(self, call: fwk.ApiCall[Any]) -> Any:
        match call:
            case fwk.BindPod():
                return self._bind(call)
            case fwk.PatchPodStatus():
                return self._patch_status(call)
            case fwk.PatchPodGroupStatus():
                return self._patch_group(call)
            case fwk.DeletePod():
                return self.delete_pod(self._named_pod(call))
            case fwk.RecordEvent():
                return None
            case storage_calls.PatchPersistentVolume():
                return self._reserve_volume(call)
            case storage_calls.PatchPersistentVolumeClaim():
                return self._select_node(call)
            case storage_calls.ReadResourceClaim():
                return self._found(ResourceClaim, call.name, call.namespace)
            case storage_calls.CreateResourceClaim():
                return self.put(created_claim(call, str(self._last_version + 1)))
            case storage_calls.DeleteResourceClaim():
                return self.remove(self._found(ResourceClaim, call.name, call.namespace))
        if isinstance(call, ClaimWrite):
            return self.put(claim_after(call, self._found(ResourceClaim, call.name, call.namespace)))
        raise fwk.CallError(f"a simulation performs no {type(call).__name__}")

    def _bind(self, call: fwk.BindPod) -> None:
        pod = self._named_pod(call)
        if pod.spec.node_name == call.node:
            return
        if pod.spec.node_name or pod.is_terminating:
            why = "is being deleted" if pod.is_terminating else f'is already assigned to node "{pod.spec.node_name}"'
            raise fwk.CallConflict(
                f'Operation cannot be fulfilled on pods/binding "{call.name}": pod {call.name} {why}'
            )
        # Its kubelet starts it at once. Preemption prefers victims that started late.
        started = replaced(pod.status, start_time=_moment())
        metadata = replaced(pod.metadata, annotations={**pod.metadata.annotations, **call.annotations})
        self.put(replaced(pod, metadata=metadata, spec=replaced(pod.spec, node_name=call.node), status=started))
        lifetime = self._lifetimes.get(pod.uid, ENDLESS)
        if lifetime.runs_for is not None:
            self.num_running_out += 1
            asyncio.get_running_loop().call_later(lifetime.runs_for, self._succeeded, pod)

    def _patch_group(self, call: fwk.PatchPodGroupStatus) -> None:
        group = self._found(PodGroup, call.name, call.namespace)
        conditions = _with_conditions(group.status.conditions, [call.condition])
        self.put(replaced(group, status=replaced(group.status, conditions=conditions)))

    def _patch_status(self, call: fwk.PatchPodStatus) -> None:
        pod = self.find(Pod, call.name, call.namespace)
        rebased = None if pod is None else call.rebased_on(pod)
        if pod is None or rebased is None or rebased.is_no_op:
            return
        conditions = _with_conditions(pod.status.conditions, [condition for condition, _ in rebased.changed_conditions])
        nominated = rebased.nominated_node_name
        if nominated is None:
            nominated = pod.status.nominated_node_name
        special = rebased.extended_resource_claim or pod.status.extended_resource_claim_status
        status = replaced(
            pod.status, conditions=conditions, nominated_node_name=nominated, extended_resource_claim_status=special
        )
        self.put(replaced(pod, status=status))

    # Volumes and claims.

    def _reserve_volume(self, call: storage_calls.PatchPersistentVolume) -> HasMetadata:
        volume = self.put(volume_after(call, self._found(PersistentVolume, call.name)))
        claim = self.find(PersistentVolumeClaim, call.claim.name, call.claim.namespace or "default")
        if claim is not None:
            self.put(bound(claim, call.name))
        return volume

    def _select_node(self, call: storage_calls.PatchPersistentVolumeClaim) -> HasMetadata:
        claim = volume_claim_after(call, self._found(PersistentVolumeClaim, call.name, call.namespace))
        stored = self.put(claim)
        storage_class = self.find(StorageClass, claim.spec.storage_class_name or "")
        node = self.find(Node, call.selected_node)
        if storage_class is not None and node is not None:
            plain_class, plain_node = msgspec.to_builtins(storage_class), msgspec.to_builtins(node)
            volume = convert(
                PersistentVolume, provisioned({"spec": {}, **msgspec.to_builtins(stored)}, plain_class, plain_node, ())
            )
            self.put(volume)
            self.put(bound(claim, volume.name))
        return stored

    def _with_claims(self, pod: Pod) -> Pod:
        """Makes the resource claims of a new pod's templates. Upstream: pkg/controller/resourceclaim/controller.go."""
        statuses = []
        owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True)
        for claim in pod.spec.resource_claims:
            template = self.claim_templates.get((pod.namespace, claim.resource_claim_template_name or ""))
            if template is not None:
                annotations = {**template.metadata.annotations, POD_CLAIM_NAME: claim.name}
                name = f"{pod.name}-{claim.name}-1"
                meta = replaced(
                    template.metadata,
                    name=name,
                    namespace=pod.namespace,
                    annotations=annotations,
                    owner_references=[owner],
                )
                self.put(replaced(template, metadata=meta))
                statuses.append(PodResourceClaimStatus(name=claim.name, resource_claim_name=name))
        return replaced(pod, status=replaced(pod.status, resource_claim_statuses=statuses)) if statuses else pod

    def _release_claims(self, pod: Pod) -> None:
        """Removes a deleted pod from the users of its claims, and the claims made for it."""
        created = {status.resource_claim_name for status in pod.status.resource_claim_statuses}
        if pod.status.extended_resource_claim_status is not None:
            created.add(pod.status.extended_resource_claim_status.resource_claim_name)
        for name in {*created, *(claim.resource_claim_name for claim in pod.spec.resource_claims)}:
            claim = self.find(ResourceClaim, name, pod.namespace) if name else None
            if claim is not None and any(user.uid == pod.uid for user in claim.status.reserved_for):
                claim = cast("ResourceClaim", self.put(without_user(claim, pod.uid)))
            if claim is not None and name in created:
                self.remove(claim)

    def _found(self, kind: type[H], name: str, namespace: str = "") -> H:
        obj = self.find(kind, name, namespace)
        if obj is None:
            raise fwk.CallNotFound(f'{kind.__name__} "{name}" not found')
        return obj


def _key(obj: HasMetadata) -> Key:
    kind = kind_of(obj)
    return kind.type, (obj.metadata.namespace or "default") if kind.is_namespaced else "", obj.metadata.name


def _with_conditions(conditions: Sequence[Condition], updates: Sequence[fwk.PodCondition]) -> list[Condition]:
    types = {update.type for update in updates}
    updated = [
        Condition(type=update.type, status=update.status, reason=update.reason, message=update.message)
        for update in updates
    ]
    return [*(condition for condition in conditions if condition.type not in types), *updated]


def _moment() -> str:
    return rfc3339(BEGINNING + timedelta(seconds=asyncio.get_running_loop().time()))
