"""Whom an event of volumes, and of whatever they depend on, calls.

Upstream: test/integration/scheduler/queueing/queue.go, CoreResourceEnqueueTestCases. Each case is one of upstream's, in
its order.
"""

from typing import Any

import pytest

from extender.rules.api_resources import (
    CSI_DRIVERS,
    CSI_STORAGE_CAPACITIES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    Object,
)
from tests.kit.objects import node, pod
from tests.kit.pod_specs import claims, volume as inline
from tests.kit.storage_objects import (
    attachment,
    capacity,
    claim,
    csi,
    csi_driver,
    csi_node,
    storage_class,
    topologies,
    volume,
)
from tests.stories.cluster_changes import (
    annotations,
    changed,
    changed_csi_node,
    changed_node,
    comes,
    goes,
    labels,
    leaves,
    new_node,
    then,
)
from tests.stories.enqueueing import Case, assert_called

pytestmark = pytest.mark.with_whole_objects

ZONE = "topology.kubernetes.io/zone"
DISK = "disks.example.com"
EBS, GCE = "ebs.csi.aws.com", "pd.csi.storage.gke.io"

N = node("n")
IN_WEST, IN_EAST = node("n", labels={ZONE: "west"}), node("n", labels={ZONE: "east"})
ONCE = "ReadWriteOncePod"


def wants(name: str, *names: str, **more: Any) -> Object:
    return pod(name, "100m", **claims(*names), **more)


P, Q = wants("p", "data"), wants("q", "more")
THERE = wants("there", "its", nodeName="n")
ITS = [volume("its", "ReadOnlyMany", zone="west"), claim("its", ONCE, bound_to="its"), THERE]
IN_THE_EAST = volume("data", "ReadOnlyMany", zone="east")
BOUND = claim("data", ONCE, bound_to="data")


def bound_later(name: str = "data") -> Any:
    """What a controller does to a claim when it has found a volume."""
    later = claim(name, bound_to=name)
    return changed(
        PERSISTENT_VOLUME_CLAIMS, name,
        lambda obj: obj["metadata"].update(annotations=later["metadata"]["annotations"]),
        lambda obj: obj["spec"].update(volumeName=name),
    )  # fmt: skip


OF_ZONES = {
    "a volume that was missing helps": Case(
        ["VolumeZone"], [IN_WEST, *ITS, BOUND], [P], comes(volume("data", "ReadOnlyMany", zone="west")), {"p"},
    ),
    "a volume that moves helps": Case(
        ["VolumeZone"], [IN_WEST, *ITS, IN_THE_EAST, BOUND], [P], changed(PERSISTENT_VOLUMES, "data", labels(**{ZONE: "west"})), {"p"},
    ),
    "a claim that was missing helps those who named "
    "it": Case(["VolumeZone"], [IN_WEST, *ITS, IN_THE_EAST], [P, Q], comes(BOUND), {"p"}),
    "a claim that is bound helps those who named it": Case(
        ["VolumeZone"], [IN_WEST, *ITS, IN_THE_EAST, claim("data", ONCE)], [P, Q], bound_later(), {"p"},
    ),
    "a new storage class may help": Case(["VolumeZone"], [IN_WEST, *ITS, BOUND], [P], comes(storage_class("fast")), {"p"}),
    "a label of a volume that is no zone helps nobody": Case(
        ["VolumeZone"], [IN_WEST, *ITS, IN_THE_EAST, BOUND], [P], changed(PERSISTENT_VOLUMES, "data", labels(unrelated="x")),
    ),
}  # fmt: skip

OF_RESTRICTIONS = {
    "a claim that was missing helps those who named it, restricted or not": Case(
        ["VolumeRestrictions"], [N, volume("data", "ReadWriteOnce")], [P, Q], comes(BOUND), {"p"},
    ),
    "a pod that goes helps those who want its claim, which only one may have": Case(
        ["VolumeRestrictions"], [N, volume("data", "ReadWriteOnce"), BOUND, wants("there", "data", nodeName="n")], [P, Q],
        leaves("there"), {"p"},
    ),
}  # fmt: skip

SHARED = claim("data", bound_to="data")
NEAR_WEST, NEAR_EAST = (volume("data", near={ZONE: zone}) for zone in ("west", "east"))
FAST = volume("data", storage_class="fast")
WANTS_FAST = claim("data", storage_class="fast")
UNBOUND = [volume("data"), claim("data")]
EPHEMERAL = pod("p", "100m", volumes=[*claims("data")["volumes"], {"name": "own", "csi": {"driver": DISK}}])
AT_ONCE = storage_class("fast", "Immediate")

