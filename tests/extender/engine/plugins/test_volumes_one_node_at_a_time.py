"""The volume plugins agree, for all nodes at once, with loops over single nodes as in upstream, on random clusters."""

import random
from collections.abc import Callable, Iterator, Mapping

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from extender.engine import framework as fwk
from extender.engine.plugins import IN_TREE
from extender.testing import filter_nodes, make_snapshot
from extender.values.objects import claims
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.csi_translation import (
    PLUGIN_BY_NAME,
    TranslationError,
    in_tree_plugin,
    inline_handle,
    translated,
)
from extender.values.objects.label_selectors import selector_of
from extender.values.objects.meta import ObjectMeta
from extender.values.objects.node import BETA_REGION_LABEL, BETA_ZONE_LABEL, REGION_LABEL, ZONE_LABEL, Node
from extender.values.objects.node_selectors import node_selector_of
from extender.values.objects.pod import Pod, Volume
from extender.values.objects.quantity import Quantity, value_of
from extender.values.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, attach_profile
from tests.kit.examples import examples
from tests.kit.random_storage import random_cluster_with_volumes

NOT_REACHED = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_ROOM = "node(s) did not have enough free storage"
NO_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NO_DISK = "node(s) had no available disk"
CLAIM_IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
TOO_MANY = "node(s) exceed max volume count"
NO_ZONE = "node(s) had no available volume zone"


class Failed(Exception):
    """The plugin ends in an error."""


def claim_of(pod: Pod, volume: Volume, objects: ClusterObjects) -> PersistentVolumeClaim | None:
    name = claims.claim_name(pod, volume)
    return None if name is None else objects.pvcs.get((pod.namespace, name))


# VolumeBinding


def reaches(node: Node, volume: PersistentVolume) -> bool:
    affinity = volume.spec.node_affinity
    nameless = msgspec.structs.replace(node, metadata=ObjectMeta(labels=node.labels))
    return affinity is None or affinity.required is None or node_selector_of(affinity.required).matches(nameless)


def as_served(node: Node, volume: PersistentVolume, objects: ClusterObjects) -> PersistentVolume:
    plugin, csi_node = in_tree_plugin(volume), objects.csi_nodes.get(node.name)
    if plugin is None or csi_node is None or plugin.name not in attach_profile(csi_node).migrated_plugins:
        return volume
    try:
        return translated(volume, plugin)
    except TranslationError as exc:
        raise Failed(f"could not translate pv: {exc}") from exc


def bound_claims_say(node: Node, bound: list[PersistentVolumeClaim], objects: ClusterObjects) -> str | None:
    for claim in bound:
        volume = objects.pvs.get(claim.spec.volume_name)
        if volume is None:
            return NO_VOLUME
        if not reaches(node, as_served(node, volume, objects)):
            return NOT_REACHED
    return None


def best_volume(
    node: Node, claim: PersistentVolumeClaim, taken_names: set[str], objects: ClusterObjects
) -> PersistentVolume | None:
    best: PersistentVolume | None = None
    size = claims.requested_storage(claim) or Quantity()
    for volume in objects.pvs.values():
        if claims.volume_class(volume) != claims.claim_class(claim) or volume.metadata.name in taken_names:
            continue
        is_its_own = claims.is_bound_to(volume, claim)
        if (volume.spec.claim_ref is not None and not is_its_own) or claims.storage_capacity(volume) < size:
            continue
        if is_its_own:
            return volume if reaches(node, volume) else None
        if volume.status.phase != "Available" or not reaches(node, volume) or not claims.has_access_of(volume, claim):
            continue
        if claim.spec.selector is not None and not selector_of(claim.spec.selector).matches(volume.metadata.labels):
            continue
        if best is None or claims.storage_capacity(volume) < claims.storage_capacity(best):
            best = volume
    return best


def has_room(node: Node, claim: PersistentVolumeClaim, storage_class: StorageClass, objects: ClusterObjects) -> bool:
    size, driver = claims.requested_storage(claim), objects.csi_drivers.get(storage_class.provisioner)
    if size is None or driver is None or not driver.spec.storage_capacity:
        return True
    for capacity in objects.csi_storage_capacities.values():
        limit, topology = capacity.maximum_volume_size or capacity.capacity, capacity.node_topology
        fits = (
            capacity.storage_class_name == storage_class.metadata.name
            and limit is not None
            and value_of(limit) >= size.value()
        )
        if fits and topology is not None and selector_of(topology).matches(node.labels):
            return True
    return False


