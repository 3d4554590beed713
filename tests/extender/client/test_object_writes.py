"""Volumes, claims and resource claims are written in part, and only if they are still as they were."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from extender.client.writes.dispatcher import ApiDispatcher
from extender.engine.framework import ApiCall, CallConflict, CallError, CallNotFound, CallUnknown
from extender.engine.framework.storage_calls import (
    CreateResourceClaim,
    DeallocateResourceClaim,
    DeleteResourceClaim,
    PatchPersistentVolume,
    PatchPersistentVolumeClaim,
    ProtectResourceClaim,
    ReadResourceClaim,
    ReserveResourceClaim,
    UnprotectResourceClaim,
    UnreserveResourceClaim,
)
from extender.rules.api_resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, RESOURCE_CLAIMS
from extender.values.objects.claims import bound_to
from extender.values.objects.decoding import convert
from extender.values.objects.devices import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from extender.values.objects.meta import ObjectMeta, OwnerReference
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim
from tests.extender.client.embedded_server import Server
from tests.kit.device_objects import GROUP
from tests.kit.devices import allocation_of, exactly, label_selector, make_claim
from tests.kit.faults import Fault
from tests.kit.faults.answers import commit_then_drop, drop_before_commit, status

VOLUME = {
    "capacity": {"storage": "1Gi"},
    "accessModes": ["ReadWriteOnce"],
    "persistentVolumeReclaimPolicy": "Retain",
    "mountOptions": ["noatime"],
    "csi": {"driver": "csi.example.com", "volumeHandle": "v", "fsType": "ext4"},
}
VOLUME_CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "storageClassName": "std",
}
POD = ResourceClaimConsumerReference(resource="pods", name="p", uid="pod-uid")


def perform(server: Server, call: ApiCall[Any]) -> Any:
    """What the call yields, or the error it ends with."""

    async def story(dispatcher: ApiDispatcher) -> Any:
        try:
            return await dispatcher.perform(call)
        except CallError as exc:
            return exc

    return server.run(story)


class Storage(Server):
    """A server with a volume and a claim that are meant for each other."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*faults)
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": VOLUME_CLAIM}
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": VOLUME}
        self.claim = convert(PersistentVolumeClaim, self.create(claim))
        self.volume = convert(PersistentVolume, self.create(volume))

    @property
    def binding(self) -> PatchPersistentVolume:
        return PatchPersistentVolume.of(bound_to(self.volume, self.claim))

    def touch_volume(self) -> None:
        """Somebody else changes it."""
        self.change(
            "v", lambda volume: volume["metadata"].update(labels={"touched": "yes"}), resource=PERSISTENT_VOLUMES
        )


