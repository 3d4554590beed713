"""Pods that demand more than is considered are refused before any plugin looks at them."""

import asyncio

import msgspec

from extender.engine import framework as fwk
from extender.engine.runtime.cycle import Cycle
from extender.engine.runtime.demands import demanded_bytes
from extender.engine.runtime.findings import run_post_filter_plugins
from extender.testing import make_framework, make_node, make_pod, make_snapshot
from extender.values import limits
from extender.values.objects.cluster import ClusterObjects
from extender.values.objects.devices import ResourceClaim
from extender.values.objects.meta import ObjectMeta
from extender.values.objects.pod import Pod
from extender.values.objects.storage import PersistentVolumeClaim
from extender.verbs.filtering import filter_nodes
from tests.extender.plugins_by_table import Looks, Tries
from tests.kit.tables import cases

_FEW = demanded_bytes(make_pod("p").label(note="").obj(), ClusterObjects())


def of_bytes(size: int) -> Pod:
    """A pod with demands of so many bytes."""
    return make_pod("p").label(note="x" * (size - _FEW)).obj()


@cases("size, looked", ("as many as are considered", limits.DEMANDS, 1), ("more", limits.DEMANDS + 1, 0))
def test_plugins_look_only_at_pods_within_the_limit(size: int, looked: int) -> None:
    plugin = Looks("A")

    Cycle(make_framework(plugin), make_snapshot(make_node("n")), of_bytes(size)).run_pre_filter_plugins()

    assert plugin.looked == looked


def test_refusal_tells_how_many_bytes_there_are() -> None:
    outcome = Cycle(make_framework(), make_snapshot(make_node("n")), of_bytes(70_123)).run_pre_filter_plugins()

    assert outcome.status == fwk.unresolvable(
        "the pod's scheduling demands have 70123 bytes, more than the 65536 that are considered"
    ).by("Demands")


def test_preemption_is_not_tried() -> None:
    preempts = Tries("Preempts", fwk.SUCCESS)
    cycle = Cycle(make_framework(preempts), make_snapshot(make_node("n")), of_bytes(limits.DEMANDS + 1))
    cycle.run_pre_filter_plugins()

    result = asyncio.run(run_post_filter_plugins(cycle, fwk.NodeStatuses(absent=cycle.pre_filter.status)))

    assert result.status == fwk.unschedulable()
    assert preempts.tried == 0


def test_filter_verb_refuses_all_nodes_for_good() -> None:
    cycle = Cycle(make_framework(), make_snapshot(make_node("a"), make_node("b")), of_bytes(limits.DEMANDS + 1))

    result = filter_nodes(cycle, ["a", "b"])

    assert list(result.failed_and_unresolvable) == ["a", "b"]


def test_annotations_are_no_demands() -> None:
    pod = make_pod("p").annotation(note="x" * limits.DEMANDS).obj()

    assert demanded_bytes(pod, ClusterObjects()) < 100


def test_claims_count_once_with_their_specs() -> None:
    volume_claim = PersistentVolumeClaim(metadata=ObjectMeta(name="data", namespace="default"))
    device_claim = ResourceClaim(metadata=ObjectMeta(name="gpu", namespace="default"))
    objects = ClusterObjects(
        pvcs={("default", "data"): volume_claim}, resource_claims={("default", "gpu"): device_claim}
    )
    pod = make_pod("p").claim("data").claim("data").obj()
    pod = msgspec.structs.replace(
        pod,
        spec=msgspec.convert(
            msgspec.to_builtins(pod.spec)
            | {"resourceClaims": [{"name": "mine", "resourceClaimName": "gpu"}, {"name": "made"}]},
            type(pod.spec),
        ),
        status=msgspec.convert(
            {"resourceClaimStatuses": [{"name": "made", "resourceClaimName": "gpu"}]}, type(pod.status)
        ),
    )

    of_claims = demanded_bytes(pod, objects) - demanded_bytes(pod, ClusterObjects())

    assert of_claims == len(msgspec.json.encode(volume_claim.spec)) + len(msgspec.json.encode(device_claim.spec))