def delayed_claims_say(node: Node, delayed: list[PersistentVolumeClaim], objects: ClusterObjects) -> str | None:
    selected = {
        claim.metadata.name: claim.metadata.annotations.get(claims.SELECTED_NODE_ANNOTATION) for claim in delayed
    }
    if any(name not in (None, node.name) for name in selected.values()):
        return NOTHING_TO_BIND
    to_provision = [claim for claim in delayed if selected[claim.metadata.name] is not None]
    taken_names: set[str] = set()
    unselected = [claim for claim in delayed if selected[claim.metadata.name] is None]
    for claim in sorted(unselected, key=lambda claim: claims.requested_storage(claim) or Quantity()):
        volume = best_volume(node, claim, taken_names, objects)
        if volume is None:
            to_provision.append(claim)
        else:
            taken_names.add(volume.metadata.name)
    for claim in to_provision:
        storage_class = objects.storage_classes[claims.claim_class(claim)]
        if storage_class.provisioner in ("", "kubernetes.io/no-provisioner"):
            return NOTHING_TO_BIND
        allowed = storage_class.allowed_topologies
        if allowed and not any(
            term.match_label_expressions
            and all(node.labels.get(it.key) in it.values for it in term.match_label_expressions)
            for term in allowed
        ):
            return NOTHING_TO_BIND
        if not has_room(node, claim, storage_class, objects):
            return NO_ROOM
    return None


def volume_binding(node: Node, pods: list[Pod], pod: Pod, objects: ClusterObjects, everyone: list[Pod]) -> list[str]:
    pod_claims = [claim for volume in pod.spec.volumes if (claim := claim_of(pod, volume, objects)) is not None]
    reasons = (
        bound_claims_say(node, [claim for claim in pod_claims if claims.is_fully_bound(claim)], objects),
        delayed_claims_say(node, [claim for claim in pod_claims if not claims.is_fully_bound(claim)], objects),
    )
    return [reason for reason in reasons if reason is not None]


# VolumeRestrictions


def is_same_disk(one: Volume, other: Volume) -> bool:
    if one.gce_persistent_disk and other.gce_persistent_disk:
        gce, other_gce = one.gce_persistent_disk, other.gce_persistent_disk
        return gce.pd_name == other_gce.pd_name and not (gce.read_only and other_gce.read_only)
    if one.aws_elastic_block_store and other.aws_elastic_block_store:
        return one.aws_elastic_block_store.volume_id == other.aws_elastic_block_store.volume_id
    if one.iscsi and other.iscsi:
        return one.iscsi.iqn == other.iscsi.iqn and not (one.iscsi.read_only and other.iscsi.read_only)
    if one.rbd and other.rbd:
        is_same = bool({*one.rbd.monitors} & {*other.rbd.monitors}) and (one.rbd.pool, one.rbd.image) == (
            other.rbd.pool,
            other.rbd.image,
        )
        return is_same and not (one.rbd.read_only and other.rbd.read_only)
    return False


def volume_restrictions(
    node: Node, pods: list[Pod], pod: Pod, objects: ClusterObjects, everyone: list[Pod]
) -> list[str]:
    if any(is_same_disk(mine, theirs) for mine in pod.spec.volumes for other in pods for theirs in other.spec.volumes):
        return [NO_DISK]
    names = {volume.persistent_volume_claim.claim_name for volume in pod.spec.volumes if volume.persistent_volume_claim}
    exclusive = {name for name in names if "ReadWriteOncePod" in objects.pvcs[pod.namespace, name].spec.access_modes}
    used = {
        volume.persistent_volume_claim.claim_name
        for other in everyone
        for volume in other.spec.volumes
        if volume.persistent_volume_claim
    }
    return [CLAIM_IN_USE] if exclusive & used else []


# NodeVolumeLimits


