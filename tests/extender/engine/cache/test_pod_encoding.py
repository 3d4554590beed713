"""A pod is in the columns as it would be alone, whichever pod was read before it."""

import weakref

import pytest

from extender.engine.cache import Cache
from extender.engine.snapshot.pod_attributes import Attribute, LabelClass
from extender.testing import PodBuilder, make_cache, make_node, make_pod
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import Condition, OwnerReference
from extender.values.objects.pod import Container, ContainerStatus, Pod, PodSpec, ResourceRequirements
from tests.kit.storage import ephemeral
from tests.kit.tables import cases

INFEASIBLE = Condition(type="PodResizePending", status="True", reason="Infeasible")
DEFERRED = Condition(type="PodResizePending", status="True", reason="Deferred")


def a_pod(name: str, cpu: str = "1") -> PodBuilder:
    return make_pod(name).label(app="a").req(cpu=cpu, memory="1Gi").node("n")


def resized(name: str, *conditions: Condition, cpu: str = "3") -> Pod:
    """A pod whose container has more than it asks for."""
    pod = a_pod(name).obj()
    has = ContainerStatus(
        name=pod.spec.containers[0].name, resources=ResourceRequirements(requests={"cpu": cpu, "memory": "1Gi"})
    )
    return replaced(pod, status=replaced(pod.status, container_statuses=[has], conditions=[*conditions]))


def owned_by(owner: str, pod: Pod) -> Pod:
    owners = [OwnerReference(uid=owner)] if owner else []
    return replaced(pod, metadata=replaced(pod.metadata, owner_references=owners))


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


@cases(
    "before, pod",
    ("the same but for the name", a_pod("p"), a_pod("q")),
    ("requests", a_pod("p"), a_pod("q", cpu="2")),
    ("labels", a_pod("p"), a_pod("q").label(app="b")),
    ("namespace", a_pod("p"), a_pod("q").namespace("other")),
    ("priority", a_pod("p"), a_pod("q").priority(7)),
    ("host ports", a_pod("p"), a_pod("q").host_port(80)),
    ("affinity", a_pod("p"), a_pod("q").pod_anti_affinity("zone", app="a")),
    ("start", a_pod("p"), a_pod("q").start_time("2026-01-01T00:00:00Z")),
    ("deletion", a_pod("p"), a_pod("q").terminating()),
    ("claims named after the pod", a_pod("p").volume(ephemeral()), a_pod("q").volume(ephemeral())),
    ("a volume", a_pod("p"), a_pod("q").volume(ephemeral())),
    ("an init container", a_pod("p"), a_pod("q").init_req(cpu="8")),
    ("overhead", a_pod("p"), a_pod("q").overhead(cpu="1")),
    ("what the container has", a_pod("p"), resized("q")),
    ("how much it has", resized("p"), resized("q", cpu="4")),
    ("a resize that cannot be done", resized("p", cpu="0.5"), resized("q", INFEASIBLE, cpu="0.5")),
    ("a resize that was given up", resized("p", INFEASIBLE, cpu="0.5"), resized("q", cpu="0.5")),
    ("one that may be later", resized("p", INFEASIBLE, cpu="0.5"), resized("q", DEFERRED, cpu="0.5")),
    ("one that can be no more", resized("p", DEFERRED, cpu="0.5"), resized("q", INFEASIBLE, cpu="0.5")),
)
@pytest.mark.parametrize("owner", ["", "rs"])
def test_a_pod_is_read_after_another_as_it_is_alone(
    before: PodBuilder | Pod, pod: PodBuilder | Pod, owner: str
) -> None:
    """However little the two differ, with an owner or without."""
    first, second = (owned_by(owner, source if isinstance(source, Pod) else source.obj()) for source in (before, pod))
    node = make_node("n").capacity(cpu="16", memory="64Gi").obj()
    used, fresh = make_cache(node), make_cache(node)
    assumed(used, first)
    used.remove_pod(first)

    assert assumed(used, second) == assumed(fresh, second)


def test_pods_of_several_owners_that_come_in_turns_are_read_as_they_are_alone() -> None:
    pods = [owned_by(f"rs-{number % 3}", a_pod(f"p{number}", cpu=str(1 + number % 3)).obj()) for number in range(9)]
    node = make_node("n").capacity(cpu="64", memory="64Gi").obj()
    together = make_cache(node)

    assert [assumed(together, pod)[:2] for pod in pods] == [assumed(make_cache(node), pod)[:2] for pod in pods]


class Asked(dict[str, str | int | float]):
    """Requests of which it can be seen whether anybody still has them."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def test_large_pods_that_are_gone_are_let_go() -> None:
    """However many owners and labels they had."""
    cache = make_cache(make_node("n").capacity(cpu="16", memory="64Gi").obj())
    live_requests: weakref.WeakSet[Asked] = weakref.WeakSet()
    for number in range(60):
        requests = Asked(cpu="1")
        live_requests.add(requests)
        large = Container(name=f"{number:0500000}", resources=ResourceRequirements(requests=requests))
        pod = owned_by(f"rs-{number}", replaced(a_pod("p").obj(), spec=PodSpec(node_name="n", containers=[large])))
        cache.add_pod(pod)
        cache.update_snapshot()
        cache.remove_pod(pod)
        cache.update_snapshot()

    assert len(live_requests) < 15


@pytest.mark.parametrize("is_in_snapshot", [False, True], ids=["before the next snapshot", "after it"])
@cases(
    "bound",
    ("as it was assumed", a_pod("p")),
    ("with the labels of its node", a_pod("p").label(zone="z1")),
    ("other requests", a_pod("p", cpu="2")),
    ("priority", a_pod("p").priority(7)),
    ("host ports", a_pod("p").host_port(80)),
    ("affinity", a_pod("p").pod_anti_affinity("zone", app="a")),
    ("start", a_pod("p").start_time("2026-01-01T00:00:00Z")),
)
def test_a_confirmed_pod_is_in_the_columns_as_if_it_had_come_so(bound: PodBuilder, *, is_in_snapshot: bool) -> None:
    """Where other pods are on the node, too."""
    caches = [make_cache(make_node("n").capacity(cpu="16", memory="64Gi").obj()) for _ in range(2)]
    confirmed, fresh = caches
    confirmed.assume_pod(a_pod("p").obj())
    confirmed.assume_pod(a_pod("q").label(app="q").obj())
    if is_in_snapshot:
        assert is_counted(confirmed, "a")
    confirmed.add_pod(bound.obj())
    fresh.add_pod(a_pod("q").label(app="q").obj())
    fresh.add_pod(bound.obj())

    snapshot, expected = (cache.update_snapshot() for cache in caches)

    assert confirmed.dump() == fresh.dump()
    assert not confirmed.is_assumed(bound.obj())
    assert [*map(snapshot.pod_at, snapshot.pods.on_node[0])] == [a_pod("q").label(app="q").obj(), bound.obj()]
    assert snapshot.nodes.requested.tolist() == expected.nodes.requested.tolist()
    assert [is_counted(cache, value) for cache in caches for value in ("a", "q")] == [True] * 4
    assert is_counted(confirmed, "z1", "zone") == is_counted(fresh, "z1", "zone")


def is_counted(cache: Cache, value: str, key: str = "app") -> bool:
    """Whether a tally of the pods with this label counts just one on the node."""
    snapshot = cache.update_snapshot()

    def weight(symbol: object) -> int:
        return int(isinstance(symbol, LabelClass) and (key, value) in symbol.labels)

    return bool(snapshot.tally(Attribute.LABELS, (key, value), weight).per_node[0] == 1)