OF_BINDING = {
    "a new node that reaches the volume helps": Case(
        ["VolumeBinding"], [IN_EAST, NEAR_WEST, SHARED], [P], new_node("m", labels={ZONE: "west"}), {"p"},
    ),
    "a node that reaches the volume now helps": Case(
        ["VolumeBinding"], [IN_EAST, NEAR_WEST, SHARED], [P], changed_node("n", labels(**{ZONE: "west"})), {"p"},
    ),
    "a volume that is made again, elsewhere, helps": Case(
        ["VolumeBinding"], [IN_EAST, NEAR_WEST, SHARED], [P], then(goes(PERSISTENT_VOLUMES, "data"), comes(NEAR_EAST)), {"p"},
    ),
    "a volume whose zone is spelt as it is today helps": Case(
        ["VolumeBinding"],
        [IN_EAST, volume("data", near={"failure-domain.beta.kubernetes.io/zone": "east"}), SHARED], [P],
        changed(PERSISTENT_VOLUMES, "data", lambda obj: obj["spec"].update(nodeAffinity=NEAR_EAST["spec"]["nodeAffinity"])), {"p"},
    ),
    "a claim that is made again, bound, helps those who named it": Case(
        ["VolumeBinding"], [N, *UNBOUND, claim("more")], [P, Q],
        then(goes(PERSISTENT_VOLUME_CLAIMS, "data"), comes(SHARED)), {"p"},
    ),
    "a claim that is bound now helps those who named it": Case(
        ["VolumeBinding"], [N, *UNBOUND, claim("more")], [P, Q], bound_later(), {"p"},
    ),
    "a storage class that was missing "
    "helps": Case(["VolumeBinding"], [N, FAST, WANTS_FAST], [P], comes(storage_class("fast")), {"p"}),
    "a storage class that is for other zones now helps": Case(
        ["VolumeBinding"], [IN_WEST, FAST, WANTS_FAST, storage_class("fast", zones=("east",))], [P],
        changed(STORAGE_CLASSES, "fast", lambda obj: obj.update(allowedTopologies=topologies("west"))), {"p"},
    ),
    "a label of a storage class helps nobody": Case(
        ["VolumeBinding"], [IN_EAST, FAST, WANTS_FAST, storage_class("fast", zones=("west",), key="old")], [P],
        changed(STORAGE_CLASSES, "fast", labels(key="new")),
    ),
    "what a node says of its drivers may "
    "help": Case(["VolumeBinding"], [N, *UNBOUND], [P], comes(csi_node("n")), {"p"}),
    "a node whose plugins have moved to drivers helps": Case(
        ["VolumeBinding"], [N, FAST, WANTS_FAST, csi_node("n")], [P],
        changed_csi_node("n", annotations(**{"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"})), {"p"},
    ),
    "a driver that need not be asked for room any more helps": Case(
        ["VolumeBinding"], [N, *UNBOUND, csi_driver(DISK)], [EPHEMERAL],
        changed(CSI_DRIVERS, DISK, lambda obj: obj["spec"].update(storageCapacity=False)), {"p"},
    ),
    "a driver that is to be asked for room helps nobody": Case(
        ["VolumeBinding"], [N, *UNBOUND, csi_driver(DISK, storage_capacity=False)], [EPHEMERAL],
        changed(CSI_DRIVERS, DISK, lambda obj: obj["spec"].update(storageCapacity=True)),
    ),
    "new room helps": Case(["VolumeBinding"], [N, FAST, WANTS_FAST, AT_ONCE], [P], comes(capacity("room", "fast", "10")), {"p"}),
    "more room helps": Case(
        ["VolumeBinding"], [N, FAST, WANTS_FAST, AT_ONCE, capacity("room", "fast", "10")], [P],
        changed(CSI_STORAGE_CAPACITIES, "room", lambda obj: obj.update(capacity="20")), {"p"},
    ),
    "less room helps nobody": Case(
        ["VolumeBinding"], [N, *UNBOUND, AT_ONCE, capacity("room", "fast", "10")], [P],
        changed(CSI_STORAGE_CAPACITIES, "room", lambda obj: obj.update(capacity="5")),
    ),
}  # fmt: skip


def on_disk(name: str, driver: str = DISK) -> list[Object]:
    """A volume and the claim that has it."""
    return [volume(name, **csi(driver, name)), claim(name, bound_to=name)]


FULL = [csi_driver(DISK), csi_node("n", disks_example_com=0)]
ROOM_FOR_ONE = [csi_driver(DISK), csi_node("n", disks_example_com=1)]

OF_LIMITS = {
    "what another node says of its drivers may help": Case(
        ["NodeVolumeLimits"], [N, *on_disk("data"), *FULL], [P], comes(csi_node("m")), {"p"},
    ),
    "a pod that goes gives back what was attached for it": Case(
        ["NodeVolumeLimits"], [N, *on_disk("its"), *on_disk("data"), *ROOM_FOR_ONE, THERE], [P], leaves("there"), {"p"},
    ),
    "a claim that was missing helps those who named it, attached or not": Case(
        ["NodeVolumeLimits"], [N, *on_disk("its"), volume("data", **csi(DISK, "data")), *ROOM_FOR_ONE, THERE], [P], comes(SHARED), {"p"},
    ),
    "a volume that is detached gives back its place": Case(
        [], [N, *on_disk("data"), *FULL, attachment("attached", DISK, "n", "data")], [P], goes(VOLUME_ATTACHMENTS, "attached"), {"p"},
    ),
    "a volume that is detached gives back the place of its driver only, though pods know it by its old name": Case(
        [],
        [
            N, *on_disk("ebs", EBS), *on_disk("gce", GCE), csi_node("n", ebs_csi_aws_com=0, pd_csi_storage_gke_io=0),
            attachment("first", EBS, "n", "ebs"), attachment("second", GCE, "n", "gce"),
        ],
        [
            pod("p", "100m", **inline("disk", awsElasticBlockStore={"volumeID": "ebs"})),
            pod("q", "100m", **inline("disk", gcePersistentDisk={"pdName": "gce"})),
        ],
        goes(VOLUME_ATTACHMENTS, "first"), {"p"},
    ),
}  # fmt: skip

ALL = OF_ZONES | OF_RESTRICTIONS | OF_BINDING | OF_LIMITS


@pytest.mark.anywhere
@pytest.mark.without_controllers
@pytest.mark.parametrize("case", ALL.values(), ids=ALL.keys())
async def test_event_of_storage_requeues_the_refused_pods_that_it_may_help(case: Case) -> None:
    """TestCoreResourceEnqueue."""
    await assert_called(case)
