"""The attributes of pods as symbols for plugins: pods that are equal in one respect share a code.

A plugin does not iterate over pods. It weighs each distinct symbol of an attribute once, and the snapshot's tallies
keep the sums per node (`tallies.py`).
"""

import enum
from collections.abc import Mapping
from typing import final

import msgspec

from extender.values.objects.pod import Pod, PodAffinity, PodAffinityTerm, Volume, WeightedPodAffinityTerm

HostPort = tuple[str, str, int]
"""(host IP, protocol, port); a missing IP is 0.0.0.0, a missing protocol TCP."""

ANY_ADDRESS = "0.0.0.0"  # noqa: S104  (a value to compare with, nothing is bound to it)


@final
class LabelClass(msgspec.Struct, frozen=True):
    """Pods of one namespace with equal labels. Terminating pods form classes of their own."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    is_terminating: bool

    def labels_by_key(self) -> Mapping[str, str]:
        return dict(self.labels)


@final
class AffinityClass(msgspec.Struct, frozen=True):
    """Pods of one namespace with equal pod affinity and anti-affinity stanzas."""

    namespace: str
    encoded: bytes

    def affinity(self) -> tuple[PodAffinity | None, PodAffinity | None]:
        return _STANZAS.decode(self.encoded)


@final
class VolumeClass(msgspec.Struct, frozen=True):
    """Pods of one namespace whose volumes matter to other pods in the same way."""

    namespace: str
    claims: tuple[str, ...]
    """The claim names of the `persistentVolumeClaim` volumes, repeated as in the pod's spec."""
    ephemeral_claims: tuple[str, ...] = ()
    """The claim names of the generic ephemeral volumes."""
    owner: tuple[str, str] = ("", "")
    """(name, UID) of the pod if it has ephemeral claims, since it must own them; ("", "") otherwise."""
    encoded_disks: bytes = b""

    def disks(self) -> list[Volume]:
        """Returns the in-line disk volumes (those that are not claims), as in the pod's spec."""
        return _VOLUMES.decode(self.encoded_disks) if self.encoded_disks else []


PodSymbol = LabelClass | AffinityClass | VolumeClass | tuple[HostPort, ...]

_BYTES_OF_A_PART = 64


def num_parts(symbol: PodSymbol) -> int:
    """Returns a measure of a symbol's memory: its labels, ports and claims, and its text in lengths of 64 bytes."""
    if isinstance(symbol, LabelClass):
        return len(symbol.labels)
    if isinstance(symbol, AffinityClass):
        return len(symbol.encoded) // _BYTES_OF_A_PART
    if isinstance(symbol, VolumeClass):
        disks = len(symbol.encoded_disks) // _BYTES_OF_A_PART
        return len(symbol.claims) + len(symbol.ephemeral_claims) + disks
    return len(symbol)


_STANZAS = msgspec.json.Decoder(tuple[PodAffinity | None, PodAffinity | None])
_VOLUMES = msgspec.json.Decoder(list[Volume])
_ENCODE = msgspec.json.Encoder().encode


class Attribute(enum.IntEnum):
    """The attributes of a pod that are interned; the value is the row in `PodColumns.codes`."""

    LABELS = 0
    HOST_PORTS = 1
    AFFINITY = 2
    VOLUMES = 3


def label_class(pod: Pod) -> LabelClass:
    """Returns the pod's symbol for `Attribute.LABELS`; every pod has one."""
    return LabelClass(pod.namespace, frozenset(pod.labels.items()), pod.is_terminating)


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Returns the ports of containers and sidecars in the order of the spec (pkg/scheduler/util, GetHostPorts)."""
    sidecars = (container for container in pod.spec.init_containers if container.is_sidecar)
    return tuple(
        (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
        for container in (*pod.spec.containers, *sidecars)
        for port in container.ports
        if port.host_port > 0
    )


def required_terms(affinity: PodAffinity | None) -> list[PodAffinityTerm]:
    return affinity.required if affinity is not None else []


def preferred_terms(affinity: PodAffinity | None) -> list[WeightedPodAffinityTerm]:
    return affinity.preferred if affinity is not None else []


def affinity_class(pod: Pod) -> AffinityClass | None:
    """Returns the pod's symbol for `Attribute.AFFINITY`; None without affinity or anti-affinity."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return None
    return AffinityClass(pod.namespace, _ENCODE((affinity.pod_affinity, affinity.pod_anti_affinity)))


def volume_class(pod: Pod) -> VolumeClass | None:
    """Returns the pod's symbol for `Attribute.VOLUMES`; None without volumes that matter to scheduling."""
    volumes = pod.spec.volumes
    if not volumes:
        return None
    claims = tuple(
        volume.persistent_volume_claim.claim_name for volume in volumes if volume.persistent_volume_claim is not None
    )
    ephemeral = tuple(f"{pod.name}-{volume.name}" for volume in volumes if volume.ephemeral is not None)
    disks = [volume for volume in volumes if is_disk(volume)]
    if not (claims or ephemeral or disks):
        return None
    owner = (pod.name, pod.uid) if ephemeral else ("", "")
    return VolumeClass(pod.namespace, claims, ephemeral, owner, _ENCODE(disks) if disks else b"")


def is_disk(volume: Volume) -> bool:
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.azure_disk is not None
        or volume.cinder is not None
        or volume.portworx_volume is not None
        or volume.iscsi is not None
        or volume.rbd is not None
    )
