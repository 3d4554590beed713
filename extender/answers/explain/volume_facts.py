"""Where the volumes of a pod can be used, which node its claims are promised to, and how many volumes nodes take."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from extender.answers.explain.advice import Asked, NodeFact
from extender.answers.parts import PodName
from extender.answers.phrases import all_of, plural
from extender.engine.plugins.node_volume_limits.csi_volumes import CannotCountError, CountedVolumes
from extender.engine.plugins.node_volume_limits.plugin import VolumeCounter
from extender.engine.plugins.volume_binding.reach import affinity_mask, affinity_of, capacity_mask
from extender.engine.plugins.volume_restrictions import disks_used
from extender.engine.plugins.volume_zone import volume_topologies
from extender.engine.snapshot import Rows
from extender.engine.snapshot.axes import Mask
from extender.values import limits
from extender.values.objects.claims import (
    NO_PROVISIONER,
    READ_WRITE_ONCE_POD,
    SELECTED_NODE_ANNOTATION,
    claim_class,
    claim_name,
    is_fully_bound,
    names_claim,
)
from extender.values.objects.meta import NodeSelectorRequirement
from extender.values.objects.node import HOSTNAME_LABEL
from extender.values.objects.quantity import value_of
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim

_NAMED: Final = 3


def volume_facts(question: Asked) -> Iterator[NodeFact]:
    """Yields for each claim where its volume can be used, or where it is being made."""
    reached: dict[str, Mask] = {}
    for claim in _claims(question):
        volume = question.snapshot.objects.pvs.get(claim.spec.volume_name)
        selected = claim.metadata.annotations.get(SELECTED_NODE_ANNOTATION)
        if volume is not None:
            affinity = affinity_of(volume)
            if affinity is not None:
                reached[volume.metadata.name] = mask = affinity_mask(question.snapshot, affinity)
                yield NodeFact(
                    f"the volume {volume.metadata.name} (claim {claim.metadata.name}) {_where(volume, mask, question)}"
                )
        elif selected is not None and not is_fully_bound(claim):
            lost = "" if selected in question.snapshot.nodes.index else ", which does not exist"
            yield NodeFact(
                f"the claim {claim.metadata.name} is reserved for the node {selected}{lost}; the pod fits on no other"
            )
        elif not claim.spec.volume_name:
            yield from _free_volumes(claim, question)
    if len(reached) > 1 and not np.logical_and.reduce([*reached.values()]).any():
        yield NodeFact(f"no node can use all of the volumes {all_of([*reached][: limits.FACTS])}")


def zone_facts(question: Asked) -> Iterator[NodeFact]:
    """Yields for each claim in which zones and regions its volume is by its labels."""
    for claim in _claims(question):
        volume = question.snapshot.objects.pvs.get(claim.spec.volume_name)
        topologies = [] if volume is None else volume_topologies(volume)
        if topologies:
            where = all_of(f"{topology.key} in ({', '.join(topology.values)})" for topology in topologies)
            yield NodeFact(f"the volume {claim.spec.volume_name} (claim {claim.metadata.name}) is where {where}")


def attachment_facts(question: Asked) -> Iterator[NodeFact]:
    """Yields for each node near by how many volumes its drivers attach, and how many the pod would add."""
    counter = VolumeCounter(question.pod, CountedVolumes.of(question.pod), question.snapshot)
    rows = Rows.of(question.snapshot, question.refused[: limits.FACT_NODES])
    for row, node in enumerate(question.nearest):
        try:
            for use in counter.use_on(rows, row):
                if use.attached + use.added > use.limit:
                    more = f"the pod brings {use.added} more"
                    yield NodeFact(
                        f"{use.attached} of {plural(use.limit, 'volume')} of {use.driver} attached; {more}", node.name
                    )
        except CannotCountError:
            continue


def use_facts(question: Asked) -> Iterator[NodeFact]:
    """Yields who uses a ReadWriteOncePod claim of the pod, and who on nodes near by has a disk that it wants."""
    claims = [claim for claim in _claims(question) if READ_WRITE_ONCE_POD in claim.spec.access_modes]
    disks = disks_used(question.pod.spec.volumes)
    near = {*question.refused[: limits.FACT_NODES].tolist()}
    for place, slots in enumerate(question.snapshot.pods.on_node):
        for other in map(question.snapshot.pod_at, slots if claims or place in near else ()):
            for claim in claims:
                if names_claim(other, claim):
                    text = f"the claim {claim.metadata.name} (ReadWriteOncePod) is used by {other.key}"
                    yield NodeFact(text, pods=(PodName.of(other),))
            used = disks_used(other.spec.volumes) if disks and place in near else {}
            for disk, is_only_read in disks.items():
                if disk in used and not (is_only_read and used[disk]):
                    text = f"the disk {' '.join(disk)} is attached for {other.key}"
                    yield NodeFact(text, question.snapshot.nodes.objects[place].name, (PodName.of(other),))


def _claims(question: Asked) -> Iterator[PersistentVolumeClaim]:
    names = dict.fromkeys(claim_name(question.pod, volume) for volume in question.pod.spec.volumes)
    for name in names:
        claim = question.snapshot.objects.pvcs.get((question.pod.namespace, name or ""))
        if claim is not None:
            yield claim


def _where(volume: PersistentVolume, reached: Mask, question: Asked) -> str:
    """Returns the nodes that reach the volume, or what they would have to be."""
    affinity = volume.spec.node_affinity
    terms = affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()
    hosts = [
        requirement for term in terms for requirement in term.match_expressions if requirement.key == HOSTNAME_LABEL
    ]
    where = " or ".join(all_of(map(_in_words, term.match_expressions)) for term in terms if term.match_expressions)
    places = np.flatnonzero(reached).tolist()
    if places:
        names = [question.snapshot.nodes.objects[place].name for place in places[:_NAMED]]
        on = all_of(names) if len(places) <= _NAMED else f"{len(places)} nodes"
        return f"can be used only on {on}, where {where}"
    if len(hosts) == len(terms) == 1 and hosts[0].operator == "In":
        return f"is on {' or '.join(hosts[0].values)}, which does not exist"
    return f"can be used where {where}: no node matches"


def _in_words(requirement: NodeSelectorRequirement) -> str:
    values = f" ({', '.join(requirement.values)})" if requirement.values else ""
    return f"{requirement.key} {requirement.operator}{values}"


def _free_volumes(claim: PersistentVolumeClaim, question: Asked) -> Iterator[NodeFact]:
    """Yields how many volumes of a class that makes none are free, or how much room there is for one that is made."""
    name = claim_class(claim)
    storage_class = question.snapshot.objects.storage_classes.get(name)
    if storage_class is None or storage_class.provisioner == NO_PROVISIONER:
        volumes = [
            volume for volume in question.snapshot.objects.pvs.values() if volume.spec.storage_class_name == name
        ]
        free = sum(volume.spec.claim_ref is None for volume in volumes)
        kind = f"of the class {name}" if name else "without a class"
        yield NodeFact(f"{free} of {plural(len(volumes), 'volume')} {kind} free for the claim {claim.metadata.name}")
        return
    enough = capacity_mask(question.snapshot, storage_class, claim)
    if enough is not None and not enough.all():
        published = question.snapshot.objects.csi_storage_capacities.values()
        sizes = [
            report.capacity if report.maximum_volume_size is None else report.maximum_volume_size
            for report in published
            if report.storage_class_name == name
        ]
        largest = max((size for size in sizes if size is not None), key=value_of, default=None)
        requested_storage = f"the {claim.spec.resources.requests.get('storage', 0)} of the claim {claim.metadata.name}"
        on = f"{int(enough.sum())} of {plural(len(enough), 'node')}"
        which = "no capacity is published" if largest is None else f"the most that is published is {largest}"
        yield NodeFact(f"{on} with room for {requested_storage} in the class {name}; {which}")
