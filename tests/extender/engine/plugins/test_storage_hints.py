"""Which events of volumes and devices queue a pod that a plugin has refused."""

from typing import Any

import pytest

from extender.engine.framework import ActionType, ClusterEvent, EventResource, Plugin, QueueingHint
from extender.engine.framework.events import EVENT_ASSIGNED_POD_DELETE
from extender.engine.plugins.dynamic_resources.plugin import DynamicResources
from extender.engine.plugins.node_resources.fit import NodeResourcesFit
from extender.engine.plugins.node_volume_limits.plugin import NodeVolumeLimits
from extender.engine.plugins.volume_binding.plugin import VolumeBinding
from extender.engine.plugins.volume_restrictions import VolumeRestrictions
from extender.engine.plugins.volume_zone import VolumeZone
from extender.testing import NodeBuilder, PodBuilder, make_cache, make_framework, make_node, make_pod
from extender.values.objects.csi_translation import TranslationError
from extender.values.objects.decoding import replaced
from extender.values.objects.devices import DeviceClass, ResourceClaim
from extender.values.objects.meta import HasMetadata, LabelSelector
from extender.values.objects.node import BETA_ZONE_LABEL, ZONE_LABEL
from extender.values.objects.pod import AzureDisk, CSIVolume, PodResourceClaim, PodResourceClaimStatus, Volume
from extender.values.objects.quantity import QuantityError
from tests.extender.engine.plugins.hint_calls import is_worth_a_try
from tests.kit.devices import allocation_of, make_claim as make_resource_claim, make_device_class
from tests.kit.storage import (
    AT_ONCE,
    ebs_disk,
    ephemeral,
    gce_disk,
    make_attachment,
    make_capacity,
    make_claim,
    make_class,
    make_csi_driver,
    make_csi_node,
    make_volume,
)
from tests.kit.tables import cases

POD, RUNNING = make_pod("p"), make_pod("other").node("n")
CLAIMING, USING_DISK = POD.claim("data"), POD.volume(gce_disk("d"))
CLAIM, FOREIGN = make_claim("data"), make_claim("elsewhere")
ANYWHERE = LabelSelector()
INLINE = POD.volume(Volume(name="csi", csi=CSIVolume(driver="csi.example.com")))
GPU = "example.com/gpu"


def added(resource: EventResource) -> ClusterEvent:
    return ClusterEvent(resource, ActionType.ADD)


def updated(resource: EventResource) -> ClusterEvent:
    return ClusterEvent(resource, ActionType.UPDATE)


@cases(
    "pod, claim, who_cares",
    ("the pod's", CLAIMING, CLAIM, {VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone}),
    ("another's", CLAIMING, FOREIGN, set()),
    ("of that name, in another namespace", POD.namespace("ns2").claim("data"), CLAIM, set()),
    ("of an ephemeral volume", POD.volume(ephemeral("e")), make_claim("p-e"), {NodeVolumeLimits, VolumeBinding}),
)
def test_a_claim_comes(pod: PodBuilder, claim: HasMetadata, who_cares: set[type[Plugin]]) -> None:
    plugins = (VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone)
    event = added(EventResource.PERSISTENT_VOLUME_CLAIM)

    assert {plugin for plugin in plugins if is_worth_a_try(plugin, pod, event, None, claim)} == who_cares


@pytest.mark.parametrize("plugin", [VolumeBinding, VolumeZone])
def test_a_claim_changes(plugin: type[Plugin]) -> None:
    event = updated(EventResource.PERSISTENT_VOLUME_CLAIM)

    assert is_worth_a_try(plugin, CLAIMING, event, CLAIM, make_claim("data", volume="pv"))
    assert not is_worth_a_try(plugin, CLAIMING, event, FOREIGN, make_claim("elsewhere", volume="pv"))


@cases(
    "plugin, old, new, worth_it",
    ("Zone: one that waits for a consumer", VolumeZone, None, make_class(), True),
    ("Zone: one that does not", VolumeZone, None, make_class(binding=AT_ONCE), False),
    ("Binding: any", VolumeBinding, None, make_class(binding=AT_ONCE), True),
    ("Binding: other places are allowed", VolumeBinding, make_class(), make_class(topology={"zone": ["a"]}), True),
    ("Binding: something else changed", VolumeBinding, make_class(), make_class(provisioner="x"), False),
)
def test_a_class_comes_or_changes(
    plugin: type[Plugin], old: HasMetadata | None, new: HasMetadata, worth_it: bool
) -> None:
    event = ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD if old is None else ActionType.UPDATE)

    assert is_worth_a_try(plugin, CLAIMING, event, old, new) is worth_it


