"""A pod is in the columns as it would be alone, whichever pod was read before it."""

import pytest

from extender.engine.cache import Cache
from extender.engine.snapshot.pod_attributes import Attribute
from extender.testing import PodBuilder, make_cache, make_node, make_pod
from extender.values.objects.pod import Pod
from tests.kit.storage import ephemeral


def a_pod(name: str, cpu: str = "1") -> PodBuilder:
    return make_pod(name).label(app="a").req(cpu=cpu, memory="1Gi").node("n")


def assumed(cache: Cache, pod: Pod) -> tuple[object, ...]:
    """What the columns hold of a pod that comes now, and of its node."""
    cache.assume_pod(pod)
    snapshot = cache.update_snapshot()
    pods, slot, symbols = snapshot.pods, snapshot.pods.slots[pod.uid], snapshot.tallies.symbols
    codes = [int(pods.codes[attribute, slot]) for attribute in Attribute]
    classes = [
        symbols[attribute][code] if code >= 0 else None for attribute, code in zip(Attribute, codes, strict=True)
    ]
    numbers = [
        column[slot].tolist() for column in (pods.requests, pods.non_zero_requests, pods.priority, pods.start_time)
    ]
    return numbers, classes, snapshot.nodes.requested.tolist(), snapshot.nodes.non_zero_requested.tolist()


@pytest.mark.parametrize(
    ("before", "pod"),
    [
        pytest.param(a_pod("p"), a_pod("q"), id="the same but for the name"),
        pytest.param(a_pod("p"), a_pod("q", cpu="2"), id="requests"),
        pytest.param(a_pod("p"), a_pod("q").label(app="b"), id="labels"),
        pytest.param(a_pod("p"), a_pod("q").namespace("other"), id="namespace"),
        pytest.param(a_pod("p"), a_pod("q").priority(7), id="priority"),
        pytest.param(a_pod("p"), a_pod("q").host_port(80), id="host ports"),
        pytest.param(a_pod("p"), a_pod("q").pod_anti_affinity("zone", app="a"), id="affinity"),
        pytest.param(a_pod("p"), a_pod("q").start_time("2026-01-01T00:00:00Z"), id="start"),
        pytest.param(a_pod("p"), a_pod("q").terminating(), id="deletion"),
        pytest.param(a_pod("p").volume(ephemeral()), a_pod("q").volume(ephemeral()), id="claims named after the pod"),
    ],
)
def test_a_pod_is_read_after_another_as_it_is_alone(before: PodBuilder, pod: PodBuilder) -> None:
    """However little the two differ."""
    node = make_node("n").capacity(cpu="16", memory="64Gi").obj()
    used, fresh = make_cache(node), make_cache(node)
    assumed(used, before.obj())
    used.remove_pod(before.obj())

    assert assumed(used, pod.obj()) == assumed(fresh, pod.obj())
