"""Looking at the states that a scheduler may have seen leaves the shadow's cluster as it was."""

import asyncio
import random

import pytest

from extender.engine.cache.cluster import Cluster
from extender.testing import make_node, make_pod
from extender.values.objects.decoding import replaced
from extender.values.objects.meta import HasMetadata
from extender.values.objects.pod import Pod
from reprieve.lab.shadow.changes import ObservedChange
from reprieve.lab.shadow.states import STATES, in_another_order


def changes(chance: random.Random, count: int) -> list[ObservedChange]:
    """What may happen to a few pods and nodes, each change of an object after the one before."""
    object_by_name: dict[str, HasMetadata] = {}
    observed_changes: list[ObservedChange] = []
    while len(observed_changes) < count:
        name = f"{chance.choice('pn')}{chance.randrange(4)}"
        old = object_by_name.pop(name, None)
        new = _changed(chance, name, old)
        if new is not None:
            object_by_name[name] = new
        if old is not None or new is not None:
            observed_changes.append(ObservedChange(len(observed_changes) / 100, old, new))
    return observed_changes


def _changed(chance: random.Random, name: str, old: HasMetadata | None) -> HasMetadata | None:
    if name.startswith("n"):
        is_there = old is None or chance.random() < 0.7
        return make_node(name).capacity(cpu=str(chance.randint(1, 8))).obj() if is_there else None
    if not isinstance(old, Pod):
        return make_pod(name).uid(f"{name}-{chance.random()}").req(cpu="1").obj()
    if not old.spec.node_name:
        return replaced(old, spec=replaced(old.spec, node_name=f"n{chance.randrange(4)}"))
    return (
        None if chance.random() < 0.5 else replaced(old, status=replaced(old.status, start_time="2026-11-23T05:00:00Z"))
    )


def known_to(cluster: Cluster) -> object:
    pods = {pod.uid: pod for pod in cluster.cache.pods}
    return (
        pods,
        dict(cluster.pending),
        dict(cluster.nodes),
        {name: sorted(dump.pods) for name, dump in cluster.cache.dump().items()},
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_cluster_is_as_it_was(seed: int) -> None:
    chance, cluster = random.Random(seed), Cluster()
    happened = changes(chance, 40)
    before, coming = happened[:30], happened[30:]
    for change in before:
        cluster.changed(change.old, change.new)
    was, states = known_to(cluster), []

    async def looks() -> None:
        states.append(known_to(cluster))

    later = [change for change in coming if change.is_placement]
    asyncio.run(in_another_order(cluster, before[:-13:-1], later, looks))

    assert len(states) <= STATES
    assert any(state != was for state in states)
    for change in coming:
        cluster.changed(change.old, change.new)
    in_order = Cluster()
    for change in happened:
        in_order.changed(change.old, change.new)
    assert known_to(cluster) == known_to(in_order)