@cases(
    "old, new, worth_it",
    ("a volume comes", None, {}, True),
    ("a zone is said", {}, {ZONE_LABEL: "a"}, True),
    ("under another label", {ZONE_LABEL: "a"}, {BETA_ZONE_LABEL: "a"}, True),
    ("the same zones in another order", {ZONE_LABEL: "a__b"}, {ZONE_LABEL: "b__a"}, False),
    ("another label", {ZONE_LABEL: "a"}, {ZONE_LABEL: "a", "x": "y"}, False),
)
def test_zones_of_a_volume_change(old: dict[str, str] | None, new: dict[str, str], worth_it: bool) -> None:
    event = ClusterEvent(EventResource.PERSISTENT_VOLUME, ActionType.ADD if old is None else ActionType.UPDATE)
    before = None if old is None else make_volume("pv", labels=old)

    assert is_worth_a_try(VolumeZone, CLAIMING, event, before, make_volume("pv", labels=new)) is worth_it


@pytest.mark.parametrize("resource", [EventResource.PERSISTENT_VOLUME, EventResource.NODE], ids=str)
def test_any_volume_and_any_node_may_be_the_one_to_bind(resource: EventResource) -> None:
    new: HasMetadata | NodeBuilder = make_node() if resource is EventResource.NODE else make_volume("pv")

    assert is_worth_a_try(VolumeBinding, CLAIMING, added(resource), None, new)


def limited(volumes: int | None) -> HasMetadata:
    return make_csi_node("n", {"d": volumes})


@cases(
    "plugin, old, new, worth_it",
    ("Limits: a node says something at all", NodeVolumeLimits, None, make_csi_node("n"), True),
    ("Limits: one more", NodeVolumeLimits, limited(1), limited(2), True),
    ("Limits: one less", NodeVolumeLimits, limited(2), limited(1), False),
    ("Limits: a driver comes", NodeVolumeLimits, make_csi_node("n"), limited(1), True),
    ("Limits: none is 0 here", NodeVolumeLimits, limited(1), limited(None), False),
    ("Binding: a node says something at all", VolumeBinding, None, make_csi_node("n"), True),
    ("Binding: a plugin is migrated", VolumeBinding, make_csi_node("n"), make_csi_node("n", migrated=["x"]), True),
    ("Binding: a limit", VolumeBinding, limited(1), limited(2), False),
)
def test_csi_node_change_queues_the_pod_when_it_may_lift_a_limit(
    plugin: type[Plugin], old: HasMetadata | None, new: HasMetadata, worth_it: bool
) -> None:
    event = ClusterEvent(EventResource.CSI_NODE, ActionType.ADD if old is None else ActionType.UPDATE)

    assert is_worth_a_try(plugin, CLAIMING, event, old, new) is worth_it


@cases(
    "pod, published, worth_it",
    ("capacity is no longer published", INLINE, (True, False), True),
    ("it is asked now", INLINE, (False, True), False),
    ("as before", INLINE, (True, True), False),
    ("the pod has no inline volume of the driver", CLAIMING, (True, False), False),
)
def test_a_driver_changes(pod: PodBuilder, published: tuple[bool, bool], worth_it: bool) -> None:
    old, new = (make_csi_driver(publishes_capacity=is_published) for is_published in published)

    assert is_worth_a_try(VolumeBinding, pod, updated(EventResource.CSI_DRIVER), old, new) is worth_it


@cases(
    "old, new, worth_it",
    ("new room", None, ("1Gi", None), True),
    ("more room", ("1Gi", None), ("2Gi", None), True),
    ("less room", ("2Gi", None), ("1Gi", None), False),
    ("as much", ("1Gi", None), ("1024Mi", None), False),
    ("more room, but no larger volumes", ("1Gi", "1Gi"), ("2Gi", "1Gi"), False),
    ("larger volumes", ("2Gi", "1Gi"), ("2Gi", "2Gi"), True),
)
def test_room_changes(old: tuple[str, str | None] | None, new: tuple[str, str | None], worth_it: bool) -> None:
    before, after = (size and make_capacity("c", size[0], ANYWHERE, largest=size[1]) for size in (old, new))
    event = ClusterEvent(EventResource.CSI_STORAGE_CAPACITY, ActionType.ADD if old is None else ActionType.UPDATE)

    assert is_worth_a_try(VolumeBinding, CLAIMING, event, before, after) is worth_it