def csi_volumes(pod: Pod, node: Node, objects: ClusterObjects) -> Iterator[tuple[str, str]]:
    has_csi_node = node.name in objects.csi_nodes
    for volume in pod.spec.volumes:
        claim = claim_of(pod, volume, objects)
        plugin = in_tree_plugin(volume)
        if claim is None:
            if plugin is not None and has_csi_node:
                try:
                    yield plugin.driver, inline_handle(volume, plugin)
                except TranslationError as exc:
                    raise Failed(f"converting volume({volume.name}) from inline to csi: {exc}") from exc
            continue
        bound = objects.pvs.get(claim.spec.volume_name)
        if bound is None:
            provisioner = objects.storage_classes[claims.claim_class(claim)].provisioner
            in_tree = PLUGIN_BY_NAME.get(provisioner)
            if in_tree is None:
                yield provisioner, f"of {claim.metadata.name}"
            elif has_csi_node:
                yield in_tree.driver, f"of {claim.metadata.name}"
            continue
        plugin = in_tree_plugin(bound)
        if plugin is not None and has_csi_node:
            try:
                bound = translated(bound, plugin)
            except TranslationError:
                continue
        if bound.spec.csi is not None:
            yield bound.spec.csi.driver, bound.spec.csi.volume_handle


def node_volume_limits(
    node: Node, pods: list[Pod], pod: Pod, objects: ClusterObjects, everyone: list[Pod]
) -> list[str]:
    added = {*csi_volumes(pod, node, objects)}
    limits = dict(attach_profile(objects.csi_nodes[node.name]).limits) if node.name in objects.csi_nodes else {}
    if not added or not limits:
        return []
    attached = {volume for other in pods for volume in csi_volumes(other, node, objects)}
    added -= attached
    for attachment in objects.volume_attachments.values():
        volume = objects.pvs.get(attachment.spec.source.persistent_volume_name or "")
        if attachment.spec.node_name == node.name and volume is not None and volume.spec.csi is not None:
            attached.add((attachment.spec.attacher, volume.spec.csi.volume_handle))
    for driver in {driver for driver, _ in added} & limits.keys():
        if sum(driver == other for other, _ in attached) + sum(driver == other for other, _ in added) > limits[driver]:
            return [TOO_MANY]
    return []


# VolumeZone


def volume_zone(node: Node, pods: list[Pod], pod: Pod, objects: ClusterObjects, everyone: list[Pod]) -> list[str]:
    keys = {
        BETA_ZONE_LABEL: ZONE_LABEL,
        BETA_REGION_LABEL: REGION_LABEL,
        ZONE_LABEL: ZONE_LABEL,
        REGION_LABEL: REGION_LABEL,
    }
    if not keys.keys() & node.labels.keys():
        return []
    for volume in pod.spec.volumes:
        claim = claim_of(pod, volume, objects) if volume.persistent_volume_claim else None
        bound = objects.pvs.get(claim.spec.volume_name) if claim is not None else None
        for key, value in bound.metadata.labels.items() if bound is not None else ():
            zones = value.split("__")
            if key in keys and all(zones) and node.labels.get(key, node.labels.get(keys[key])) not in zones:
                return [NO_ZONE]
    return []


OneNodeAtATime = Callable[[Node, list[Pod], Pod, ClusterObjects, list[Pod]], list[str]]
PLUGINS: Mapping[str, OneNodeAtATime] = {
    "VolumeRestrictions": volume_restrictions,
    "NodeVolumeLimits": node_volume_limits,
    "VolumeBinding": volume_binding,
    "VolumeZone": volume_zone,
}


@pytest.mark.parametrize("name", PLUGINS)
@settings(deadline=None, max_examples=examples(200))
@given(seed=st.integers(0, 2**32))
def test_all_nodes_at_once_is_one_node_at_a_time(name: str, seed: int) -> None:
    """The same refusals, for the same reasons."""
    cluster = random_cluster_with_volumes(random.Random(seed))
    snapshot = make_snapshot(*cluster.nodes, pods=cluster.pods, objects=cluster.objects)
    plugin = IN_TREE[name]()
    assert isinstance(plugin, fwk.FilterPlugin) and isinstance(plugin, fwk.PreFilterPlugin)

    answers = filter_nodes(plugin, snapshot, cluster.pod)

    if not plugin.pre_filter(fwk.CycleState(), cluster.pod, snapshot).status.is_success:
        return
    for node in cluster.nodes:
        on_node = [pod for pod in cluster.pods if pod.spec.node_name == node.name]
        try:
            reasons, failed = PLUGINS[name](node, on_node, cluster.pod, snapshot.objects, list(cluster.pods)), False
        except Failed as exc:
            reasons, failed = [str(exc)], True
        assert sorted(answers[node.name].reasons) == sorted(reasons)
        assert (answers[node.name].code is fwk.Code.ERROR) == failed
