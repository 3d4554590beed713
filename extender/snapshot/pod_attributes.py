"""What plugins ask about the pods of a node, as symbols: pods that look the same to a question share a code.

A plugin never walks over pods. It asks a question once per distinct symbol of an attribute, and the snapshot's tallies keep the
answer summed up per node (`tallies.py`).
"""

import enum
from dataclasses import dataclass
from typing import final

import msgspec

from extender.objects.pod import Pod, PodAffinity, PodAffinityTerm, Volume, WeightedPodAffinityTerm

HostPort = tuple[str, str, int]
"""(host IP, protocol, port); no IP is 0.0.0.0, no protocol is TCP."""

ANY_ADDRESS = "0.0.0.0"  # noqa: S104  (a value to compare with, nothing is bound to it)


@final
@dataclass(frozen=True, slots=True)
class LabelClass:
    """Pods of one namespace with equal labels; terminating pods are a class of their own."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    is_terminating: bool


@final
@dataclass(frozen=True, slots=True)
class AffinityClass:
    """Pods of one namespace with equal pod affinity and anti-affinity stanzas."""

    namespace: str
    encoded: bytes

    def affinity(self) -> tuple[PodAffinity | None, PodAffinity | None]:
        """(pod affinity, pod anti-affinity) as written."""
        return _STANZAS.decode(self.encoded)


@final
@dataclass(frozen=True, slots=True)
class VolumeClass:
    """Pods of one namespace with the same volumes, of the kinds that matter to other pods."""

    namespace: str
    claims: tuple[str, ...]
    """The names of the claims used by `persistentVolumeClaim` volumes, as often as they are used."""
    ephemeral_claims: tuple[str, ...] = ()
    """The names of the claims of generic ephemeral volumes."""
    owner: tuple[str, str] = ("", "")
    """(name, UID) of the pod, if there are ephemeral claims: they must be its own."""
    encoded_disks: bytes = b""

    def disks(self) -> list[Volume]:
        """The volumes that are no claims but disks written out in the pod, as written."""
        return _VOLUMES.decode(self.encoded_disks) if self.encoded_disks else []


PodSymbol = LabelClass | AffinityClass | VolumeClass | tuple[HostPort, ...]

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
    """The pod's symbol among labels; every pod has one."""
    return LabelClass(pod.namespace, frozenset(pod.labels.items()), pod.is_terminating)


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The host ports of containers and sidecars, as written and in order.

    Upstream: pkg/scheduler/util/utils.go, GetHostPorts (v1.36).
    """
    spec = pod.spec
    if not any(container.ports for container in spec.containers) and not spec.init_containers:
        return ()
    sidecars = [container for container in spec.init_containers if container.is_sidecar]
    found = [
        (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
        for container in (*spec.containers, *sidecars)
        for port in container.ports
        if port.host_port > 0
    ]
    return tuple(found)


def required_terms(affinity: PodAffinity | None) -> list[PodAffinityTerm]:
    """The required terms of a stanza; none if the stanza is absent."""
    return affinity.required if affinity is not None else []


def preferred_terms(affinity: PodAffinity | None) -> list[WeightedPodAffinityTerm]:
    """The preferred terms of a stanza; none if the stanza is absent."""
    return affinity.preferred if affinity is not None else []


def affinity_class(pod: Pod) -> AffinityClass | None:
    """The pod's symbol among affinity stanzas; None without one."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return None
    return AffinityClass(pod.namespace, _ENCODE((affinity.pod_affinity, affinity.pod_anti_affinity)))


def volume_class(pod: Pod) -> VolumeClass | None:
    """The pod's symbol among volumes; None if it has none that scheduling looks at."""
    volumes = pod.spec.volumes
    if not volumes:
        return None
    claims = tuple(volume.persistent_volume_claim.claim_name for volume in volumes if volume.persistent_volume_claim is not None)
    ephemeral = tuple(f"{pod.name}-{volume.name}" for volume in volumes if volume.ephemeral is not None)
    disks = [volume for volume in volumes if _is_disk(volume)]
    if not (claims or ephemeral or disks):
        return None
    owner = (pod.name, pod.uid) if ephemeral else ("", "")
    return VolumeClass(pod.namespace, claims, ephemeral, owner, _ENCODE(disks) if disks else b"")


def _is_disk(volume: Volume) -> bool:
    return any(getattr(volume, source) is not None for source in _DISK_SOURCES)


_DISK_SOURCES = ("gce_persistent_disk", "aws_elastic_block_store", "azure_disk", "cinder", "portworx_volume", "iscsi", "rbd")