def test_an_invalid_capacity_is_an_error_of_the_hint() -> None:
    old, new = make_capacity("c", "1Gi", ANYWHERE), make_capacity("c", "?", ANYWHERE)

    with pytest.raises(QuantityError):
        is_worth_a_try(VolumeBinding, CLAIMING, updated(EventResource.CSI_STORAGE_CAPACITY), old, new)


@cases(
    "plugin, pod, deleted, worth_it",
    ("Restrictions: the disk", VolumeRestrictions, USING_DISK, RUNNING.volume(gce_disk("d")), True),
    ("Restrictions: another", VolumeRestrictions, USING_DISK, RUNNING.volume(gce_disk("e")), False),
    (
        "Restrictions: both only read",
        VolumeRestrictions,
        POD.volume(gce_disk("d", read_only=True)),
        RUNNING.volume(gce_disk("d", read_only=True)),
        False,
    ),
    ("Restrictions: the claim", VolumeRestrictions, CLAIMING, RUNNING.claim("data"), True),
    ("Restrictions: another claim", VolumeRestrictions, CLAIMING, RUNNING.claim("x"), False),
    ("Restrictions: elsewhere", VolumeRestrictions, CLAIMING, RUNNING.namespace("ns2").claim("data"), False),
    ("Limits: had a claim", NodeVolumeLimits, CLAIMING, RUNNING.claim("x"), True),
    ("Limits: had an ephemeral volume", NodeVolumeLimits, CLAIMING, RUNNING.volume(ephemeral("e")), True),
    ("Limits: had a migrated disk", NodeVolumeLimits, CLAIMING, RUNNING.volume(ebs_disk("vol-1")), True),
    ("Limits: had no volumes", NodeVolumeLimits, CLAIMING, RUNNING, False),
    ("Limits: had no node", NodeVolumeLimits, CLAIMING, make_pod("other").claim("x"), False),
    (
        "Limits: would have had one",
        NodeVolumeLimits,
        POD.claim("x"),
        make_pod("o").claim("x").nominated_node("n"),
        True,
    ),
)
def test_a_pod_with_volumes_is_gone(plugin: type[Plugin], pod: PodBuilder, deleted: PodBuilder, worth_it: bool) -> None:
    assert is_worth_a_try(plugin, pod, EVENT_ASSIGNED_POD_DELETE, deleted, None) is worth_it


@cases(
    "pod, driver, worth_it",
    ("a claim may be of any driver", CLAIMING, "any", True),
    ("a disk of the driver", POD.volume(ebs_disk("vol-1")), "ebs.csi.aws.com", True),
    ("a disk of another driver", POD.volume(ebs_disk("vol-1")), "pd.csi.storage.gke.io", False),
    ("an ephemeral volume is not looked at", POD.volume(ephemeral("e")), "any", False),
    ("no volumes", POD, "any", False),
)
def test_a_volume_is_detached(pod: PodBuilder, driver: str, worth_it: bool) -> None:
    event = ClusterEvent(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE)

    assert is_worth_a_try(NodeVolumeLimits, pod, event, make_attachment("pv", "n", driver=driver), None) is worth_it


def test_a_disk_without_a_csi_form_is_an_error_of_the_hint() -> None:
    pod = POD.volume(Volume(name="v", azure_disk=AzureDisk(kind="Dedicated")))
    event = ClusterEvent(EventResource.VOLUME_ATTACHMENT, ActionType.DELETE)

    with pytest.raises(
        TranslationError, match=r"^converting volume\(v\) from inline to csi: kind\(Dedicated\) is not supported"
    ):
        is_worth_a_try(NodeVolumeLimits, pod, event, make_attachment("pv", "n"), None)


# Devices.


def using(*claims: PodResourceClaim, generated: dict[str, str] | None = None) -> PodBuilder:
    """A pod that uses the claims; those from templates have got these names."""
    pod, names = POD.obj(), generated or {}
    statuses = [PodResourceClaimStatus(name=name, resource_claim_name=claim) for name, claim in names.items()]
    status = replaced(pod.status, resource_claim_statuses=statuses)
    return PodBuilder(replaced(pod, spec=replaced(pod.spec, resource_claims=list(claims)), status=status))


NAMED = PodResourceClaim(name="a", resource_claim_name="ours")
FROM_TEMPLATE = PodResourceClaim(name="b", resource_claim_template_name="t")
ALLOCATED: dict[str, Any] = {"allocation": allocation_of("dev-1")}
OURS, THEIRS = make_resource_claim("ours"), make_resource_claim("theirs")
THEIRS_ALLOCATED = make_resource_claim("theirs", **ALLOCATED)
GENERATED = make_resource_claim(
    "gen", metadata={"ownerReferences": [{"kind": "Pod", "uid": "default/p", "controller": True}]}
)