def test_a_volume_gets_its_claim_and_keeps_the_rest() -> None:
    """Much of a volume our objects do not hold."""
    server = Storage()

    volume = perform(server, server.binding)

    body = server.get("v", PERSISTENT_VOLUMES)
    assert body["spec"] | {"claimRef": None} == VOLUME | {"volumeMode": "Filesystem", "claimRef": None}
    assert (body["spec"]["claimRef"]["name"], body["spec"]["claimRef"]["uid"]) == ("c", server.claim.metadata.uid)
    assert body["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
    assert volume.metadata.resource_version == body["metadata"]["resourceVersion"]


def test_a_claim_gets_its_node() -> None:
    server = Storage()
    meta = server.claim.metadata
    call = PatchPersistentVolumeClaim("default", "c", meta.uid, meta.resource_version, "n1")

    claim = perform(server, call)

    annotations = server.get("c", PERSISTENT_VOLUME_CLAIMS)["metadata"]["annotations"]
    assert annotations["volume.kubernetes.io/selected-node"] == "n1"
    assert int(claim.metadata.resource_version) > int(meta.resource_version)


def test_a_volume_that_has_changed_is_not_written() -> None:
    server = Storage()
    server.touch_volume()

    refusal = perform(server, server.binding)

    assert isinstance(refusal, CallConflict)
    assert str(refusal) == (
        'Operation cannot be fulfilled on persistentvolumes "v": '
        "the object has been modified; please apply your changes to the latest version and try again"
    )
    assert "claimRef" not in server.get("v", PERSISTENT_VOLUMES)["spec"]


@pytest.mark.parametrize(
    "fault", [commit_then_drop(), drop_before_commit(), status(500)], ids=["done", "not done", "broken"]
)
def test_a_lost_answer_is_asked_for_again(fault: Any) -> None:
    """If the write was done, the second attempt is refused as stale, and the volume shows that it is ours."""
    server = Storage(Fault(fault, verb="patch"))

    volume = perform(server, server.binding)

    assert isinstance(volume, PersistentVolume)
    assert volume.metadata.resource_version == server.get("v", PERSISTENT_VOLUMES)["metadata"]["resourceVersion"]


async def test_lost_answer_and_foreign_write_are_distinguished() -> None:
    server = Storage(Fault(drop_before_commit(), verb="patch"))
    async with server.dispatching() as dispatcher:
        writing = asyncio.ensure_future(dispatcher.perform(server.binding))
        await asyncio.sleep(0.01)
        server.touch_volume()
        with pytest.raises(CallConflict):
            await writing


def test_an_outage_ends_a_write_as_unknown() -> None:
    server = Storage(Fault(commit_then_drop(), verb="patch", times=None))
    server.transport.add(Fault(status(500), verb="get", times=None))

    refusal = perform(server, server.binding)

    assert isinstance(refusal, CallUnknown)


# Resource claims.


class Devices(Server):
    """A server with a resource claim."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(*faults)
        spec = {"devices": {"requests": [exactly(1)]}}
        self.create({**GROUP, "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": spec})

    @property
    def claim(self) -> ResourceClaim:
        return convert(ResourceClaim, self.get("c", RESOURCE_CLAIMS))

    @property
    def key(self) -> tuple[str, str, str]:
        return "default", "c", self.claim.metadata.uid

    @property
    def revision(self) -> tuple[str, str, str, str]:
        return *self.key, self.claim.metadata.resource_version

    def reserve(self, **more: Any) -> Any:
        return perform(self, ReserveResourceClaim(*self.revision, POD, **more))


@pytest.fixture
def devices() -> Devices:
    return Devices()


def allocation() -> AllocationResult:
    """One device, with what its driver is told."""
    configuration = {
        "source": "FromClaim",
        "opaque": {"driver": "gpu.example.com", "parameters": {"mode": "", "limits": []}},
    }
    plain = dict(
        allocation_of("gpu-1", node_selector=label_selector("zone", "a"), allocationTimestamp="2026-01-01T00:00:00Z")
    )
    plain["devices"] = {**plain["devices"], "config": [configuration]}
    return convert(AllocationResult, plain)


def test_a_claim_is_protected_allocated_and_reserved(devices: Devices) -> None:
    perform(devices, ProtectResourceClaim(*devices.revision))
    claim = devices.reserve(allocation=allocation())

    body = devices.get("c", RESOURCE_CLAIMS)
    assert body["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert body["status"]["reservedFor"] == [{"resource": "pods", "name": "p", "uid": "pod-uid"}]
    assert body["status"]["allocation"]["allocationTimestamp"] == "2026-01-01T00:00:00Z"
    assert body["status"]["allocation"]["devices"]["results"] == [
        {"request": "r", "driver": "gpu.example.com", "pool": "pool", "device": "gpu-1"}
    ]
    assert body["status"]["allocation"]["devices"]["config"][0]["opaque"]["parameters"] == {"mode": "", "limits": []}
    assert isinstance(claim, ResourceClaim)
    assert claim.status.allocation == allocation()


def test_a_second_pod_shares_the_claim(devices: Devices) -> None:
    devices.reserve(allocation=allocation())
    other = ResourceClaimConsumerReference(resource="pods", name="q", uid="other-uid")

    claim = perform(devices, ReserveResourceClaim(*devices.revision, other))

    assert {consumer.uid for consumer in claim.status.reserved_for} == {"pod-uid", "other-uid"}
    assert claim.status.allocation == allocation()


def test_a_pod_lets_go_of_a_claim_that_has_changed_meanwhile(devices: Devices) -> None:
    devices.reserve(allocation=allocation())

    claim = perform(devices, UnreserveResourceClaim(*devices.key, "pod-uid"))

    assert claim.status.reserved_for == []
    assert claim.status.allocation is not None


def test_a_claim_is_deallocated(devices: Devices) -> None:
    devices.reserve(allocation=allocation())

    perform(devices, DeallocateResourceClaim(*devices.revision))

    assert not {"allocation", "reservedFor", "devices"} & devices.get("c", RESOURCE_CLAIMS).get("status", {}).keys()


def test_a_deallocation_without_a_version_concerns_whatever_is_there(devices: Devices) -> None:
    devices.reserve(allocation=allocation())

    perform(devices, DeallocateResourceClaim(*devices.key, ""))

    assert devices.claim.status.allocation is None


def special_claim() -> CreateResourceClaim:
    """A claim for a pod's extended resources."""
    owner = OwnerReference(api_version="v1", kind="Pod", name="p", uid="pod-uid", controller=True)
    meta = ObjectMeta(
        name="<in memory>",
        namespace="default",
        uid="made up",
        annotations={"example.com/a": "b"},
        owner_references=[owner],
    )
    return CreateResourceClaim(
        ResourceClaim(metadata=meta, spec=make_claim("c", exactly(2)).spec), "p-extended-resources-"
    )


def test_a_claim_is_created_under_a_name_that_the_server_makes(devices: Devices) -> None:
    claim = perform(devices, special_claim())

    body = devices.get(claim.name, RESOURCE_CLAIMS)
    assert claim.name.startswith("p-extended-resources-")
    assert claim.metadata.uid != "made up"
    assert body["metadata"]["annotations"] == {"example.com/a": "b"}
    assert body["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "pod-uid", "controller": True}
    ]
    assert body["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2


def test_a_claim_whose_creation_may_have_happened_is_not_created_again() -> None:
    """The server would make another name, and a second claim."""
    server = Devices(Fault(commit_then_drop(), verb="create"))

    assert isinstance(perform(server, special_claim()), CallUnknown)


def test_a_protected_claim_is_unprotected_and_deleted(devices: Devices) -> None:
    perform(devices, ProtectResourceClaim(*devices.revision))
    key = devices.key

    unprotected = perform(devices, UnprotectResourceClaim(*key))
    perform(devices, DeleteResourceClaim(*key))

    assert unprotected.metadata.finalizers == ()
    assert isinstance(perform(devices, ReadResourceClaim(*key)), CallNotFound)


def test_another_claim_of_the_name_is_not_deleted(devices: Devices) -> None:
    assert isinstance(perform(devices, DeleteResourceClaim("default", "c", "former")), CallConflict)
    assert isinstance(perform(devices, UnprotectResourceClaim("default", "c", "former")), CallError)


@pytest.mark.parametrize("call", [UnprotectResourceClaim, DeleteResourceClaim])
def test_a_lost_answer_about_a_deletion_is_asked_for_again(call: Any) -> None:
    server = Devices(Fault(commit_then_drop(), verb="delete" if call is DeleteResourceClaim else "patch"))

    assert not isinstance(perform(server, call(*server.key)), Exception)


STALE_CALLS: dict[str, Callable[[Devices, str], ApiCall[Any]]] = {
    "protect": lambda server, stale: ProtectResourceClaim(*server.key, stale),
    "reserve": lambda server, stale: ReserveResourceClaim(*server.key, stale, POD, allocation()),
    "deallocate": lambda server, stale: DeallocateResourceClaim(*server.key, stale),
}


@pytest.mark.parametrize("call", STALE_CALLS.values(), ids=STALE_CALLS)
def test_a_claim_that_has_changed_is_not_written(
    devices: Devices, call: Callable[[Devices, str], ApiCall[Any]]
) -> None:
    stale = devices.claim.metadata.resource_version
    perform(
        devices,
        ReserveResourceClaim(
            *devices.revision, ResourceClaimConsumerReference(resource="pods", name="q", uid="q"), allocation()
        ),
    )

    assert isinstance(perform(devices, call(devices, stale)), CallConflict)


CALLS: dict[str, Callable[[Devices], ApiCall[Any]]] = {
    "protect": lambda server: ProtectResourceClaim(*server.revision),
    "reserve": lambda server: ReserveResourceClaim(*server.revision, POD, allocation()),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("fault", [commit_then_drop(), drop_before_commit()], ids=["done", "not done"])
def test_a_lost_answer_about_a_claim_is_asked_for_again(fault: Any, call: Callable[[Devices], ApiCall[Any]]) -> None:
    server = Devices(Fault(fault, verb="patch"))

    assert isinstance(perform(server, call(server)), ResourceClaim)


def test_a_claim_is_read(devices: Devices) -> None:
    assert perform(devices, ReadResourceClaim(*devices.key)) == devices.claim
    assert isinstance(perform(devices, ReadResourceClaim("default", "nope", "")), CallNotFound)
