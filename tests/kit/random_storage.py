"""Random claims, volumes, classes, limits and capacities, for clusters of `extender.testing`."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, final

from extender.testing import PodBuilder, RandomCluster, label_term, name_term, random_cluster
from extender.values.objects.meta import HasMetadata, LabelSelector, LabelSelectorRequirement, NodeSelectorTerm
from extender.values.objects.node import BETA_ZONE_LABEL, HOSTNAME_LABEL, REGION_LABEL, ZONE_LABEL, Node
from extender.values.objects.pod import Volume
from tests.kit.storage import (
    AT_ONCE,
    LATER,
    ebs_disk,
    ephemeral,
    gce_disk,
    iscsi_disk,
    make_attachment,
    make_capacity,
    make_claim,
    make_class,
    make_csi_driver,
    make_csi_node,
    make_volume,
    rbd_image,
)

EBS_PLUGIN: Final = "kubernetes.io/aws-ebs"
_DRIVERS: Final = ("csi.example.com", "ebs.csi.aws.com")
_ZONES: Final = ("z1", "z2")
_SIZES: Final = ("1Gi", "2Gi", "3Gi")


@final
@dataclass(slots=True)
class RandomStorage:
    """The objects, and the claims that pods may use."""

    objects: list[HasMetadata] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)
    """Claims that any number of pods may use."""
    exclusive: list[str] = field(default_factory=list)
    """ReadWriteOncePod claims."""
    in_use: set[str] = field(default_factory=set)
    """Exclusive claims that a running pod uses. Upstream relies on no two running pods using the same one."""

    def give(self, pod: PodBuilder, chance: random.Random, *, is_running: bool = False) -> PodBuilder:
        """Returns the pod with up to four more volumes."""
        for _ in range(chance.choice((0, 1, 2, 4))):
            pod = self._one_more(pod, chance, is_running=is_running)
        return pod

    def _one_more(self, pod: PodBuilder, chance: random.Random, *, is_running: bool) -> PodBuilder:
        kind = chance.random()
        if kind < 0.5:
            return pod.claim(chance.choice(self.shared))
        if kind < 0.75:
            return pod.volume(_disk(chance))
        if kind < 0.9:
            free = [name for name in self.exclusive if not (is_running and name in self.in_use)]
            if not free:
                return pod
            name = chance.choice(free)
            if is_running:
                self.in_use.add(name)
            return pod.claim(name)
        owner = pod.obj()
        self.objects.append(make_claim(f"{owner.name}-scratch", storage_class="later", owner=owner))
        return pod.volume(ephemeral("scratch"))


def random_storage(nodes: Sequence[Node], chance: random.Random) -> RandomStorage:
    """Returns random classes, claims, volumes, attachments, limits and capacities."""
    storage = RandomStorage()
    topology = {ZONE_LABEL: (chance.choice(_ZONES),)} if chance.random() < 0.4 else None
    storage.objects += [
        make_class("at-once", binding=AT_ONCE),
        make_class("later", binding=LATER, topology=topology),
        make_class("local", provisioner="kubernetes.io/no-provisioner"),
        make_class("ebs", provisioner=EBS_PLUGIN),
    ]
    for node in nodes:
        if chance.random() < 0.8:
            limits = {driver: chance.choice((None, 0, 1, 2, 3)) for driver in _DRIVERS if chance.random() < 0.8}
            storage.objects.append(
                make_csi_node(node.name, limits, migrated=[EBS_PLUGIN] if chance.random() < 0.5 else [])
            )
    if chance.random() < 0.6:
        storage.objects.append(make_csi_driver(publishes_capacity=chance.random() < 0.8))
        storage.objects += [_capacity(f"room{number}", nodes, chance) for number in range(chance.randint(0, 3))]
    _add_bound(storage, nodes, chance)
    _add_delayed(storage, nodes, chance)
    return storage


def _add_bound(storage: RandomStorage, nodes: Sequence[Node], chance: random.Random) -> None:
    for number in range(5):
        claim, volume = f"bound{number}", f"pv{number}"
        is_exclusive = chance.random() < 0.2
        (storage.exclusive if is_exclusive else storage.shared).append(claim)
        storage.objects.append(
            make_claim(
                claim,
                volume=volume,
                storage_class="later",
                access="ReadWriteOncePod" if is_exclusive else "ReadWriteOnce",
            )
        )
        if chance.random() < 0.1:
            continue
        is_ebs = chance.random() < 0.3
        labels = {
            key: chance.choice(("z1", "z2", "z1__z2", ""))
            for key in (ZONE_LABEL, BETA_ZONE_LABEL)
            if chance.random() < 0.3
        }
        storage.objects.append(
            make_volume(
                volume,
                claim=claim,
                csi="" if is_ebs else chance.choice(("", *_DRIVERS)),
                ebs=chance.choice(("vol-1", "aws://z1/vol-2", "aws://z1/other")) if is_ebs else "",
                labels=labels,
                affinity=_affinity(nodes, chance),
            )
        )
        if chance.random() < 0.4:
            storage.objects.append(make_attachment(volume, chance.choice(nodes).name, driver=chance.choice(_DRIVERS)))


def _add_delayed(storage: RandomStorage, nodes: Sequence[Node], chance: random.Random) -> None:
    for number in range(4):
        storage.shared.append(f"delayed{number}")
        storage.objects.append(
            make_claim(
                f"delayed{number}",
                storage_class=chance.choice(("later", "local", "local", "ebs")),
                size=chance.choice(("", *_SIZES)),
                access=chance.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany")),
                selected_node=chance.choice((*(node.name for node in nodes), "gone"))
                if chance.random() < 0.15
                else None,
                selector=LabelSelector(match_labels={"disk": "ssd"}) if chance.random() < 0.2 else None,
            )
        )
    # The sizes are distinct, because upstream chooses between volumes of equal size at random.
    sizes = chance.sample(range(1, 9), chance.randint(0, 6))
    for number, size in enumerate(sizes):
        storage.objects.append(
            make_volume(
                f"free{number}",
                claim=chance.choice(("delayed0", "delayed1", "another")) if chance.random() < 0.2 else "",
                storage_class=chance.choice(("later", "local", "local")),
                size=f"{size}Gi",
                labels={"disk": "ssd"} if chance.random() < 0.5 else {},
                affinity=_affinity(nodes, chance),
                phase=chance.choice(("Available", "Available", "Released")),
            )
        )


def _affinity(nodes: Sequence[Node], chance: random.Random) -> list[NodeSelectorTerm] | None:
    names = [node.name for node in nodes]
    return chance.choice(
        (
            None,
            [label_term(ZONE_LABEL, "In", chance.choice(_ZONES))],
            [label_term(HOSTNAME_LABEL, "In", *chance.sample(names, chance.randint(1, len(names))))],
            [label_term(ZONE_LABEL, "NotIn", chance.choice(_ZONES))],
            [label_term(ZONE_LABEL, "In", "z1"), label_term("disk", "Exists")],
            [name_term("In", chance.choice(names))],
            [label_term(REGION_LABEL, "Exists", "no value is allowed here")],
            [],
        )
    )


def _capacity(name: str, nodes: Sequence[Node], chance: random.Random) -> HasMetadata:
    topology = chance.choice(
        (
            None,
            LabelSelector(),
            LabelSelector(match_labels={HOSTNAME_LABEL: chance.choice(nodes).name}),
            LabelSelector(match_labels={ZONE_LABEL: chance.choice(_ZONES)}),
            LabelSelector(
                match_expressions=[LabelSelectorRequirement(key=ZONE_LABEL, operator="NotIn", values=["z1"])]
            ),
        )
    )
    return make_capacity(
        name, chance.choice(_SIZES), topology, storage_class="later", largest=chance.choice((None, None, *_SIZES))
    )


def _disk(chance: random.Random) -> Volume:
    read_only = chance.random() < 0.5
    return chance.choice(
        (
            ebs_disk(chance.choice(("vol-1", "aws://z1/vol-1", "vol-2", "aws://z1/other")), read_only=read_only),
            gce_disk(chance.choice(("a", "b")), read_only=read_only),
            iscsi_disk(chance.choice(("a", "b")), read_only=read_only),
            rbd_image("a", *chance.sample(("m1", "m2", "m3"), 2), read_only=read_only),
        )
    )


def random_cluster_with_volumes(chance: random.Random) -> RandomCluster:
    """A cluster of the same kind as `random_cluster`, in which most pods have volumes."""
    cluster = random_cluster(chance)
    storage = random_storage(cluster.nodes, chance)
    return RandomCluster(
        nodes=cluster.nodes,
        pods=tuple(storage.give(PodBuilder(pod), chance, is_running=True).obj() for pod in cluster.pods),
        pod=storage.give(PodBuilder(cluster.pod), chance).obj(),
        arrivals=tuple(storage.give(PodBuilder(pod), chance).obj() for pod in cluster.arrivals),
        objects=tuple(storage.objects),
    )