@cases(
    "old, new, worth_it",
    ("ours comes", None, OURS, True),
    ("another comes", None, THEIRS, False),
    ("ours is allocated", OURS, make_resource_claim("ours", **ALLOCATED), True),
    ("ours, a label", OURS, make_resource_claim("ours", metadata={"labels": {"x": "y"}}), False),
    ("another is allocated", THEIRS, THEIRS_ALLOCATED, False),
    ("another gives back its devices", THEIRS_ALLOCATED, THEIRS, True),
)
def test_a_resource_claim_comes_or_changes(old: ResourceClaim | None, new: ResourceClaim, worth_it: bool) -> None:
    event = ClusterEvent(EventResource.RESOURCE_CLAIM, ActionType.ADD if old is None else ActionType.UPDATE)
    ours = new if new.metadata.name == "ours" else OURS

    assert is_worth_a_try(DynamicResources, using(NAMED), event, old, new, objects=[ours, new]) is worth_it


def test_while_a_claim_is_missing_no_other_helps() -> None:
    event = updated(EventResource.RESOURCE_CLAIM)

    assert not is_worth_a_try(DynamicResources, using(NAMED), event, THEIRS_ALLOCATED, THEIRS, objects=[THEIRS])


@cases(
    "pod, objects, worth_it",
    ("it has its claim", using(FROM_TEMPLATE, generated={"b": "gen"}), [GENERATED], True),
    ("the claim is not there", using(FROM_TEMPLATE, generated={"b": "gen"}), [], False),
    ("not yet", using(FROM_TEMPLATE), [GENERATED], False),
    ("another pod", using(FROM_TEMPLATE, generated={"b": "gen"}).uid("another"), [GENERATED], False),
)
def test_a_pod_learns_the_names_of_its_claims(pod: PodBuilder, objects: list[HasMetadata], worth_it: bool) -> None:
    event = ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    before = using(FROM_TEMPLATE)

    assert is_worth_a_try(DynamicResources, before, event, before, pod, objects=objects) is worth_it


def serving(name: str | None) -> DeviceClass:
    return make_device_class("gpu.example.com", backs=name)


@cases(
    "resource, old, new, worth_it",
    ("a class for it comes", GPU, None, serving(GPU), True),
    ("a class for something else", GPU, None, serving("example.com/fpga"), False),
    ("a class for nothing of the kind", GPU, None, serving(None), False),
    ("asked for by its name", "deviceclass.resource.kubernetes.io/gpu.example.com", None, serving(None), True),
    ("the class serves it now", GPU, serving(None), serving(GPU), True),
    ("it did before", GPU, serving(GPU), serving(GPU), False),
    ("it does no more", GPU, serving(GPU), serving(None), False),
)
def test_a_device_class_serves_an_extended_resource(
    resource: str, old: DeviceClass | None, new: DeviceClass, worth_it: bool
) -> None:
    event = ClusterEvent(EventResource.DEVICE_CLASS, ActionType.ADD if old is None else ActionType.UPDATE)

    assert is_worth_a_try(NodeResourcesFit, POD.req({resource: 1}), event, old, new) is worth_it


@cases("objects, worth_it", ("a class serves it", [serving(GPU)], True), ("none does", [serving(None)], False))
def test_a_node_without_the_resource_may_have_devices(objects: list[HasMetadata], worth_it: bool) -> None:
    pod, event, node = POD.req({GPU: 1}), added(EventResource.NODE), make_node().capacity(cpu="1")

    assert is_worth_a_try(NodeResourcesFit, pod, event, None, node, objects=objects) is worth_it


def test_hints_look_at_the_cluster_as_it_is_known_now() -> None:
    """Pods wait before the first cycle has begun, and between cycles."""
    cache = make_cache()
    plugin = DynamicResources(None, make_framework(live=cache))
    event = ClusterEvent(EventResource.RESOURCE_CLAIM, ActionType.ADD)
    (hint,) = (entry.hint for entry in plugin.events_to_register() if entry.event.matches(event))
    assert hint is not None
    assert hint(using(NAMED).obj(), None, OURS) is QueueingHint.QUEUE_SKIP

    cache.objects.changed(None, OURS)

    assert hint(using(NAMED).obj(), None, OURS) is QueueingHint.QUEUE
